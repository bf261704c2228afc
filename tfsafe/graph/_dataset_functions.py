"""Reads and emits the functions that datasets call, such as the body of a loop.

AutoGraph makes `for x in dataset` a scan of the dataset and a reduction. These, `map`,
`filter` and others call one function, of state and element and of what it captured.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import tensorflow as tf

from tfsafe import _compat
from tfsafe._faults import warn_of_fault
from tfsafe.graph import _functions, _places

_CAPTURED = "other_arguments"


def body(op: tf.Operation) -> tf.Graph | None:
    """Returns the graph of the one function that an operation on a dataset calls.

    None for another operation, and for a function that Python does not know.
    """
    name = _attribute(op)
    if name is None:
        return None
    try:
        graph = _functions.body(op, name)
        _functions.family(graph)
    except _functions.UnreadableError:
        return None
    return graph


def _attribute(op: tf.Operation) -> str | None:
    """Returns the name of the attribute that has the function."""
    if "Dataset" not in op.type:
        return None
    definition = _compat.op_def(op)
    names = [each.name for each in definition.attr if "func" in each.type]
    is_known = any(each.name == _CAPTURED for each in definition.input_arg)
    return names[0] if is_known and len(names) == 1 else None


def first_argument(op: tf.Operation, graph: tf.Graph) -> int:
    """Returns where the inputs of the function would begin among the operation's.

    The captured ones are among both; state and element come from the dataset.
    """
    names = [each.name for each in _compat.op_def(op).input_arg]
    before = list(named(op, op.inputs).values())[: names.index(_CAPTURED)]
    captured = len(named(op, op.inputs)[_CAPTURED])
    start = sum(len(each) if isinstance(each, list) else 1 for each in before)
    return start + captured - len(graph.inputs)


def family(graph: tf.Graph) -> Iterator[tf.Graph]:
    """Yields a graph, those that it calls, and those that its datasets call."""
    for each in _functions.family(graph):
        yield each
        for op in each.get_operations():
            inner = body(op)
            if inner is not None:
                yield from family(inner)


class _Emission(Protocol):
    """What is asked of an `Emission`."""

    datasets: bool

    def plan_of(self, graph: tf.Graph) -> Any:
        """Returns what replaces operations of a graph."""


def emitted(
    emission: _Emission,
    body_of: Callable[[tf.Graph, Sequence[Any]], Any],
    op: tf.Operation,
    inputs: Sequence[Any],
) -> Sequence[tf.Tensor] | None:
    """Emits an operation on a dataset with a function of its own.

    Args:
      emission: The emission.
      body_of: Begins to emit a function, for the copies of its inputs.
      op: The operation.
      inputs: The copies of its inputs.

    Returns:
      The outputs, or None if the operation is another one or is to be copied.
    """
    attribute = _attribute(op) if emission.datasets else None
    graph = None if attribute is None else body(op)
    if (
        attribute is None
        or graph is None
        or not any(
            emission.plan_of(each) or _functions.has_plain_calls(each)
            for each in family(graph)
        )
    ):
        return None
    by_name = named(op, inputs)
    captured = by_name[_CAPTURED]
    count = len(graph.inputs) - len(captured)

    def function(*args: tf.Tensor) -> Sequence[tf.Tensor]:
        values = [*args, *map(_compat.captured, captured)]
        return body_of(graph, values).run()[0]

    try:
        concrete = tf.function(
            function,
            input_signature=[
                tf.TensorSpec(each.shape, each.dtype) for each in graph.inputs[:count]
            ],
            autograph=False,
            # As `tf.data` has it.
            experimental_attributes={"_tf_data_function": True},
        ).get_concrete_function()
    except Exception as error:
        warn_of_fault(f"the function of `{op.type}`", error)
        return None
    by_name[_CAPTURED] = concrete.captured_inputs
    call: dict[str, Any] = {**by_name, **_functions.attributes(op)}
    call[attribute], call["name"] = concrete, op.name
    made = getattr(tf.raw_ops, op.type)(**call)
    copy = tf.nest.flatten(made)[0].op
    _places.note_copy(copy, op)
    for tensor, output in zip(op.outputs, copy.outputs, strict=True):
        output.set_shape(tensor.shape)
    return copy.outputs


def named(op: tf.Operation, inputs: Sequence[Any]) -> dict[str, Any]:
    """Returns values for the inputs of an operation by name."""
    left, found = iter(inputs), {}
    for each in _compat.op_def(op).input_arg:
        if each.type_list_attr:
            count = len(op.get_attr(each.type_list_attr))
            found[each.name] = [next(left) for _ in range(count)]
        else:
            found[each.name] = next(left)
    return found
