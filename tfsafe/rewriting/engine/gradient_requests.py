"""Describes a derivative that a traced function asked for and recomputes it."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tfsafe import _compat
from tfsafe.rewriting.engine.derivatives import Asked, Derivative
from tfsafe.rewriting.engine.rule import Value


class Mark(NamedTuple):
    """An operation that marks where a function received one part of a gradient.

    Attributes:
      op: The operation, whose only output is that part.
      position: Position of the part's derivative among those of the request.
      part: `"dense"`, or `"values"` or `"indices"` of slices.
    """

    op: tf.Operation
    position: int
    part: str


class Request(NamedTuple):
    """A derivative that a function asked for.

    Attributes:
      graph: The graph in which it was asked.
      derivative: Computes it.
      asked: The tensors between which it was asked. The stops depend on a source but
        were made while the tape did not record.
      marks: The operations that carry the answer.
      made: Names of the operations that gave the first answer.
    """

    graph: tf.Graph
    derivative: Derivative
    asked: Asked
    marks: Sequence[Mark]
    made: Collection[str] = ()

    def reads(self) -> list[tf.Tensor]:
        """Returns all tensors that the answer depends on."""
        return [each for part in self.asked for each in part if each is not None]

    def kept(self) -> set[str]:
        """Returns the names of the tensors that a rewrite must keep.

        A formula that no longer contains them would have no gradient by them.
        """
        held = [*self.asked.sources, *self.asked.stops]
        return {each.name for each in held if each.op.type != "Placeholder"}

    def counterpart(self, value: Value, marks: Sequence[Mark]) -> "Request":
        """Returns the same request in the graph that is being made."""
        asked = Asked(
            *(
                [None if each is None else inside(value(each)) for each in part]
                for part in self.asked
            )
        )
        graph = tf.compat.v1.get_default_graph()
        return Request(graph, self.derivative, asked, marks)

    def answer(self, value: Value) -> list[tf.Tensor]:
        """Recomputes the derivative."""
        other = self.counterpart(value, self.marks)
        found = self.derivative(other.asked)
        return [_part(found[mark.position], mark) for mark in self.marks]


def _part(derivative: Any, mark: Mark) -> tf.Tensor:
    like = mark.op.outputs[0]
    if mark.part == "dense":
        dense = tf.cast(tf.convert_to_tensor(derivative), like.dtype)
        dense.set_shape(like.shape)
        return dense
    is_sliced = isinstance(derivative, tf.IndexedSlices)
    if mark.part == "values":
        return derivative.values if is_sliced else tf.cast(derivative, like.dtype)
    if is_sliced:
        return tf.cast(derivative.indices, like.dtype)
    return tf.range(tf.shape(derivative, like.dtype)[0])


def superseded(graph: tf.Graph, requests: Sequence[Request]) -> set[str]:
    """Returns the names of the operations of first answers that are recomputed.

    An answer that is not read is not recomputed, and has the effects of the first.
    """
    if not requests:
        return set()
    read = {x.op.name for op in graph.get_operations() for x in op.inputs}
    read |= {x.op.name for x in graph.outputs}
    used = [r for r in requests if any(mark.op.name in read for mark in r.marks)]
    return {name for request in used for name in request.made}


def opaque_copy(tensor: tf.Tensor) -> tf.Tensor:
    """Copies a tensor so that tapes look through the copy and rules do not."""
    return tf.raw_ops.PlaceholderWithDefault(input=tensor, shape=tensor.shape)


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
        empty = opaque_copy(tf.compat.v1.placeholder(like.dtype, like.shape))
        marks.append(mark._replace(op=empty.op))
    add(request.counterpart(value, marks))
    return [mark.op.outputs[0] for mark in marks]


class Answered:
    """Makes the outputs of the marks of a request from one common answer.

    A graph that is emitted for each of its calls has an answer for each.
    """

    def __init__(
        self,
        request: Request,
        answer: Callable[[Request, Value], Sequence[tf.Tensor]],
    ):
        self.reads = request.reads()
        self._request = request
        self._answer = answer
        self._answers: dict[Value, Sequence[tf.Tensor]] = {}

    def part(self, index: int) -> Callable[[Value], Sequence[tf.Tensor]]:
        """Returns the maker for one mark."""

        def make(value: Value) -> Sequence[tf.Tensor]:
            if value not in self._answers:
                self._answers[value] = self._answer(self._request, value)
            return [self._answers[value][index]]

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
    return _compat.captured(tensor)
