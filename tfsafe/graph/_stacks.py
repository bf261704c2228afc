"""The Python stacks that operations of a graph were made in."""

import contextlib
import contextvars
import itertools
import linecache
import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence

import tensorflow as tf

from tfsafe import _compat
from tfsafe._report.caller import (
    is_own_file,
    is_part_of_keras,
    is_part_of_tensorflow,
    is_user_file,
)
from tfsafe.errors import Site

# One frame of a stack: file, line, function.
Frame = tuple[str, int, str]


def site_of(frames: Iterable[Frame]) -> Site | None:
    """Returns the innermost line of the user's, or None.

    Args:
      frames: A stack, outermost frame first.
    """
    inner = None
    for frame in frames:
        if is_user_file(frame[0]):
            inner = frame
    if inner is None:
        return None
    path, line, function = inner
    source = linecache.getline(path, line).strip()
    # AutoGraph has no name for a lambda.
    return Site(path, line, function or "<lambda>", source)


def split_frames(frames: Sequence[Frame]) -> tuple[Sequence[Frame], Sequence[Frame]]:
    """Splits a stack at the innermost call of a gradient function.

    Returns:
      The frames up to that call, and those of the gradient function. The second part
      is empty for an operation of a forward pass.
    """
    for index in range(len(frames) - 1, -1, -1):
        path, _, function = frames[index]
        # AutoGraph has no name for a lambda.
        if function and (
            _compat.GRADIENT_FRAMES.get(os.path.basename(path)) == function
        ):
            return frames[: index + 1], frames[index + 1 :]
    return frames, ()


class Stack:
    """A stack, split at the innermost call of a gradient function."""

    def __init__(self, frames: Sequence[Frame]):
        self.outer, self.inner = split_frames(frames)
        # The user's lines, and the type that a gradient function is registered for.
        self.site = site_of(self.outer)
        self.inner_site = site_of(self.inner)
        self.kind = _gradient_of(self.inner)
        self.is_library = is_of_library(self.outer)
        self.frames = _shown(frames)


def _shown(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """Returns the innermost frames of a traced function and of a library it calls."""
    called = itertools.dropwhile(lambda x: not is_user_file(x[0]), frames)
    traced = itertools.dropwhile(lambda x: not is_part_of_tensorflow(x[0]), called)
    inner = [x for x in traced if not is_part_of_tensorflow(x[0])]
    users = [x for x in inner if is_user_file(x[0])]
    return tuple(dict.fromkeys((*users[-1:], *inner[-1:])))


class _Known:
    """The stacks of operations, each read once."""

    def __init__(self) -> None:
        self._by_op: weakref.WeakKeyDictionary[tf.Graph, dict[str, Stack]] = (
            weakref.WeakKeyDictionary()
        )
        # Few layers and gradient functions make all operations. By hash: what
        # `traceback` returns is freed with the graph, and TensorFlow would take it for
        # a later stack at the same address.
        self._by_trace: dict[int, Stack] = {}

    def stack(self, op: tf.Operation) -> Stack:
        stacks = self._by_op.setdefault(op.graph, {})
        if op.name not in stacks:
            key = hash(op.traceback)
            if key not in self._by_trace:
                self._by_trace[key] = Stack(frames_of(op))
            stacks[op.name] = self._by_trace[key]
        return stacks[op.name]


# While operations are located.
_known: contextvars.ContextVar[_Known | None] = contextvars.ContextVar(
    "known", default=None
)


@contextlib.contextmanager
def stacks_kept() -> Iterator[None]:
    """Makes each stack be read once while operations are located."""
    token = _known.set(_known.get() or _Known())
    try:
        yield
    finally:
        _known.reset(token)


def stack_of(op: tf.Operation) -> Stack:
    """Returns where an operation was made."""
    return (_known.get() or _Known()).stack(op)


def frames_of(op: tf.Operation) -> list[Frame]:
    """Returns the stack of an operation, outermost frame first."""
    trace = op.traceback or ()
    return [(each.filename, each.lineno, each.name) for each in trace]


def _gradient_of(frames: Sequence[Frame]) -> str:
    """Returns the type of operation that a gradient function is registered for."""
    types = (_compat.differentiated_type(path, name) for path, _, name in frames)
    return next(filter(None, types), "")


def is_of_library(frames: Sequence[Frame]) -> bool:
    """Returns whether Keras or tfsafe is the innermost, and not a line of the user."""
    return is_made_by(lambda path: is_part_of_keras(path) or is_own_file(path), frames)


def is_made_by(is_theirs: Callable[[str], bool], frames: Sequence[Frame]) -> bool:
    """Returns whether a file of a library is the innermost, and not one of the user."""
    for path, _, _ in reversed(frames):
        if is_theirs(path):
            return True
        if is_user_file(path):
            return False
    return False
