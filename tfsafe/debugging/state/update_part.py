"""Finds the part of a graph that only computes new values of variables."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import tensorflow as tf

from tfsafe import _compat
from tfsafe.graph import OpFact, Value, in_order, op_types

READ = "ReadVariableOp"
# How the new value follows from the old one.
WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "AssignAddVariableOp": lambda old, new: old + new,
    "AssignSubVariableOp": lambda old, new: old - new,
    "AssignVariableOp": lambda _, new: new,
}
# The operations of an optimizer's update. A gradient is the result of another type.
_ELEMENTWISE = op_types(OpFact.ELEMENTWISE) | {"Identity"}
# Below so many bytes, a second copy of the variables costs less than computing their
# new values twice.
LARGE = 2**26


class UpdatePart:
    """The operations that only compute and write new values of large variables.

    They can be left for later and made in a branch, when the results of everything
    else are known: what they read from the rest of the graph is alive until then.

    Args:
      graph: Graph of a traced function.
      handles: Names of the inputs that are handles of variables, which the graph only
        reads and assigns.

    Attributes:
      graph: The graph.
      handles: Those among them whose variables are updated here alone; none if they
        are small.
      operations: Those of this part, in order.
    """

    def __init__(self, graph: tf.Graph, handles: Iterable[str]):
        self.graph = graph
        order = in_order(graph)
        self.handles, names = _closed(graph, order, set(handles))
        if _bytes(order, self.handles) < LARGE:
            self.handles, names = set(), set()
        self.operations = [op for op in order if op.name in names]
        # What each operation depends on in the rest of the graph, by name.
        self._behind: dict[str, dict[str, tf.Tensor]] = {}
        for op in self.operations:
            behind = self._behind[op.name] = {}
            for tensor in op.inputs:
                if tensor.op.name in names:
                    behind |= self._behind[tensor.op.name]
                elif tensor.name not in self.handles:
                    behind[tensor.name] = tensor

    def has(self, op: tf.Operation) -> bool:
        """Returns whether an operation is one of this part."""
        return op.graph is self.graph and op.name in self._behind

    def writes(self, op: tf.Operation) -> bool:
        """Returns whether an operation is a write of this part."""
        return op.graph is self.graph and op.inputs[0].name in self.handles

    def inputs_of(self, op: tf.Operation) -> list[tf.Tensor]:
        """Returns what an operation depends on in the rest of the graph."""
        return list(self._behind[op.name].values())

    @property
    def inputs(self) -> dict[str, tf.Tensor]:
        """What the operations depend on in the rest of the graph, by name."""
        found: dict[str, tf.Tensor] = {}
        for behind in self._behind.values():
            found |= behind
        return found

    def emit(self, given: Mapping[str, tf.Tensor], handle_of: Value) -> None:
        """Makes copies of the operations in the graph that is being made.

        Each write waits for the one before it. Otherwise TensorFlow computes the new
        values of all variables at once, and needs memory for all of them.
        """
        values = dict(given)
        last: list[tf.Operation] = []
        for op in self.operations:
            with tf.control_dependencies(last), tf.device(op.device or None):
                if op.type == READ:
                    read = read_variable(handle_of(op.inputs[0]), op.outputs[0])
                    values[op.outputs[0].name] = read
                elif op.type in WRITES:
                    handle, new = handle_of(op.inputs[0]), values[op.inputs[1].name]
                    last = [getattr(tf.raw_ops, op.type)(resource=handle, value=new)]
                else:
                    inputs = [values[tensor.name] for tensor in op.inputs]
                    values[op.outputs[0].name] = copied(op, inputs)


def read_variable(handle: tf.Tensor, like: tf.Tensor) -> tf.Tensor:
    """Returns the value of a variable, with the dtype and the shape of a tensor."""
    value = tf.raw_ops.ReadVariableOp(resource=handle, dtype=like.dtype)
    value.set_shape(like.shape)
    return value


def copied(op: tf.Operation, inputs: list[tf.Tensor]) -> tf.Tensor:
    """Returns the output of a copy of an operation of the update, with other inputs."""
    attributes = op.node_def.attr
    copy = _compat.create_op(
        op.type,
        inputs,
        [tensor.dtype for tensor in op.outputs],
        attrs={name: attributes[name] for name in attributes if name[0] != "_"},
        op_def=op.op_def,
    )
    return copy.outputs[0]


def _closed(
    graph: tf.Graph, order: list[tf.Operation], handles: set[str]
) -> tuple[set[str], set[str]]:
    """Returns the handles without those whose new value is needed at once.

    Returns:
      The handles, and the names of the operations of the update.
    """
    outputs = {tensor.name for tensor in graph.outputs}
    while True:
        names: set[str] = set()
        for op in reversed(order):
            if _belongs(op, handles, names, outputs):
                names.add(op.name)
        early = _read_early(order, handles, names)
        if not early:
            return handles, names
        handles = handles - early


def _belongs(
    op: tf.Operation,
    handles: Collection[str],
    names: Collection[str],
    outputs: Collection[str],
) -> bool:
    if op.type in WRITES:
        return op.inputs[0].name in handles
    if op.type == READ and op.inputs[0].name not in handles:
        return False
    if op.type != READ and op.type not in _ELEMENTWISE:
        return False
    readers = op.outputs[0].consumers()
    return (
        op.outputs[0].name not in outputs
        and bool(readers)
        and all(each.name in names for each in readers)
    )


def _read_early(
    order: list[tf.Operation], handles: Collection[str], names: Collection[str]
) -> set[str]:
    """Returns the handles that something else uses after they are written."""
    written: set[str] = set()
    early: set[str] = set()
    for op in order:
        for tensor in op.inputs:
            if tensor.name in handles:
                if op.type in WRITES:
                    written.add(tensor.name)
                elif tensor.name in written and op.name not in names:
                    early.add(tensor.name)
                elif op.type != READ:
                    # A function that is called, or a copy of the handle.
                    early.add(tensor.name)
    return early | (set(handles) - written)


def _bytes(order: list[tf.Operation], handles: Collection[str]) -> int:
    sizes: dict[str, int] = {}
    for op in order:
        if op.type in WRITES and op.inputs[0].name in handles:
            value = op.inputs[1]
            if value.shape.is_fully_defined():
                count = math.prod(value.shape)
                sizes[op.inputs[0].name] = count * value.dtype.size
    return sum(sizes.values())
