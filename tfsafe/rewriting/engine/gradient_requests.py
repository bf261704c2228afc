"""Describes one call of `tape.gradient` in a traced function and recomputes it."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tfsafe.rewriting.engine.rule import Value


class Mark(NamedTuple):
    """An operation that marks where a function received one part of a gradient.

    Attributes:
      op: The operation, whose only output is that part.
      source: Position of the source among those of the request.
      part: `"dense"`, or `"values"` or `"indices"` of slices.
    """

    op: tf.Operation
    source: int
    part: str


class Request(NamedTuple):
    """A gradient that a function asked of a tape.

    Attributes:
      graph: The graph in which it was asked.
      targets: Tensors that are differentiated.
      sources: Tensors to differentiate by; a variable is given by its handle.
      upstream: Incoming gradients of the targets, None for ones.
      stops: Tensors that depend on a source but were made while the tape did not
        record; the gradient ends at them.
      marks: The operations that carry the answer.
    """

    graph: tf.Graph
    targets: Sequence[tf.Tensor]
    sources: Sequence[tf.Tensor]
    upstream: Sequence[tf.Tensor | None]
    stops: Sequence[tf.Tensor]
    marks: Sequence[Mark]

    def reads(self) -> list[tf.Tensor]:
        """Returns all tensors that the answer depends on."""
        upstream = [each for each in self.upstream if each is not None]
        return [*self.targets, *self.sources, *upstream, *self.stops]

    def opaque(self) -> set[str]:
        """Returns the names of the tensors that a rewrite must keep.

        A formula that no longer contains them would have no gradient by them.
        """
        held = [*self.sources, *self.stops]
        return {each.name for each in held if each.op.type != "Placeholder"}

    def counterpart(self, value: Value, marks: Sequence[Mark]) -> "Request":
        """Returns the same request in the graph that is being made."""
        return Request(
            tf.compat.v1.get_default_graph(),
            [inside(value(each)) for each in self.targets],
            [inside(value(each)) for each in self.sources],
            [None if each is None else inside(value(each)) for each in self.upstream],
            [inside(value(each)) for each in self.stops],
            marks,
        )

    def answer(self, value: Value) -> list[tf.Tensor]:
        """Computes the gradients again.

        Args:
          value: Returns the counterpart of a tensor of `graph`.

        Returns:
          One tensor for each mark.
        """
        other = self.counterpart(value, self.marks)
        gradients = tf.gradients(
            other.targets,
            other.sources,
            grad_ys=other.upstream,
            stop_gradients=other.stops,
        )
        return [
            _part(gradients[mark.source], other.sources[mark.source], mark)
            for mark in self.marks
        ]


def _part(gradient: Any, source: tf.Tensor, mark: Mark) -> tf.Tensor:
    like = mark.op.outputs[0]
    if gradient is None:
        # The replacement of the old formula does not depend on the source at all.
        is_handle = source.dtype == tf.resource
        shape = (
            tf.raw_ops.VariableShape(input=source) if is_handle else tf.shape(source)
        )
        gradient = tf.zeros(shape, tf.int32 if mark.part == "indices" else like.dtype)
    if mark.part == "dense":
        dense = tf.convert_to_tensor(gradient)
        dense.set_shape(like.shape)
        return dense
    is_sliced = isinstance(gradient, tf.IndexedSlices)
    if mark.part == "values":
        return gradient.values if is_sliced else gradient
    if is_sliced:
        return tf.cast(gradient.indices, like.dtype)
    return tf.range(tf.shape(gradient, like.dtype)[0])


def placeholders(request: Request, value: Value, add: Callable[[Request], None]) -> Any:
    """Makes the marks of a request in a graph that will only be read.

    Args:
      request: The request in the graph that is emitted.
      value: Returns the counterpart of a tensor of that graph.
      add: Called with the counterpart of the request in the graph being made.

    Returns:
      One tensor for each mark.
    """
    marks = []
    for mark in request.marks:
        like = mark.op.outputs[0]
        empty = tf.identity(tf.compat.v1.placeholder(like.dtype, like.shape))
        marks.append(mark._replace(op=empty.op))
    add(request.counterpart(value, marks))
    return [mark.op.outputs[0] for mark in marks]


class Answered:
    """Makes the outputs of the marks of a request from one common answer."""

    def __init__(
        self,
        request: Request,
        answer: Callable[[Request, Value], Sequence[tf.Tensor]],
    ):
        self.reads = request.reads()
        self._request = request
        self._answer = answer
        self._answers: Sequence[tf.Tensor] = ()

    def part(self, index: int) -> Callable[[Value], Sequence[tf.Tensor]]:
        """Returns the maker for one mark."""

        def make(value: Value) -> Sequence[tf.Tensor]:
            if not self._answers:
                self._answers = self._answer(self._request, value)
            return [self._answers[index]]

        make.reads = self.reads  # type: ignore[attr-defined]
        return make


def makers(
    requests: Sequence[Request],
    answer: Callable[[Request, Value], Sequence[tf.Tensor]],
) -> dict[str, Callable[[Value], Sequence[tf.Tensor]]]:
    """Returns a maker for each mark of some requests, by the name of its operation."""
    found = {}
    for request in requests:
        answered = Answered(request, answer)
        for index, mark in enumerate(request.marks):
            found[mark.op.name] = answered.part(index)
    return found


def frontier(
    targets: Sequence[tf.Tensor], sources: Sequence[tf.Tensor], recorded: set[str]
) -> list[tf.Tensor]:
    """Finds where the recorded part of a graph begins.

    Args:
      targets: Tensors that are differentiated.
      sources: Tensors to differentiate by.
      recorded: Names of the operations that the tape recorded.

    Returns:
      The tensors that recorded operations between sources and targets take from
      others, and that depend on a source themselves.
    """
    edge: dict[str, tf.Tensor] = {}
    queue, seen = list(targets), set()
    while queue:
        tensor = queue.pop()
        if tensor.op.name not in recorded:
            edge[tensor.name] = tensor
        elif tensor.op.name not in seen:
            seen.add(tensor.op.name)
            queue.extend(tensor.op.inputs)
    if not edge:
        return []
    behind = _dependents(sources)
    return [each for each in edge.values() if each.op.name in behind]


def _dependents(sources: Sequence[tf.Tensor]) -> set[str]:
    """Returns the names of the operations that depend on a tensor."""
    found: set[str] = set()
    queue = list(sources)
    while queue:
        for op in queue.pop().consumers():
            if op.name not in found:
                found.add(op.name)
                queue.extend(op.outputs)
    return found


def inside(tensor: Any) -> tf.Tensor:
    """Returns a tensor or handle from outside as captured by the default graph."""
    if getattr(tensor, "graph", None) is tf.compat.v1.get_default_graph():
        return tensor
    return tf.identity(tensor).op.inputs[0]
