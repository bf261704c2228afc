"""Records every operation of a Python function that runs eagerly."""

import functools
import itertools
import linecache
import sys
import types
import weakref
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfsafe import _compat
from tfsafe._faults import contained
from tfsafe.debugging import values
from tfsafe.debugging.state.variables import Held, Slot, variables_in
from tfsafe.debugging.tracing.provenance import Propagation
from tfsafe.debugging.tracing.replay import follow
from tfsafe.debugging.tracing.step import OnLine, Step, maker
from tfsafe.graph import (
    Frame,
    Place,
    UnreadableError,
    is_of_library,
    is_user_file,
    site_of,
    split_frames,
    written_inputs,
)

# So many tensors are remembered; the oldest are forgotten first.
_AT_MOST = 100_000
_UNKNOWN: Frame = ("", 0, "")


class Recorder:
    """Follows non-finite values through the operations of one eager call.

    Attributes:
      propagation: As given.
      before: The variables that the call has read, with their values before it.
      written: The handles of the variables that it may have changed.
      is_busy: Whether it is at work, and ignores what it runs itself.
    """

    def __init__(self, propagation: Propagation):
        self.propagation = propagation
        self.before: dict[int, Held] = {}
        self.written: dict[int, tf.Tensor] = {}
        self._graphs: weakref.WeakValueDictionary[int, tf.Graph] = (
            weakref.WeakValueDictionary()
        )
        # What made a tensor, and what read it: for the forward line of a gradient.
        self._makers: dict[int, tuple[str, Frame, weakref.ref[tf.Tensor]]] = {}
        self._readers: dict[tuple[str, int, int], Frame] = {}
        # The variables met, by `id` of the handle.
        self._owners: weakref.WeakValueDictionary[int, Any] = (
            weakref.WeakValueDictionary()
        )
        propagation.names.append(self._owned)
        self.is_busy = False

    def __call__(
        self,
        op_type: str | bytes,
        inputs: Sequence[tf.Tensor],
        attrs: Any,
        outputs: Sequence[tf.Tensor],
        op_name: str | None = None,
        graph: tf.Graph | None = None,
    ) -> None:
        """Records one operation."""
        del op_name
        # The recorder runs operations too.
        if graph is not None or self.is_busy:
            return
        self.is_busy = True
        try:
            kind, frame = tf.compat.as_str(op_type), sys._getframe(1)
            with contained("following an operation"):
                self._note(kind, inputs, outputs, attrs, frame)
        finally:
            self.is_busy = False

    def _note(
        self,
        kind: str,
        inputs: Sequence[tf.Tensor],
        outputs: Sequence[tf.Tensor],
        attrs: Any,
        frame: types.FrameType,
    ) -> None:
        self._follow_state(kind, inputs, outputs)
        for each in inputs:
            if each.dtype == tf.resource and id(each) not in self._owners:
                owner = _owner(each, frame)
                if owner is not None:
                    self._owners[id(each)] = owner
        step = Step(
            kind,
            "",
            inputs,
            outputs,
            functools.partial(self._place, frame),
            lambda: [self._made(each)[0] for each in inputs],
            # Alternately names and values.
            attribute=dict(zip(attrs[::2], attrs[1::2], strict=True)).get,
            on_line=functools.partial(_on_line, frame),
        )
        if hasattr(tf.raw_ops, kind):
            self.propagation.observe(step)
        else:
            self._observe_function(step, frame)
        self._remember(kind, inputs, outputs, self._line(frame))

    def _remember(
        self,
        kind: str,
        inputs: Sequence[tf.Tensor],
        outputs: Sequence[tf.Tensor],
        line: Frame,
    ) -> None:
        before, there = self._made(inputs[0], line) if inputs else ("", line)
        made_by = maker(kind, before)
        where = line if made_by == kind else there
        for each in outputs:
            self._makers[id(each)] = made_by, where, weakref.ref(each)
        for index, each in enumerate(inputs):
            self._readers[kind, index, id(each)] = line
        for known in (self._makers, self._readers):
            if len(known) > _AT_MOST:
                _halve(known)

    def _made(self, tensor: tf.Tensor, line: Frame = _UNKNOWN) -> tuple[str, Frame]:
        """Returns what made a tensor, and its line; no type and `line` if unknown."""
        made_by, where, made = self._makers.get(id(tensor), ("", line, None))
        # A tensor that is gone may have had this `id` before.
        return (made_by, where) if made and made() is tensor else ("", line)

    def name_of(self, handle: tf.Tensor) -> str:
        """Returns the name of a variable that the program holds; empty if unknown."""
        owner = self._owners.get(id(handle))
        if owner is None:
            return ""
        return str(getattr(owner, "path", owner.name)).partition(":")[0]

    def handles(self) -> list[tf.Tensor]:
        """Returns the handles of the variables that were met and are alive."""
        return [
            each for owner in list(self._owners.values()) for each in _handles(owner)
        ]

    def _owned(self, value: Any) -> str:
        name = self.name_of(value)
        return f"variable `{name}`" if name else ""

    def _follow_state(
        self, kind: str, inputs: Sequence[tf.Tensor], outputs: Sequence[tf.Tensor]
    ) -> None:
        for handle in inputs:
            if handle.dtype != tf.resource:
                continue
            if kind != "ReadVariableOp":
                self.written[id(handle)] = handle
            elif id(handle) not in self.before and id(handle) not in self.written:
                slot = Slot(handle, outputs[0].dtype, "")
                self.before[id(handle)] = slot, outputs[0]

    def _observe_function(self, step: Step, frame: types.FrameType) -> None:
        """Looks into a traced function that was called."""
        called = _compat.called_function(frame)
        if called is None or not self._descend(*called, step):
            self.propagation.observe(step._replace(type="StatefulPartitionedCall"))

    def _descend(self, graph: tf.Graph, compiled: bool, step: Step) -> bool:
        """Replays a function; returns whether that explained its non-finite results."""
        self._graphs[id(graph)] = graph
        # A function that changed what it read cannot be replayed.
        if all(map(values.is_clean, step.outputs)) or written_inputs(graph):
            return False
        for xla in (False, True):
            try:
                results, _ = follow(
                    graph,
                    step.inputs,
                    self.propagation,
                    others=list(self._graphs.values()),
                    compiled=compiled,
                    xla=xla,
                )
            except UnreadableError:
                return False
            if any(map(self.propagation.origins, results)):
                for each, result in zip(step.outputs, results, strict=False):
                    if origins := self.propagation.origins(result):
                        self.propagation.mark(each, origins)
                return True
        return False

    def _place(self, frame: types.FrameType) -> Place:
        outer, inner = split_frames(_stack(frame))
        scope = _compat.layers_on_stack(frame)
        if not inner:
            return Place(site_of(outer), scope=scope, is_library=is_of_library(outer))
        own = site_of(inner)
        forward = _compat.differentiated(frame)
        if own is not None or forward is None:
            return Place(own or site_of(outer), True, scope=scope)
        line = self._forward_line(*forward)
        return Place(site_of([line]) or site_of(outer), True, forward[0], scope)

    def _line(self, frame: types.FrameType | None) -> Frame:
        """Returns the user's line; for a library's gradient, the forward one."""
        while frame is not None:
            path, line, name = _compat.before_autograph(frame)
            if is_user_file(path):
                return path, line, name
            if name == "_gradient_function":
                forward = _compat.differentiated(frame)
                found = self._forward_line(*forward) if forward else _UNKNOWN
                if found is not _UNKNOWN:
                    return found
            frame = frame.f_back
        return _UNKNOWN

    def _forward_line(
        self, kind: str, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Frame:
        for each in outputs:
            made_by, line = self._made(each)
            if made_by == kind:
                return line
        found = (
            self._readers.get((kind, index, id(each)))
            for index, each in enumerate(inputs)
        )
        return next(filter(None, found), _UNKNOWN)


def _on_line(frame: types.FrameType | None) -> OnLine:
    """Returns the expression that the innermost frame of the user evaluates."""
    while frame is not None and not is_user_file(frame.f_code.co_filename):
        frame = frame.f_back
    # Python 3.10 does not know it.
    if frame is None or not hasattr(frame.f_code, "co_positions"):
        return OnLine()
    here = itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None)
    first, last, begin, end = (each or 0 for each in next(here))
    lines = linecache.getlines(frame.f_code.co_filename)
    if not 0 < last <= len(lines):
        return OnLine()
    # Columns are counted in bytes.
    encoded = [each.encode() for each in lines[first - 1 : last]]
    encoded[-1] = encoded[-1][:end]
    encoded[0] = encoded[0][begin:]
    return OnLine(text=b"".join(encoded).decode())


