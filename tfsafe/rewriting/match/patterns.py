"""The small patterns that formulas are made of."""

from typing import Any

import numpy as np
import tensorflow as tf

_ADDITIONS = frozenset({"Add", "AddV2"})
_COMMUTATIVE = _ADDITIONS | {"Maximum", "Minimum", "Mul"}


def either_way(op: tf.Operation) -> list[tuple[tf.Tensor, tf.Tensor]]:
    """Returns the operands of a commutative operation in both orders."""
    if op.type not in _COMMUTATIVE:
        return []
    a, b = op.inputs
    return [(a, b), (b, a)]


def is_sum(op: tf.Operation) -> bool:
    """Returns whether `op` adds two tensors."""
    return op.type in _ADDITIONS


def square_of(op: tf.Operation, reader: Any) -> tf.Tensor | None:
    """Recognises `x * x`, `square(x)` and `x ** 2`; returns `x`."""
    if op.type == "Square":
        return op.inputs[0]
    if op.type == "Mul" and reader.same(*op.inputs):
        return op.inputs[0]
    if op.type == "Pow" and reader.is_number(op.inputs[1], 2):
        return op.inputs[0]
    return None


def negated(tensor: tf.Tensor, reader: Any) -> tf.Tensor | None:
    """Recognises `-x` and `-1 * x`; returns `x`."""
    op = reader.op(tensor)
    if op.type == "Neg":
        return op.inputs[0]
    if op.type == "Mul":
        for x, constant in either_way(op):
            if reader.is_number(constant, -1):
                return x
    if op.type == "Sub" and reader.is_number(op.inputs[0], 0):
        return op.inputs[1]
    return None


def are_opposite(a: tf.Tensor, b: tf.Tensor, reader: Any) -> bool:
    """Returns whether one tensor is the negative of the other."""
    minus_a, minus_b = negated(a, reader), negated(b, reader)
    return (minus_a is not None and reader.same(minus_a, b)) or (
        minus_b is not None and reader.same(minus_b, a)
    )


def one_plus(op: tf.Operation, type_: str, reader: Any) -> tf.Tensor | None:
    """Recognises `1 + f(u)` for the operation type of f; returns `u`."""
    for x, constant in either_way(op) if is_sum(op) else []:
        if reader.is_number(constant, 1) and reader.op(x).type == type_:
            return reader.op(x).inputs[0]
    return None


def adds_axes(op: tf.Operation, reader: Any) -> bool:
    """Returns whether `op` is `x[:, None]` or the like, and takes all of x."""
    begin = reader.constant(op.inputs[1]) if op.type == "StridedSlice" else None
    if begin is None or op.get_attr("shrink_axis_mask"):
        return False
    masks = [op.get_attr(f"{each}_mask") for each in ("begin", "end")]
    free = [op.get_attr(f"{each}_mask") for each in ("new_axis", "ellipsis")]
    strides = reader.constant(op.inputs[3])
    taken = masks[0] & masks[1] | free[0] | free[1]
    is_whole = taken == (1 << begin.size) - 1
    return is_whole and strides is not None and bool(np.all(strides == 1))


def stands(shape: tf.TensorShape, whole: tf.TensorShape, axes: tuple[int, ...]) -> bool:
    """Returns whether a reshaped reduction stands along its axes again."""
    rank = whole.rank
    if rank is None or shape.rank != rank or any(shape[axis] != 1 for axis in axes):
        return False
    kept = [axis for axis in range(rank) if axis not in axes]
    unknown = [axis for axis in kept if whole[axis] is None]
    return len(unknown) <= 1 and all(
        shape[axis] == whole[axis] for axis in kept if axis not in unknown
    )
