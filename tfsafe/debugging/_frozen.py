"""Holding back what a call writes until its results are known to be finite."""

import functools
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfsafe.debugging._state import Slot
from tfsafe.graph import Plan, Value, bodies, is_call, is_compiled

_READ = "ReadVariableOp"
# How the new value follows from the old one.
_WRITES = {
    "AssignAddVariableOp": lambda old, new: old + new,
    "AssignSubVariableOp": lambda old, new: old - new,
    "AssignVariableOp": lambda _, new: new,
}
# They look at a variable, but not at its value.
_HARMLESS = frozenset({"VarIsInitializedOp", "VariableShape"})


def plain_variables(graph: tf.Graph) -> set[int]:
    """Returns the positions of the variables that a graph only reads and assigns.

    As a whole, and not within loops, branches or functions that XLA compiles.
    """
    position = {
        tensor.name: index
        for index, tensor in enumerate(graph.inputs)
        if tensor.dtype == tf.resource
    }
    plain = set(position.values())
    for op in graph.get_operations():
        for place, tensor in enumerate(op.inputs):
            index = position.get(tensor.name)
            if index is not None and not _is_plain(op, place):
                plain.discard(index)
    return plain - {position.get(tensor.name, -1) for tensor in graph.outputs}


def _is_plain(op: tf.Operation, place: int) -> bool:
    if op.type in {"PartitionedCall", "StatefulPartitionedCall"}:
        return not is_compiled(op) and place in plain_variables(next(bodies(op)))
    return not is_call(op) and (
        op.type == _READ or op.type in _WRITES or op.type in _HARMLESS
    )


class Frozen:
    """Gives variables their new values at the end of a call, or not at all.

    Args:
      slots: The variables, all of them plain.
      handles: What stands for their handles in the graph that is emitted.
    """

    def __init__(self, slots: Sequence[Slot], handles: Sequence[Any]):
        self._slots = {
            id(handle): slot for slot, handle in zip(slots, handles, strict=True)
        }
        self._old: dict[int, tf.Tensor] = {}
        self._new: dict[int, tf.Tensor] = {}

    def plan(self, graph: tf.Graph) -> Plan:
        """Returns how to make what reads and writes variables; see `graph.Plan`."""
        return {
            op.name: functools.partial(self._make, op)
            for op in graph.get_operations()
            if op.type == _READ or op.type in _WRITES
        }

    def _make(self, op: tf.Operation, value: Value) -> list[tf.Tensor]:
        handle = value(op.inputs[0])
        if id(handle) not in self._slots:
            return _copied(op, value)
        if op.type == _READ:
            return [self._value(handle, op.outputs[0])]
        new = value(op.inputs[1])
        old = None if op.type == "AssignVariableOp" else self._value(handle, new)
        self._new[id(handle)] = _WRITES[op.type](old, new)
        return []

    def _value(self, handle: Any, like: tf.Tensor) -> tf.Tensor:
        key = id(handle)
        if key not in self._new and key not in self._old:
            self._old[key] = tf.raw_ops.ReadVariableOp(
                resource=handle, dtype=like.dtype
            )
            self._old[key].set_shape(like.shape)
        return self._new.get(key, self._old.get(key))

    def values(self) -> list[tf.Tensor]:
        """Returns the new values."""
        return list(self._new.values())

    def commit(self, is_good: tf.Tensor, *, compiled: bool) -> None:
        """Writes the new values, if the call is good.

        Args:
          is_good: Whether it is.
          compiled: Whether XLA compiles the graph.
        """
        if compiled:
            for key, new in self._new.items():
                slot = self._slots[key]
                old = self._old.get(key)
                slot.write(tf.where(is_good, new, slot.read() if old is None else old))
            return

        def write() -> tf.Tensor:
            for key, new in self._new.items():
                self._slots[key].write(new)
            return is_good

        tf.cond(is_good, write, lambda: is_good)


def _copied(op: tf.Operation, value: Value) -> list[tf.Tensor]:
    raw = getattr(tf.raw_ops, op.type)
    if op.type == _READ:
        copy = raw(resource=value(op.inputs[0]), dtype=op.outputs[0].dtype)
        copy.set_shape(op.outputs[0].shape)
        return [copy]
    raw(resource=value(op.inputs[0]), value=value(op.inputs[1]))
    return []
