"""Knows which operations compute the same formula of other inputs.

An optimizer updates each variable by the same arithmetic: where no rule fits in one
update, none fits in the next.
"""

from collections.abc import Hashable

import tensorflow as tf

from tfsafe.graph import OpFact, op_types
from tfsafe.rewriting.facts.finiteness import flow_at
from tfsafe.rewriting.facts.tensors import Reader, attributes

_INNER = op_types(OpFact.ELEMENTWISE, OpFact.COPIES)
_LEAVES = frozenset({
    "Const",
    "Placeholder",
    # Marks a gradient: rules do not look through it.
    "PlaceholderWithDefault",
    "ReadVariableOp",
})
# Operations of a formula, those that it reads twice counted twice.
_MOST = 64


class Forms:
    """Gives the forms of the short elementwise formulas of a graph."""

    def __init__(self, reader: Reader):
        self._reader = reader
        self._sizes: dict[str, int] = {}
        self._kinds: dict[str, int] = {}
        self._known: dict[Hashable, int] = {}

    def of(self, op: tf.Operation) -> Hashable | None:
        """Returns what is equal for operations that no rule can tell apart.

        None for an operation that is not the end of a short elementwise formula.
        """
        if self._size(op) > _MOST:
            return None
        found: list[int] = []
        places: dict[str, int] = {}
        numbers: dict[int, int] = {}
        stack = [op.outputs[0]]
        while stack:
            tensor = stack.pop()
            name, inner = tensor.name, tensor.op
            found.append(places.setdefault(name, len(places)))
            if found[-1] < len(places) - 1:
                continue
            number = self._reader.number(tensor)
            found += (self._kind(inner), numbers.setdefault(number, len(numbers)))
            if inner.type not in _LEAVES:
                stack.extend(inner.inputs)
        return tuple(found)

    def _size(self, op: tf.Operation) -> int:
        """Returns how many operations a formula has; more than `_MOST` for others."""
        known = self._sizes.get(op.name)
        if known is None:
            known = 1 if op.type in _LEAVES else _MOST + 1
            if op.type in _INNER and len(op.outputs) == 1:
                # Operations come after their inputs, so that this is not deep.
                known = 1 + sum(self._size(each.op) for each in op.inputs)
            self._sizes[op.name] = known
        return known

    def _kind(self, op: tf.Operation) -> int:
        """Numbers the operations, those that are alike by the same number."""
        known = self._kinds.get(op.name)
        if known is None:
            shape = op.outputs[0].shape
            kind = (
                op.type,
                attributes(op),
                None if shape.rank is None else tuple(shape),
                flow_at(self._reader, op),
                op.type == "ReadVariableOp" and self._reader.is_written(op.inputs[0]),
            )
            known = self._known.setdefault(kind, len(self._known))
            self._kinds[op.name] = known
        return known
