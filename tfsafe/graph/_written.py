"""Finds the variables that a traced function writes."""

from collections.abc import Iterable

import tensorflow as tf

from tfsafe.graph import _dataset_functions, _functions
from tfsafe.graph._op_facts import OpFact, op_types

READERS = op_types(OpFact.ONLY_READS)


def written_inputs(graph: tf.Graph) -> dict[int, tf.DType]:
    """Finds the variables that a function may write.

    Args:
      graph: Graph of a traced function.

    Returns:
      The dtype of each such variable, by the position of its handle among
      `graph.inputs`. Other resources, such as tables, are ignored.
    """
    written, dtypes = _resources(graph)
    return {index: dtypes[index] for index in sorted(written) if index in dtypes}


def _resources(graph: tf.Graph) -> tuple[set[int], dict[int, tf.DType]]:
    position = {
        tensor.name: index
        for index, tensor in enumerate(graph.inputs)
        if tensor.dtype == tf.resource
    }
    written: set[int] = set()
    dtypes: dict[int, tf.DType] = {}
    for op in _users(graph, position):
        # Each body is looked through once, however many variables it gets.
        first, graphs = _called(op)
        inner = [_resources(each) for each in graphs]
        for place, tensor in enumerate(op.inputs):
            index = position.get(tensor.name)
            if index is None:
                continue
            if not graphs:
                _note(op, index, dtypes)
                if op.type not in READERS:
                    written.add(index)
                continue
            argument = place - first
            for inner_written, inner_dtypes in inner:
                if argument in inner_dtypes:
                    dtypes[index] = inner_dtypes[argument]
                if argument in inner_written:
                    written.add(index)
    return written, dtypes


def _called(op: tf.Operation) -> tuple[int, list[tf.Graph]]:
    """Returns where the arguments begin, and the functions that take them."""
    if _functions.is_call(op):
        return _functions.ARGUMENTS[op.type], list(_functions.bodies(op))
    graph = _dataset_functions.body(op)
    if graph is None:
        return 0, []
    return _dataset_functions.first_argument(op, graph), [graph]


def _users(graph: tf.Graph, position: dict[str, int]) -> Iterable[tf.Operation]:
    """Returns the operations that read handles; adds copies of these to `position`."""
    users: dict[str, tf.Operation] = {}
    handles = [each for each in graph.inputs if each.name in position]
    # Grows while copies are found.
    for handle in handles:
        for op in handle.consumers():
            if op.type == "Identity":
                copy = op.outputs[0]
                position[copy.name] = position[handle.name]
                handles.append(copy)
            else:
                users[op.name] = op
    return users.values()


def _note(op: tf.Operation, index: int, dtypes: dict[int, tf.DType]) -> None:
    if index in dtypes:
        return
    attributes = op.node_def.attr
    if "Variable" in op.type or op.type.startswith("Resource"):
        for name in ("dtype", "T"):
            if name in attributes:
                dtypes[index] = op.get_attr(name)
    elif op.type.startswith(("Rng", "Stateful")):
        # The state of a `tf.random.Generator`.
        dtypes[index] = tf.int64
