"""Keeps errors of our own machinery away from the user's program."""

import contextlib
import os
import sys
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from tfsafe.errors import NumericsError

_PACKAGE = os.path.dirname(__file__)
# The warnings so far, by task and place.
REPORTED: set[tuple[str, str]] = set()


@contextlib.contextmanager
def contained(task: str) -> Iterator[None]:
    """Turns an error of the block into one `RuntimeWarning`; findings are raised.

    For what we do besides the user's own calls. The block ends at the error.

    Args:
      task: What the block does, as in "the check of a gradient".

    Yields:
      Nothing.

    Raises:
      NumericsError: If the block raises one: findings are for the user.
    """
    try:
        yield
    except NumericsError:
        raise
    except Exception as error:
        warn_of_fault(task, error)


class RefusalError(ValueError):
    """What was asked for cannot be done: an error for the user, and no fault."""


def or_plain(
    task: str,
    ours: Callable[[], Any],
    plain: Callable[[], Any],
    give_up: Callable[[], None] = lambda: None,
) -> Any:
    """Calls the user's function our way, or plainly if our way fails before it runs.

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
    try:
        return ours()
    except (NumericsError, RefusalError):
        raise
    except Exception as error:
        # An error of a kernel: the function has run, and may have written variables.
        if is_of_kernel(error):
            raise
        fault = error
    result = plain()
    give_up()
    warn_of_fault(task, fault)
    return result


def is_of_kernel(error: Exception) -> bool:
    """Returns whether an operation raised an error while it ran."""
    tensorflow = sys.modules.get("tensorflow")
    return tensorflow is not None and isinstance(error, tensorflow.errors.OpError)


def warn_of_fault(task: str, error: Exception) -> None:
    """Warns once for each task and place of an error."""
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
