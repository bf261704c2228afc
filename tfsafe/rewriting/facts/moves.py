"""Reads moves and wider dtypes within elementwise formulas.

`sin(t)[:, None]` is `sin(t[:, None])`, and `cast(x * x)` to a wider dtype is
`cast(x) * cast(x)`, rounded once less.
"""

import collections
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tfsafe import _compat
from tfsafe.graph import ADDITIONS, MATRIX_PRODUCTS, OpFact, op_types
from tfsafe.rewriting.facts.layouts import (
    adds_axes,
    layout,
    reshapes,
    same_shape,
    same_size,
    widens,
)
from tfsafe.rewriting.facts.sums import contraction
from tfsafe.rewriting.facts.tensors import Reader, attributes, is_float

_MOVES = op_types(OpFact.MOVES)
_FORMULAS = op_types(OpFact.ELEMENTWISE) - {"Cast"}
# Formulas of elements end there.
_PRODUCTS = MATRIX_PRODUCTS | {"Conv2D", "Einsum", "Shape"}
# In a wider dtype they jump elsewhere.
_JUMPS = frozenset({"FloorDiv", "FloorMod", "Mod"})
# A wider dtype hardly changes them.
_EXACT = frozenset({
    *_MOVES,
    *ADDITIONS,
    *("Abs", "Max", "Maximum", "Min", "Minimum", "Neg", "Relu", "Select", "SelectV2"),
    "Sub",
})
# They are widened by their first input.
_WIDENED = op_types(OpFact.REDUCES) | _MOVES | {"LogSoftmax", "Softmax"}
# Operations of a formula, those that it reads twice counted twice.
_MOST = 24

# The moves of an input that are within the formula, the last one first, and the input.
_Leaf = tuple[tuple[tf.Operation, ...], tf.Tensor]


class _Formula(NamedTuple):
    """The elementwise operations that make a tensor, and what they are of."""

    types: frozenset[str]
    leaves: Sequence[_Leaf]

    @property
    def has_known_shape(self) -> bool:
        """Returns whether no input can be of a size that is stretched."""
        return len(self.leaves) == 1 or all(
            leaf.shape.is_fully_defined() for _, leaf in self.leaves
        )

    @property
    def inputs(self) -> frozenset[str]:
        """Returns the names of the inputs."""
        return frozenset(leaf.name for _, leaf in self.leaves)


