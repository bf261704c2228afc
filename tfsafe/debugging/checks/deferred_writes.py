"""Delays what a call writes until its results are known to be finite."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfsafe.graph import (
    PLAIN_CALLS,
    OpFact,
    Plan,
    Value,
    bodies,
    is_call,
    is_compiled,
    op_types,
)

_READ = "ReadVariableOp"
# How the new value follows from the old one.
_WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "AssignAddVariableOp": lambda old, new: old + new,
    "AssignSubVariableOp": lambda old, new: old - new,
    "AssignVariableOp": lambda _, new: new,
}
_OF_VARIABLES = ("Assign", "ReadVariable", "Resource", "Rng", "Stateful", "Var")
_HARMLESS = op_types(OpFact.IGNORES_VALUE)


def may_repeat(op: tf.Operation) -> bool:
    """Returns whether an operation has no effects but on values of variables."""
    return (
        not op.op_def.is_stateful
        or is_call(op)
        or op.type == "Placeholder"
        or op.type.startswith(_OF_VARIABLES)
    )


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
    if op.type in PLAIN_CALLS:
        return not is_compiled(op) and place in plain_variables(next(bodies(op)))
    return not is_call(op) and (
        op.type == _READ or op.type in _WRITES or op.type in _HARMLESS
    )


class Frozen:
    """Gives variables their new values at the end of a call, or not at all.

    The old values need not be kept then: nothing has to be restored.

    Args:
      handles: The handles of the variables, all of them plain.
    """

    def __init__(self, handles: Sequence[tf.Tensor]):
        self._handles = {id(handle): handle for handle in handles}
        self._old: dict[int, tf.Tensor] = {}
        self._new: dict[int, tf.Tensor] = {}

    def plan(self, graph: tf.Graph) -> Plan:
        """Returns how to make what reads and writes variables; see `graph.Plan`."""
        if not self._handles:
            return {}
        return {
            op.name: functools.partial(self._make, op)
            for op in graph.get_operations()
            if op.type == _READ or op.type in _WRITES
        }

    def _make(self, op: tf.Operation, value: Value) -> list[tf.Tensor]:
        handle = value(op.inputs[0])
        if id(handle) not in self._handles:
            return _copied(op, value)
        if op.type == _READ:
            return [self._value(handle, op.outputs[0])]
        new = value(op.inputs[1])
        old = None if op.type == "AssignVariableOp" else self._value(handle, new)
        self._new[id(handle)] = _WRITES[op.type](old, new)
        return []

    def _value(self, handle: tf.Tensor, like: tf.Tensor) -> tf.Tensor:
        key = id(handle)
        if key in self._new:
            return self._new[key]
        if key not in self._old:
            self._old[key] = _read(handle, like)
        return self._old[key]

    def values(self) -> list[tf.Tensor]:
        """Returns the new values."""
        return list(self._new.values())

    def commit(self, is_good: tf.Tensor) -> None:
        """Writes the new values if the call is good."""

        def write() -> tf.Tensor:
            for key, new in self._new.items():
                tf.raw_ops.AssignVariableOp(resource=self._handles[key], value=new)
            return is_good

        if self._new:
            tf.cond(is_good, write, lambda: is_good)


def _read(handle: tf.Tensor, like: tf.Tensor) -> tf.Tensor:
    value = tf.raw_ops.ReadVariableOp(resource=handle, dtype=like.dtype)
    value.set_shape(like.shape)
    return value


def _copied(op: tf.Operation, value: Value) -> list[tf.Tensor]:
    handle = value(op.inputs[0])
    if op.type == _READ:
        return [_read(handle, op.outputs[0])]
    getattr(tf.raw_ops, op.type)(resource=handle, value=value(op.inputs[1]))
    return []