def _owner(handle: tf.Tensor, frame: types.FrameType | None) -> Any:
    """Returns the variable on the stack that has a handle.

    A Keras variable if there is one: its path says more.
    """
    found = None
    while frame is not None and not is_user_file(frame.f_code.co_filename):
        for value in list(frame.f_locals.values()):
            is_keras = _compat.is_keras_variable(value)
            is_variable = is_keras or isinstance(value, tf.Variable)
            if is_variable and any(each is handle for each in _handles(value)):
                if is_keras:
                    return value
                found = value if found is None else found
        frame = frame.f_back
    return found


def _handles(variable: Any) -> list[tf.Tensor]:
    """Returns the handles of a variable, those of its replicas."""
    # A variable that is being made has no handle, and no value, yet.
    is_keras = not isinstance(variable, tf.Variable)
    inner = getattr(variable, "value", None) if is_keras else variable
    found = (getattr(each, "handle", None) for each in variables_in(inner))
    return [each for each in found if each is not None]


def _halve(known: dict[Any, Any]) -> None:
    for key in list(known)[: len(known) // 2]:
        del known[key]


def _stack(frame: types.FrameType | None) -> list[Frame]:
    frames: list[Frame] = []
    while frame is not None:
        frames.append(_compat.before_autograph(frame))
        frame = frame.f_back
    return frames[::-1]
