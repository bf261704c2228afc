"""Knows which files are the user's, and reads a call off their source."""

import ast
import contextlib
import functools
import importlib.util
import linecache
import os
import re
import sys
import sysconfig
import traceback
import types
from collections.abc import Callable
from typing import NamedTuple

_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep
# A longer expression is not worth repeating.
_LONGEST = 60
# A statement with more lines is not read.
_LINES = 20
_COUNTING = {"enumerate", "iter", "tqdm"}
_NAMES = re.compile(r"\s*(\w+(?:\.\w+)*(?:\s*,\s*\w+(?:\.\w+)*)*)\s*=\s*")


def _package(name: str) -> str:
    spec = None
    with contextlib.suppress(ImportError):
        spec = importlib.util.find_spec(name)
    return os.path.dirname(spec.origin) + os.sep if spec and spec.origin else "\0"


_LIBRARIES = tuple(
    # Keras maps its structures with optree.
    _package(name)
    for name in ("tensorflow", "keras", "numpy", "optree", "tfsafe")
)
_OPTIMIZERS_OF_KERAS = os.path.join(_package("keras"), "src", "optimizers") + os.sep
_SAVING_OF_KERAS = tuple(
    os.path.join(_package("keras"), "src", part) + os.sep
    for part in ("saving", os.path.join("legacy", "saving"))
)
# Not what the user's formulas are made of: `keras/src/ops`, `activations`, `backend`.
_PARTS_OF_KERAS = (
    *(
        os.path.join(_package("keras"), "src", part) + os.sep
        for part in ("layers", "losses", "metrics", "models", "trainers")
    ),
    _OPTIMIZERS_OF_KERAS,
)
_CTC = os.path.join(_LIBRARIES[0], "python", "ops", "ctc_ops.py")
_STANDARD = sysconfig.get_paths()["stdlib"] + os.sep
_INSTALLED = ("site-packages" + os.sep, "dist-packages" + os.sep)
_GENERATED = ("__autograph_generated_file", "<frozen ", "<__array_function__")


@functools.cache
def is_user_file(path: str) -> bool:
    """Returns whether a file is the user's, as opposed to a library's.

    TensorFlow, Keras, NumPy, optree, tfsafe and the standard library are libraries.
    Other installed packages count as the user's: they may well be.
    """
    if path.startswith(_LIBRARIES) or any(mark in path for mark in _GENERATED):
        return False
    return not path.startswith(_STANDARD) or any(mark in path for mark in _INSTALLED)


def is_part_of_tensorflow(path: str) -> bool:
    """Returns whether a file is TensorFlow's, or made by it of another."""
    return path.startswith(_LIBRARIES[0]) or any(mark in path for mark in _GENERATED)


def is_own_file(path: str) -> bool:
    """Returns whether a file is of this package."""
    return path.startswith(_PACKAGE)


def is_part_of_keras(path: str) -> bool:
    """Returns whether a file has layers, losses, metrics or the training of Keras."""
    return path.startswith(_PARTS_OF_KERAS)


def is_file_of_keras(path: str) -> bool:
    """Returns whether a file is Keras', with its functions of tensors."""
    return path.startswith(_LIBRARIES[1])


def is_file_of_optimizers(path: str) -> bool:
    """Returns whether a file is one of Keras' optimizers."""
    return path.startswith(_OPTIMIZERS_OF_KERAS)


def is_file_of_saving(path: str) -> bool:
    """Returns whether a file is one of those with which Keras reads saved models."""
    return path.startswith(_SAVING_OF_KERAS)


def begins_at_log_of_zero(path: str) -> bool:
    """Returns whether TensorFlow computes in this file with log(0) = -inf on purpose.

    `tf.nn.ctc_loss` with a `blank_index` does, for what no alignment reaches.
    """
    return path == _CTC


def is_on_stack(is_wanted: Callable[[str], bool]) -> bool:
    """Returns whether a function of certain files is being called.

    Args:
      is_wanted: Returns whether a file is one of them.
    """
    stack = traceback.walk_stack(sys._getframe())
    return any(is_wanted(frame.f_code.co_filename) for frame, _ in stack)


class Call(NamedTuple):
    """A call as the user wrote it.

    Attributes:
      function: The function, `"model.fit"`.
      arguments: The positional arguments.
      keywords: The named arguments.
      targets: The names that the result is assigned to, `"x, y"`; empty without any.
      loop: What the innermost loop around it runs over that gives the arguments,
        `"dataset"`; empty without any.
    """

    function: str
    arguments: tuple[str, ...]
    keywords: dict[str, str]
    targets: str = ""
    loop: str = ""


def user_call(
    is_user: Callable[[str], bool] | None = None, name: str = ""
) -> Call | None:
    """Returns the innermost call on the stack that the user wrote.

    Args:
      is_user: Returns whether a file is the user's; by default, any file outside of
        this package is.
      name: What the function's name ends in, if that is known.

    Returns:
      The call; None if its source is not available or contains several calls.
    """
    frame = _frame_of(is_user or (lambda path: not path.startswith(_PACKAGE)))
    return None if frame is None else _call_in(frame, name)


