"""Keeps errors of tfsafe's own code away from the user's program.

An error of the program itself is raised once, unchanged: what ours does in its way may
run the user's Python code, and then that code must not run a second time.
"""

import contextlib
import functools
import os
import signal
import sys
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from tfsafe import _compat
from tfsafe.errors import NumericsError

_PACKAGE = os.path.dirname(__file__)
# What runs between Keras and the user's functions and raises no error of its own.
_BETWEEN = ("_compat", "_faults", "_patching", "debugging", "graph", "rewriting")
# The warnings so far, by task and place.
REPORTED: set[tuple[str, str]] = set()
# Set on errors that the user's code raised.
_MARK = "_tfsafe_of_program"


@contextlib.contextmanager
def contained(task: str) -> Iterator[None]:
    """Turns an error of the block into one `RuntimeWarning`; findings are raised.

    For what we do besides the user's own calls. The block ends at the error.

    Args:
      task: What the block does, as in "the check of a gradient".

    Raises:
      NumericsError: If the block raises one: findings are for the user.
      Exception: If a handler of a signal raises it while the block runs.
    """
    try:
        yield
    except NumericsError:
        raise
    except Exception as error:
        warn_of_fault(task, error)


class RefusalError(ValueError):
    """A request that cannot be met: an error for the user, not a fault of tfsafe."""


@contextlib.contextmanager
def users_code() -> Iterator[None]:
    """Marks what the block raises as an error of the program; see `or_plain`.

    For a block that runs or traces the user's function, and does nothing else.
    """
    try:
        yield
    except Exception as error:
        # An error may be a frozen dataclass, which refuses `setattr`.
        error.__dict__[_MARK] = True
        raise


def hide_frames() -> None:
    """Makes an error of a Keras model have the frames that it has without tfsafe."""
    _compat.hide_frames([os.path.join(_PACKAGE, each) for each in _BETWEEN])


def _is_of_signal(error: BaseException) -> bool:
    """Returns whether a handler of a signal raised an error, such as a time limit."""
    handlers = map(signal.getsignal, signal.valid_signals())
    codes = {_code_of(each) for each in handlers if callable(each)}
    return any(
        frame.f_code in codes for frame, _ in traceback.walk_tb(error.__traceback__)
    )


def _code_of(handler: Callable[..., Any]) -> types.CodeType | None:
    while isinstance(handler, functools.partial):
        handler = handler.func
    function = getattr(handler, "__func__", handler)
    if not hasattr(function, "__code__"):
        function = type(handler).__call__
    return getattr(function, "__code__", None)


def is_of_program(error: BaseException, handled: BaseException | None = None) -> bool:
    """Returns whether an error, or one whose copy it is, has the mark of `users_code`.

    Args:
      error: The error. AutoGraph raises copies, while it handles the original.
      handled: What the program was handling before, which is another matter.
    """
    each: BaseException | None = error
    while each is not None and each is not handled:
        if _MARK in each.__dict__:
            return True
        each = each.__context__
    return False


def or_plain(
    task: str,
    ours: Callable[[], Any],
    plain: Callable[[], Any],
    give_up: Callable[[], None] = lambda: None,
) -> Any:
    """Calls the user's function our way, or plainly if our way fails before it runs.

    An error that the user's code raised in our way is raised at once: after a second
    trace TensorFlow would raise a different one, as for a half-built optimizer.

    Args:
      task: What our way is, as in "the check of a function".
      ours: Calls the function our way.
      plain: Calls it as TensorFlow would. An error of `ours` that `plain` raises as
        well is the user's own: that of `plain` is raised, without a warning.
      give_up: Called after a fault, so that our way is not tried again.

    Returns:
      What either returns.

    Raises:
      NumericsError: If `ours` raises one.
      RefusalError: If `ours` raises one.
    """
    handled = sys.exc_info()[1]
    try:
        return ours()
    except (NumericsError, RefusalError):
        raise
    except Exception as error:
        # An error of a kernel: the function has run, and may have written variables.
        is_users = is_of_program(error, handled) or _is_of_signal(error)
        if is_users or is_of_kernel(error):
            _compat.hide_noted_frames(error, (os.path.join(_PACKAGE, ""),))
            raise
        fault = error
    result = plain()
    with contained(task):
        give_up()
    warn_of_fault(task, fault)
    return result


def is_of_kernel(error: BaseException) -> bool:
    """Returns whether an operation raised an error while it ran."""
    tensorflow = sys.modules.get("tensorflow")
    return tensorflow is not None and isinstance(error, tensorflow.errors.OpError)


def warn_of_fault(task: str, error: Exception) -> None:
    """Warns once for each task and place of an error.

    Raises:
      Exception: The error, if a handler of a signal raised it: it is the program's.
    """
    if _is_of_signal(error):
        raise error
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename.startswith(_PACKAGE)]
    place = "an unknown place"
    if own:
        path = os.path.relpath(own[-1].filename, os.path.dirname(_PACKAGE))
        place = f"{path}:{own[-1].lineno}"
    if (task, place) in REPORTED:
        return
    REPORTED.add((task, place))
    _warn(
        f"tfsafe failed in {task} and goes on without it; the result is TensorFlow's. "
        f"Please report this line: {type(error).__name__}: {error} ({place})"
    )


def _warn(message: str) -> None:
    # Ours, and those of the standard library's context managers.
    level, passed = 1, (_PACKAGE, contextlib.__file__)
    outer: types.FrameType | None = sys._getframe()
    while outer is not None and outer.f_code.co_filename.startswith(passed):
        level, outer = level + 1, outer.f_back
    # A program that turns warnings into errors is not ended by our fault.
    with warnings.catch_warnings():
        warnings.simplefilter("always", RuntimeWarning)
        warnings.warn(message, RuntimeWarning, stacklevel=level)
