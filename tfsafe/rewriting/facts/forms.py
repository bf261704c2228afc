"""Knows which operations compute the same formula of other inputs.

An optimizer updates each variable by the same arithmetic: where no rule fits in one
update, none fits in the next.
"""

from collections.abc import Hashable, Sequence

import tensorflow as tf

from tfsafe.graph import OpFact, is_custom, op_types
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
        if self._size(op.outputs[0]) > _MOST:
            return None
        found: list[int] = []
        places: dict[str, int] = {}
        numbers: dict[int, int] = {}
        stack = [op.outputs[0]]
        while stack:
            tensor = stack.pop()
            found.append(places.setdefault(tensor.name, len(places)))
            if found[-1] < len(places) - 1:
                continue
            number = self._reader.number(tensor)
            found += (self._kind(tensor), numbers.setdefault(number, len(numbers)))
            stack.extend(_inputs(tensor) or ())
        return tuple(found)

    def _size(self, tensor: tf.Tensor) -> int:
        """Returns how many operations a formula has; more than `_MOST` for others."""
        known = self._sizes.get(tensor.name)
        if known is None:
            inputs = _inputs(tensor)
            known = _MOST + 1
            if inputs is not None:
                # Operations come after their inputs, so that this is not deep.
                known = 1 + sum(map(self._size, inputs))
            self._sizes[tensor.name] = known
        return known

    def _kind(self, tensor: tf.Tensor) -> int:
        """Numbers the operations, those that are alike by the same number."""
        known = self._kinds.get(tensor.name)
        if known is None:
            op, shape = tensor.op, tensor.shape
            kind = (
                op.type,
                attributes(op),
                None if shape.rank is None else tuple(shape),
                flow_at(self._reader, op),
                op.type == "ReadVariableOp" and self._reader.is_written(op.inputs[0]),
            )
            known = self._known.setdefault(kind, len(self._known))
            self._kinds[tensor.name] = known
        return known


def _inputs(tensor: tf.Tensor) -> Sequence[tf.Tensor] | None:
    """Returns what an element of a tensor is made of; None if that is not known."""
    op = tensor.op
    if op.type in _LEAVES:
        return ()
    if op.type == "IdentityN":
        # With a gradient of its own, as where replicas add up theirs, it is not a copy.
        return () if is_custom(op) else (op.inputs[tensor.value_index],)
    return op.inputs if op.type in _INNER else None