class Moves:
    """Finds the formulas of a graph that are moved or widened as a whole."""

    def __init__(self, written: Reader, usual: Reader):
        """Reads a graph.

        Args:
          written: Sees the operations that the graph has.
          usual: Sees those before the one that is asked about in their usual spelling.
        """
        self._written = written
        self._usual = usual
        self._made: dict[tuple[Hashable, str], tf.Tensor] = {}
        self._keys: dict[str, Hashable] = {}
        moves = [op for op in written.operations if _is_move(written, op)]
        self._formulas = {op.name: self._formula(op) for op in moves}
        self._times = collections.Counter(
            self._place(op, leaf)
            for op in moves
            for leaf in self._formulas[op.name].leaves
        )

    def inward(self, op: tf.Operation) -> tf.Tensor | None:
        """Returns the formula of what is moved or widened; None if it is not wanted."""
        if not self._is_wanted(op):
            return None
        return self._moved(op, op.inputs[0], self._key(op))

    def _is_wanted(self, op: tf.Operation) -> bool:
        formula = self._formulas.get(op.name)
        if formula is None:
            return widens(op) and not self._formula(op).types <= _EXACT
        if not formula.types:
            return False
        if not (formula.has_known_shape or self._fits_any_shape(op)):
            return False
        is_twice = any(
            self._times[self._place(op, leaf)] > 1 or self._may_undo(op, leaf)
            for leaf in formula.leaves
        )
        return is_twice or self._is_beside_another(op)

    def _is_beside_another(self, op: tf.Operation) -> bool:
        """Returns whether `op` is part of `log(x)[1:] - log(x)[:-1]` or the like."""
        formula = self._formulas[op.name]
        others = (
            self._formulas.get(self._written.op(each).name)
            for difference in op.outputs[0].consumers()
            if difference.type == "Sub"
            for each in difference.inputs
            if self._written.op(each) is not op
        )
        return any(
            other is not None
            and other.types == formula.types
            and other.inputs == formula.inputs
            for other in others
        )

    def _fits_any_shape(self, op: tf.Operation) -> bool:
        """Returns whether inputs that are stretched may be moved before that."""
        if op.type == "Squeeze":
            return bool(op.get_attr("squeeze_dims"))
        return op.type in {"ExpandDims", "Transpose"} or adds_axes(self._written, op)

    def _may_undo(self, op: tf.Operation, leaf: _Leaf) -> bool:
        for move in leaf[0][:1]:
            if op.type == "Transpose":
                return move.type == "Transpose"
            if all(reshapes(self._written, each) for each in (op, move)):
                return same_size(move.inputs[0], op.outputs[0])
        return False

    def _place(self, op: tf.Operation, leaf: _Leaf) -> Hashable:
        moves, tensor = leaf
        return tuple(self._key(each) for each in (op, *moves)), tensor.name

    def _key(self, op: tf.Operation) -> Hashable:
        """Returns what is equal for operations that move or widen alike."""
        if op.name not in self._keys:
            others = map(self._written.number, op.inputs[1:])
            key = op.type, attributes(op), tuple(others)
            self._keys[op.name] = layout(self._written, op) or key
        return self._keys[op.name]

    def _formula(self, op: tf.Operation) -> _Formula:
        """Returns the formula that an operation moves or widens."""
        types: set[str] = set()
        leaves: dict[Hashable, _Leaf] = {}
        stack: list[_Leaf] = [((), op.inputs[0])]
        for _ in range(_MOST):
            moves, tensor = stack.pop()
            tensor = self._written.source(tensor)
            operands = _operands(self._written, tensor, op)
            if operands is not None:
                types.add(tensor.op.type)
                stack += [(moves, each) for each in operands]
            elif tensor.op.type in _MOVES and is_float(tensor):
                stack.append(((*moves, tensor.op), tensor.op.inputs[0]))
            else:
                names = tuple(each.name for each in moves)
                leaves[names, tensor.name] = moves, tensor
            if not stack:
                return _Formula(frozenset(types), list(leaves.values()))
        return _Formula(frozenset(), [])

    def _moved(
        self, op: tf.Operation, tensor: tf.Tensor, key: Hashable, depth: int = _MOST
    ) -> tf.Tensor:
        """Returns what `op` would make of a tensor."""
        tensor = self._usual.source(tensor)
        known = self._made.get((key, tensor.name))
        if known is None:
            operands = _operands(self._usual, tensor, op) if depth else None
            dtype = op.outputs[0].dtype if op.type == "Cast" else tensor.dtype
            if operands:
                names = {each.name for each in operands}
                inputs = [
                    self._moved(op, each, key, depth - 1)
                    if each.name in names
                    else each
                    for each in tensor.op.inputs
                ]
                made = _copied(tensor.op, inputs, dtype)
            else:
                made = _copied(op, [tensor, *op.inputs[1:]], dtype)
            known = self._made[key, tensor.name] = self._usual.source(made)
        return known


def _is_move(reader: Reader, op: tf.Operation) -> bool:
    """Returns whether something is computed of what `op` moves but products."""
    return (
        op.type in _MOVES
        and is_float(op.outputs[0])
        and any(
            each.type not in _PRODUCTS or contraction(reader, each) is not None
            for each in op.outputs[0].consumers()
        )
    )


def created(
    graph: tf.Graph,
    op_type: str,
    inputs: Sequence[tf.Tensor],
    dtype: tf.DType,
    attributes: Mapping[str, Any],
) -> tf.Tensor:
    """Returns the output of a new operation of a graph, which is never computed."""
    # Constants are not folded while this graph is the default one.
    with graph.as_default(), tf.control_dependencies(None):
        made = _compat.create_op(op_type, list(inputs), [dtype], attrs=attributes)
    return made.outputs[0]


def _operands(
    reader: Reader, tensor: tf.Tensor, move: tf.Operation
) -> Sequence[tf.Tensor] | None:
    """Returns what to move in place of a tensor; None for an input of the formula."""
    op = tensor.op
    if tensor.name in reader.kept or not is_float(tensor):
        return None
    if move.type == "Cast":
        if op.type in _WIDENED:
            return op.inputs[:1]
        is_part = op.type in _FORMULAS - _JUMPS
        return [each for each in op.inputs if is_float(each)] if is_part else None
    if op.type not in _FORMULAS:
        return None
    operands = [
        each
        for each in op.inputs
        if each.shape.rank != 0 or reader.scalar(each) is None
    ]
    return operands if all(same_shape(each, tensor) for each in operands) else None


def _copied(
    op: tf.Operation, inputs: Sequence[tf.Tensor], dtype: tf.DType
) -> tf.Tensor:
    """Makes an operation once more, of other inputs."""
    attributes = {
        name: value
        for name, value in op.node_def.attr.items()
        if not name.startswith("_")
    }
    for name in attributes.keys() & {"T", "Tparams"}:
        attributes[name] = tf.compat.v1.AttrValue(type=dtype.as_datatype_enum)
    return created(op.graph, op.type, inputs, dtype, attributes)