def looped_over(is_user: Callable[[str], bool]) -> object:
    """Returns what the innermost loop around the user's call runs over.

    Args:
      is_user: Returns whether a file is the user's.

    Returns:
      The object, where the loop gives the arguments of the call and names it; else
      None.
    """
    frame = _frame_of(is_user)
    call = None if frame is None else _call_in(frame, "")
    if frame is None or call is None or not call.loop or not is_name(call.loop):
        return None
    first, *attributes = call.loop.split(".")
    known = {**frame.f_globals, **frame.f_locals}
    return functools.reduce(
        lambda value, name: getattr(value, name, None), attributes, known.get(first)
    )


def _frame_of(is_user: Callable[[str], bool]) -> types.FrameType | None:
    """Returns the innermost frame on the stack of a file of the user's."""
    frame: types.FrameType | None = sys._getframe()
    while frame is not None and not is_user(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def _call_in(frame: types.FrameType, name: str) -> Call | None:
    source, before = _segment(frame, name)
    try:
        tree = ast.parse(source.strip(), mode="eval").body
    # Python 3.11 before 3.11.5 may fail when two threads parse (CPython issue 106905).
    except (SyntaxError, SystemError, ValueError):
        return None
    if not isinstance(tree, ast.Call):
        return None
    if any(isinstance(each, ast.Starred) for each in tree.args):
        return None
    found = _NAMES.fullmatch(before)
    return Call(
        ast.unparse(tree.func),
        tuple(map(ast.unparse, tree.args)),
        {each.arg: ast.unparse(each.value) for each in tree.keywords if each.arg},
        found[1] if found else "",
        _loop_around(frame, _names_in(tree)),
    )


def _names_in(tree: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)}


def _loop_around(frame: types.FrameType, names: set[str]) -> str:
    """Returns what a loop runs over whose variables are among some names."""
    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)
    try:
        nodes = list(ast.walk(ast.parse("".join(lines))))
    except (SyntaxError, SystemError, ValueError):
        return ""
    loops = [
        each
        for each in nodes
        if isinstance(each, ast.For)
        and each.lineno <= frame.f_lineno <= (each.end_lineno or 0)
        and _names_in(each.target) & names
    ]
    if not loops:
        return ""
    source = max(loops, key=lambda each: each.lineno).iter
    while isinstance(source, ast.Call) and source.args:
        # `enumerate(dataset)` and the like count, or show a bar.
        if ast.unparse(source.func).rpartition(".")[2] not in _COUNTING:
            break
        source = source.args[0]
    return ast.unparse(source)


def _segment(frame: types.FrameType, name: str) -> tuple[str, str]:
    """Returns the source of the expression being run, and the assignment before it."""
    path = frame.f_code.co_filename
    if sys.version_info < (3, 11):
        return _segment_of_line(path, frame.f_lineno, name)
    positions = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    first, last, start, end = positions
    if first is None or last is None or start is None or end is None:
        return "", ""
    lines = linecache.getlines(path, frame.f_globals)[first - 1 : last]
    if not lines:
        return "", ""
    # The columns count bytes.
    coded = [line.encode() for line in lines]
    before, after = coded[0][:start], coded[-1][end:].strip()
    coded[-1] = coded[-1][:end]
    coded[0] = coded[0][start:]
    # The result of `x = f(y)[0]` is not what is assigned.
    is_whole = not after or after.startswith((b"#", b";"))
    return b"".join(coded).decode(), before.decode() if is_whole else ""


def _segment_of_line(path: str, line: int, name: str) -> tuple[str, str]:
    """Returns the only call of a name in a statement: Python 3.10 knows no columns."""
    lines = linecache.getlines(path)[line - 1 : line + _LINES]
    for count in range(1, len(lines) + 1):
        text = "".join(lines[:count]).strip()
        try:
            tree = ast.parse(f"{text} pass" if text.endswith(":") else text)
        except SyntaxError:
            continue
        calls = [each for each in ast.walk(tree) if isinstance(each, ast.Call)]
        calls = [call for call in calls if ast.unparse(call.func).endswith(name)]
        if len(calls) != 1:
            break
        statement = tree.body[0]
        is_whole = isinstance(statement, ast.Assign) and statement.value is calls[0]
        before = text.partition("=")[0] + "=" if is_whole else ""
        return ast.unparse(calls[0]), before
    return "", ""


def is_name(expression: str) -> bool:
    """Returns whether an expression is a name, an attribute, or a tuple of these."""
    try:
        tree = ast.parse(expression, mode="eval").body
    except (SyntaxError, SystemError, ValueError):
        return False
    parts = tree.elts if isinstance(tree, ast.Tuple) else [tree]
    return all(isinstance(each, ast.Name | ast.Attribute) for each in parts)


def has_call(expression: str) -> bool:
    """Returns whether an expression calls something when it is computed."""
    try:
        tree = ast.parse(expression, mode="eval")
    except (SyntaxError, SystemError, ValueError):
        return False
    return any(isinstance(each, ast.Call) for each in ast.walk(tree))


def whole(expression: str) -> str:
    """Returns what an expression is a slice of, `x` of `x[i:j]`; else itself."""
    try:
        tree = ast.parse(expression, mode="eval").body
    except (SyntaxError, SystemError, ValueError):
        return expression
    if isinstance(tree, ast.Subscript) and isinstance(tree.slice, ast.Slice):
        return ast.unparse(tree.value)
    return expression


def shown(expression: str) -> str:
    """Returns an expression that is short enough to be repeated; else an empty text."""
    return expression if len(expression) <= _LONGEST else ""
