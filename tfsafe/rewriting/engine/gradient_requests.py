"""One call of `tape.gradient` in a traced function, and how it is answered anew."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tfsafe.rewriting.engine.rule import Value


class Mark(NamedTuple):
    """An operation that stands where a function got one part of a gradient.

    Attributes:
      op: The operation, whose only output is that part.
      source: Position of the source among those of the request.
      part: `"dense"`, or `"values"` or `"indices"` of slices.
    """

    op: tf.Operation
    source: int
    part: str


class Request(NamedTuple):
    """What a function asked of a tape.

    Attributes:
      graph: The graph in which it did.
      targets: What is differentiated.
      sources: In what; the handle for a variable.
      upstream: Incoming gradients of the targets, None for ones.
      stops: Tensors through which the tape does not see, although they depend on
        a source: it did not record what made them.
      marks: Where the answer went.
    """

    graph: tf.Graph
    targets: Sequence[tf.Tensor]
    sources: Sequence[tf.Tensor]
    upstream: Sequence[tf.Tensor | None]
    stops: Sequence[tf.Tensor]
    marks: Sequence[Mark]

    def reads(self) -> list[tf.Tensor]:
        """Returns all tensors that an answer takes."""
        upstream = [each for each in self.upstream if each is not None]
        return [*self.targets, *self.sources, *upstream, *self.stops]

    def opaque(self) -> set[str]:
        """Returns the names of the tensors that nothing may be computed around.

        A formula that leaves them out would have no gradient in them.
        """
        held = [*self.sources, *self.stops]
        return {each.name for each in held if each.op.type != "Placeholder"}

    def twin(self, value: Value, marks: Sequence[Mark]) -> "Request":
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
          value: Gives the twin of a tensor of `graph`.

        Returns:
          One tensor for each mark.
        """
        twin = self.twin(value, self.marks)
        gradients = tf.gradients(
            twin.targets,
            twin.sources,
            grad_ys=twin.upstream,
            stop_gradients=twin.stops,
        )
        return [
            _part(gradients[mark.source], twin.sources[mark.source], mark)
            for mark in self.marks
        ]


def _part(gradient: Any, source: tf.Tensor, mark: Mark) -> tf.Tensor:
    like = mark.op.outputs[0]
    if gradient is None:
        # What stands in place of the old formula does not depend on the source at all.
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


def stand_ins(request: Request, value: Value, add: Callable[[Request], None]) -> Any:
    """Makes the marks of a request in a graph that will only be read.

    Args:
      request: The request in the graph that is emitted.
      value: Gives the twin of a tensor of that graph.
      add: Is given the request as it is in the graph that is being made.

    Returns:
      One tensor for each mark.
    """
    marks = []
    for mark in request.marks:
        like = mark.op.outputs[0]
        empty = tf.identity(tf.compat.v1.placeholder(like.dtype, like.shape))
        marks.append(mark._replace(op=empty.op))
    add(request.twin(value, marks))
    return [mark.op.outputs[0] for mark in marks]


class Answered:
    """Makes the outputs of the marks of a request, which share one answer."""

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
    """Returns how to make each mark of some requests, by the name of its operation."""
    found = {}
    for request in requests:
        answered = Answered(request, answer)
        for index, mark in enumerate(request.marks):
            found[mark.op.name] = answered.part(index)
    return found


def frontier(
    targets: Sequence[tf.Tensor], sources: Sequence[tf.Tensor], recorded: set[str]
) -> list[tf.Tensor]:
    """Finds where the part of a graph begins that a tape recorded.

    Args:
      targets: What is differentiated.
      sources: In what.
      recorded: Names of the operations that the tape saw.

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
    """Returns what a tensor or handle from outside is called in the default graph."""
    if getattr(tensor, "graph", None) is tf.compat.v1.get_default_graph():
        return tensor
    return tf.identity(tensor).op.inputs[0]
