"""Shows an uncaught error as Python does, with what is known of its cause."""

import contextlib
import importlib.util
import os
import runpy
import sys
import traceback
import types
from collections.abc import Sequence
from typing import Any

from tfsafe import _after_import, _compat, _faults
from tfsafe._report import text as _text
from tfsafe.errors import NumericsError

_STRICT = (
    "if the script computes it with TensorFlow, and not in a dataset, `--strict` names "
    "the operation"
)
_PACKAGE = os.path.join(os.path.dirname(__file__), "")
# Files whose frames are hidden: those between `python` and the script.
_BETWEEN = (
    os.path.join(_PACKAGE, "_run.py"),
    _after_import.__file__,
    runpy.__file__,
    importlib.util.__file__,
    "<frozen runpy>",
    "<frozen importlib",
)


def show_at_exit(error: BaseException, options: Any, usual: Any) -> None:
    """Makes Python show an uncaught error without the frames of tfsafe.

    Args:
      error: The error.
      options: Of the command line.
      usual: The `sys.excepthook` of before. If the script has put another one there,
        it is used.
    """
    report = options.report
    errors = _chain(error)
    refused = None if options.checks == "none" else _refused(errors)
    show, lines = sys.excepthook, _of_the_script(error)
    for each in errors[1:]:
        each.__traceback__ = _of_the_script(each)
    cause = refused or _first(errors)
    if cause is not None and report is not None:
        with _faults.contained("writing the report"):
            cause.to_html(report)
    first = None if cause is None else next(iter(cause.findings), None)
    is_given = first is not None and first.origin.startswith("argument ")
    notes = [_STRICT] if is_given and not options.strict else []
    if cause is not None and options.capsule:
        with _faults.contained("writing the capsule"):
            notes += _saved(cause, options.capsule)

    def excepthook(kind: Any, value: BaseException, _: Any) -> None:
        shown = False
        # The backport of exception groups to Python 3.10 puts its own there.
        home = getattr(show, "__module__", "")
        is_usual = show is usual or home == "exceptiongroup._formatting"
        if isinstance(value, NumericsError) and is_usual:
            with _faults.contained("showing the finding"):
                _show(value, lines)
                shown = True
        if not shown:
            show(kind, value.with_traceback(lines), lines)
        if refused is not None:
            # The error is TensorFlow's, and so is what is shown of it.
            say(refused.explain(color=_text.wants_color(sys.stderr)))
        if cause is not None and report:
            say(f"the report is {report}")
        elif cause is not None and (refused is None or refused.findings[0].chain):
            say(
                "for pictures and the propagation path, repeat the run with "
                "`--report finding.html`"
            )
        for note in notes:
            say(note)

    # Python calls it in the end, and sets the exit code: 1, or that of Ctrl-C.
    sys.excepthook = excepthook


def _first(errors: Sequence[BaseException]) -> NumericsError | None:
    return next((each for each in errors if isinstance(each, NumericsError)), None)


def _refused(errors: Sequence[BaseException]) -> NumericsError | None:
    """Explains an error that TensorFlow raised for a numeric reason, if one is that."""
    if "tfsafe.debugging" not in sys.modules or _first(errors) is not None:
        return None
    from tfsafe.debugging.explain import refusals

    with _faults.contained("explaining an error of TensorFlow"):
        explained = filter(None, map(refusals.explained, errors))
        return next(explained, None)
    return None


def _saved(error: NumericsError, path: str) -> list[str]:
    """Saves the failed step; returns what to say about it."""
    try:
        error.save(path)
    except (OSError, ValueError) as reason:
        return [f"the capsule was not written. {reason}"]
    return [f"the capsule is {path}; `tfsafe replay {path}` shows the failure again"]


def _of_the_script(error: BaseException) -> types.TracebackType | None:
    """Returns an error's traceback without our frames and those of `runpy`."""
    lines, frames = error.__traceback__, []
    while lines is not None:
        frames.append(lines)
        lines = lines.tb_next
    keras = sys.modules.get("keras")
    is_filtered = keras is None or keras.config.is_traceback_filtering_enabled()
    # An error that the package itself raised keeps all its frames. That of a kernel, or
    # of Keras in the program's trace, is raised in frames that Keras may have hidden.
    is_last = bool(frames) and _is_of(frames[-1], (_PACKAGE,))
    is_others = _faults.is_of_kernel(error) or _faults.is_of_program(error)
    is_ours = is_last and not is_others
    hidden = (*_BETWEEN, _PACKAGE) if is_filtered and not is_ours else _BETWEEN
    _compat.hide_noted_frames(error, hidden)
    kept = [line for line in frames if not _is_of(line, hidden)]
    for line, inner in zip(kept, [*kept[1:], None], strict=False):
        line.tb_next = inner
    return kept[0] if kept else None


def _is_of(line: types.TracebackType, places: tuple[str, ...]) -> bool:
    return line.tb_frame.f_code.co_filename.startswith(places)


def _chain(error: BaseException | None) -> list[BaseException]:
    """Lists an error and those that it is due to."""
    errors: list[BaseException] = []
    while error is not None and not any(error is each for each in errors):
        errors.append(error)
        error = error.__cause__ or error.__context__
    return errors


def _show(error: NumericsError, lines: types.TracebackType | None) -> None:
    """Prints the user's lines that led to an error, and its explanation."""
    from tfsafe.graph import is_user_file

    frames = traceback.extract_tb(lines)
    users = [frame for frame in frames if is_user_file(frame.filename)]
    # Only ours, where what is checked late is looked at after the script.
    others = [frame for frame in frames if not frame.filename.startswith(_PACKAGE)]
    text = error.explain(color=_text.wants_color(sys.stderr))
    if users or others:
        sys.stderr.write("Traceback (most recent call last):\n")
        sys.stderr.writelines(traceback.format_list(users or others))
    sys.stderr.write(f"tfsafe.NumericsError: {text}\n")


def say(text: str) -> None:
    """Writes a line of `tfsafe run` to standard error."""
    # None, or closed, in a program without a terminal.
    with contextlib.suppress(AttributeError, OSError, ValueError):
        sys.stderr.write(f"tfsafe: {text}\n")
