"""Reads traced functions: their bodies and their order."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tfsafe import _compat
from tfsafe.graph._op_facts import OpFact, op_types

KERNEL_RANDOM = op_types(OpFact.DRAWS)
PLAIN_CALLS = op_types(OpFact.PLAIN_CALL)
LOOPS = op_types(OpFact.LOOP)
BRANCHES = op_types(OpFact.BRANCH)
CASES = op_types(OpFact.CASE)
# Where the arguments of the called functions begin among the operation's inputs.
ARGUMENTS = {
    **dict.fromkeys(LOOPS | PLAIN_CALLS, 0),
    **dict.fromkeys(BRANCHES | CASES, 1),
}
_NONE: Mapping[str, Sequence[tf.Operation]] = {}


class UnreadableError(Exception):
    """A traced function holds something that cannot be run operation by operation.

    Attributes:
      inputs: The inputs of the operation that raised an error; empty without one.
    """

    def __init__(self, words: str, inputs: Sequence[Any] = ()):
        super().__init__(words)
        self.inputs = inputs


class TooDeepError(Exception):
    """A maker asked for a tensor that is to be made before the maker is asked again.

    Attributes:
      tensor: The tensor.
    """

    def __init__(self, tensor: tf.Tensor):
        super().__init__(tensor.name)
        self.tensor = tensor


def is_call(op: tf.Operation) -> bool:
    """Returns whether the operation runs functions of its own graph."""
    return op.type in ARGUMENTS


def is_compiled(op: tf.Operation) -> bool:
    """Returns whether the operation calls a function that XLA compiles."""
    return _compat.is_xla(op.node_def)


def has_plain_calls(graph: tf.Graph) -> bool:
    """Returns whether a graph calls functions that can be emitted in its place."""
    return any(
        op.type in PLAIN_CALLS and not is_compiled(op) for op in graph.get_operations()
    )


def body(op: tf.Operation, attribute: str) -> tf.Graph:
    """Returns the graph of the function that an attribute of `op` names.

    Raises:
      UnreadableError: If the function is not known in Python.
    """
    return _named(op, op.get_attr(attribute).name)


def loop_graphs(op: tf.Operation) -> tuple[tf.Graph, tf.Graph]:
    """Returns the graphs of the condition and of the body of a loop.

    Raises:
      UnreadableError: If one of them is not known in Python.
    """
    return body(op, "cond"), body(op, "body")


def branches(op: tf.Operation) -> list[tf.Graph]:
    """Returns the graphs of an `If` or a `Case` operation.

    Raises:
      UnreadableError: If one of them is not known in Python.
    """
    if op.type in BRANCHES:
        return [body(op, "then_branch"), body(op, "else_branch")]
    return [_named(op, function.name) for function in op.get_attr("branches")]


# Attribute of a graph that was read from a file: the graphs of its functions, by name.
_BODIES = "tfsafe_bodies"


def note_bodies(graph: tf.Graph, graphs: Mapping[str, tf.Graph]) -> None:
    """Notes the graphs of the functions that a graph calls, by name."""
    setattr(graph, _BODIES, dict(graphs))


# Attribute of a graph that was read from a file: the position of each operation in the
# program, by name. TensorFlow reads operations in an order of its own.
_ORDER = "tfsafe_order"


def note_order(graph: tf.Graph, names: Iterable[str]) -> None:
    """Notes the order in which the program made the operations of a graph."""
    setattr(graph, _ORDER, {name: i for i, name in enumerate(names)})


def as_made(graph: tf.Graph) -> list[tf.Operation]:
    """Returns the operations of a graph in the order in which the program made them."""
    order = getattr(graph, _ORDER, None)
    operations = graph.get_operations()
    return sorted(operations, key=lambda op: order[op.name]) if order else operations


def _named(op: tf.Operation, name: str) -> tf.Graph:
    graph = getattr(op.graph, _BODIES, {}).get(name)
    if graph is None:
        graph = _compat.function_graph(op.graph, name)
    if graph is None:
        raise UnreadableError(f"the function `{name}` is not known in Python")
    return graph


def bodies(op: tf.Operation) -> Iterator[tf.Graph]:
    """Yields the graphs of the functions that an operation runs.

    Raises:
      UnreadableError: If one of them is not known in Python.
    """
    for name, value in op.node_def.attr.items():
        if value.HasField("func"):
            yield body(op, name)
    if op.type in CASES:
        yield from branches(op)


def behind_identities(tensor: tf.Tensor) -> tf.Tensor:
    """Returns the tensor that one is a copy of, or the tensor itself."""
    while tensor.op.type == "Identity":
        tensor = tensor.op.inputs[0]
    return tensor


def results_in_bodies(op: tf.Operation, index: int) -> list[tf.Tensor]:
    """Returns what an output of a call is in the functions that may give it.

    Raises:
      UnreadableError: If one of them is not known in Python.
    """
    graphs = [body(op, "body")] if op.type in LOOPS else bodies(op)
    return [graph.outputs[index] for graph in graphs]


def earlier(op: tf.Operation, position: int) -> list[tf.Tensor]:
    """Returns what an argument of the functions of a call is: in a loop, each time."""
    outside = op.inputs[ARGUMENTS[op.type] + position]
    again = results_in_bodies(op, position) if op.type in LOOPS else []
    return [outside, *again]


def unchanged(body: tf.Graph) -> set[int]:
    """Returns the positions of the loop variables that a body returns unchanged."""
    fixed = set()
    for index, (given, result) in enumerate(
        zip(body.inputs, body.outputs, strict=True)
    ):
        if behind_identities(result).name == given.name:
            fixed.add(index)
    return fixed


def maximum_iterations(op: tf.Operation, inputs: Sequence[Any]) -> Any:
    """Returns the limit that `tf.while_loop` was given, or None.

    It is the second of the loop variables, -1 for no limit. XLA needs it to
    differentiate the loop.

    Args:
      op: The loop.
      inputs: The copies of its inputs.
    """
    # By the counter that comes before it: the limit may be any tensor of the program.
    if len(op.inputs) < 2 or not _compat.is_loop_counter(op.inputs[0].name):
        return None
    known = tf.get_static_value(op.inputs[1])
    return None if known is not None and known < 0 else inputs[1]


def family(graph: tf.Graph) -> list[tf.Graph]:
    """Returns a graph and, after it, those of all functions that it calls."""
    found = [graph]
    for op in graph.get_operations():
        if is_call(op):
            for inner in bodies(op):
                found += family(inner)
    return found


def in_order(
    graph: tf.Graph, meetings: Mapping[str, Sequence[tf.Operation]] = _NONE
) -> list[tf.Operation]:
    """Returns the operations in an order in which they can be run.

    That is the order of creation, save that TensorFlow adds inputs to a loop after
    it was made: the accumulators that its gradient asks for.

    Args:
      graph: Graph of a traced function.
      meetings: The operations that are run together, by the name of each: the inputs
        of all come before the first of them.
    """
    done: set[str] = set()
    order: list[tf.Operation] = []
    for op in graph.get_operations():
        # A stack in place of recursion: a graph can be deeper than Python's limit.
        stack = [op]
        while stack:
            top = stack[-1]
            needed = [
                tensor.op
                for each in (top, *meetings.get(top.name, ()))
                for tensor in each.inputs
            ]
            needed += top.control_inputs
            missing = [each for each in needed if each.name not in done]
            if top.name in done or not missing:
                stack.pop()
                if top.name not in done:
                    done.add(top.name)
                    order.append(top)
            else:
                stack.extend(reversed(missing))
    return order


def attributes(op: tf.Operation) -> dict[str, Any]:
    """Returns the attributes of `op` that its `tf.raw_ops` function takes.

    Without those that follow from the inputs.
    """
    definition = op.op_def
    inferred = {
        name
        for argument in definition.input_arg
        for name in (argument.number_attr, argument.type_attr, argument.type_list_attr)
    }
    return {
        attribute.name: op.get_attr(attribute.name)
        for attribute in definition.attr
        if attribute.name not in inferred
    }
