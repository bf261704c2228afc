"""Knows which operations only arrange numbers, and which of them undo others."""

from collections.abc import Callable, Hashable, Mapping

import numpy as np
import tensorflow as tf

from tfsafe.graph import OpFact, op_types
from tfsafe.rewriting.facts.interface import GraphFacts

_RESHAPES = op_types(OpFact.RESHAPES)
_SUMS = frozenset({"Add", "AddV2", "Sub"})


def same_shape(a: tf.Tensor, b: tf.Tensor) -> bool:
    """Returns whether two tensors have the same static shape, of known rank."""
    return a.shape.rank is not None and a.shape.as_list() == (
        None if b.shape.rank is None else b.shape.as_list()
    )


def widens(op: tf.Operation) -> bool:
    """Returns whether `op` converts to a floating dtype with more digits and range."""
    if op.type != "Cast":
        return False
    before, after = op.inputs[0].dtype, op.outputs[0].dtype
    is_float = before.is_floating and after.is_floating
    return bool(is_float and before.size < after.size)


def reshapes(facts: GraphFacts, op: tf.Operation) -> bool:
    """Returns whether the elements of the first input stay, in order."""
    return op.type in _RESHAPES or adds_axes(facts, op) or _drops_axis(facts, op)


def layout(facts: GraphFacts, op: tf.Operation) -> Hashable:
    """Returns what is equal for operations that reshape a tensor alike, or None.

    `x[:, None]` is `tf.expand_dims(x, 1)` and `tf.reshape(x, [-1, 1])`.
    """
    made = op.outputs[0]
    is_determined = reshapes(facts, op) and same_size(made, made)
    return ("Reshape", *made.shape.as_list()) if is_determined else None


def adds_axes(facts: GraphFacts, op: tf.Operation) -> bool:
    """Returns whether `op` is `x[:, None]` or the like, and takes all of x."""
    if op.type != "StridedSlice" or op.get_attr("shrink_axis_mask"):
        return False
    strides = facts.constant(op.inputs[3])
    whole = op.get_attr("new_axis_mask") | op.get_attr("ellipsis_mask")
    whole |= op.get_attr("begin_mask") & op.get_attr("end_mask")
    return (
        strides is not None
        and bool((strides == 1).all())
        and whole == (1 << strides.size) - 1
    )


def _drops_axis(facts: GraphFacts, op: tf.Operation) -> bool:
    """Returns whether `op` is `x[:, 0]` of an axis of size 1."""
    found = taken(facts, op)
    if found is None or op.inputs[0].shape.rank is None:
        return False
    return bool(op.inputs[0].shape[found[0]] == 1)


def taken(facts: GraphFacts, op: tf.Operation) -> tuple[int, int] | None:
    """Reads `x[:, i]` or the like, which takes one place along one axis.

    Returns:
      The axis, counted from the front, and `i`; None for other slices.
    """
    if op.type != "StridedSlice" or op.get_attr("new_axis_mask"):
        return None
    begin, strides = facts.constant(op.inputs[1]), facts.constant(op.inputs[3])
    shrunk, dots = op.get_attr("shrink_axis_mask"), op.get_attr("ellipsis_mask")
    if begin is None or strides is None or shrunk.bit_count() != 1:
        return None
    place = shrunk.bit_length() - 1
    whole = op.get_attr("begin_mask") & op.get_attr("end_mask") | dots | shrunk
    if whole != (1 << begin.size) - 1 or (strides != 1).any():
        return None
    axis, rank = place, op.inputs[0].shape.rank
    if dots and place >= dots.bit_length():
        if rank is None:
            return None
        axis += rank - begin.size
    return axis, int(begin[place])


def place_of(facts: GraphFacts, tensor: tf.Tensor) -> tuple[int, int] | None:
    """Returns the axis and the place of what is taken or unstacked of one tensor."""
    op = tensor.op
    if op.type != "Unpack":
        return taken(facts, op)
    found = divided(facts, op)
    return None if found is None else (found[1], tensor.value_index)


def divided(facts: GraphFacts, op: tf.Operation) -> tuple[tf.Tensor, int] | None:
    """Returns what `tf.split` or `tf.unstack` divides, and the axis from the front."""
    if op.type == "Unpack":
        whole, axis = op.inputs[0], op.get_attr("axis")
    elif op.type == "Split":
        whole, axis = op.inputs[1], facts.scalar(op.inputs[0])
    else:
        whole, axis = op.inputs[0], facts.scalar(op.inputs[2])
    rank = whole.shape.rank
    return None if rank is None or axis is None else (whole, int(axis) % rank)


def unchanged(facts: GraphFacts, tensor: tf.Tensor) -> tf.Tensor | None:
    """Returns x where `tensor` is `0 + x`, `tf.stack([x, y])[0]` or the like."""
    same = _reshaped_back(facts, tensor)
    find = _UNCHANGED.get(tensor.op.type)
    return find(facts, tensor) if same is None and find is not None else same


def _nothing_added(facts: GraphFacts, tensor: tf.Tensor) -> tf.Tensor | None:
    """Reads `0 + x` and `x - 0`: a loop may begin a sum at 0."""
    # In half precision an epsilon that is written may be 0.
    if tensor.dtype.size < 4:
        return None
    op = tensor.op
    for x, zero in (op.inputs, reversed(op.inputs)):
        if same_shape(x, tensor) and facts.constant(zero) is not None:
            return x if facts.is_number(zero, 0) else None
        if op.type == "Sub":
            break
    return None


def _reshaped_back(facts: GraphFacts, tensor: tf.Tensor) -> tf.Tensor | None:
    op = tensor.op
    while reshapes(facts, op):
        x = op.inputs[0]
        if same_size(x, tensor):
            return x
        op = facts.op(x)
    return None


def same_size(x: tf.Tensor, y: tf.Tensor) -> bool:
    """Returns whether tensors with as many elements have the same shape.

    One size may be unknown, unless another is 0.
    """
    sizes = x.shape.as_list() if same_shape(x, y) else [None, None]
    unknown = sizes.count(None)
    return not unknown or (unknown == 1 and 0 not in sizes)


def _transposed_back(facts: GraphFacts, tensor: tf.Tensor) -> tf.Tensor | None:
    inner = facts.op(tensor.op.inputs[0])
    if inner.type != "Transpose":
        return None
    orders = [facts.constant(op.inputs[1]) for op in (inner, tensor.op)]
    if orders[0] is None or orders[1] is None:
        return None
    is_undone = np.array_equal(orders[0][orders[1]], np.arange(orders[0].size))
    return inner.inputs[0] if is_undone else None


def _cast_back(facts: GraphFacts, tensor: tf.Tensor) -> tf.Tensor | None:
    inner = facts.op(tensor.op.inputs[0])
    is_undone = widens(inner) and inner.inputs[0].dtype == tensor.dtype
    return inner.inputs[0] if is_undone else None


def _unstacked(facts: GraphFacts, tensor: tf.Tensor) -> tf.Tensor | None:
    x = tensor.op.inputs[0]
    stack, found = facts.op(x), place_of(facts, tensor)
    if stack.type != "Pack" or found is None or x.shape.rank is None:
        return None
    axis, place = found
    is_along = axis == stack.get_attr("axis") % x.shape.rank
    return stack.inputs[place] if is_along else None


def _split_again(facts: GraphFacts, tensor: tf.Tensor) -> tf.Tensor | None:
    op = tensor.op
    found = divided(facts, op)
    if found is None:
        return None
    joined, axis = found
    inner = facts.op(joined)
    if inner.type != "ConcatV2":
        return None
    along = facts.scalar(inner.inputs[-1])
    if along is None or (along - axis) % joined.shape.rank:
        return None
    parts = inner.inputs[:-1]
    sizes = [[each.shape[axis] for each in side] for side in (op.outputs, parts)]
    is_undone = sizes[0] == sizes[1] and None not in sizes[0]
    return parts[tensor.value_index] if is_undone else None


def _over_no_axes(facts: GraphFacts, tensor: tf.Tensor) -> tf.Tensor | None:
    """Reads a sum of a scalar, or of other tensors over no axis."""
    x, axes = tensor.op.inputs
    known = facts.constant(axes)
    return x if x.shape.rank == 0 or (known is not None and not known.size) else None


_UNCHANGED: Mapping[str, Callable[[GraphFacts, tf.Tensor], tf.Tensor | None]] = {
    **dict.fromkeys(_SUMS, _nothing_added),
    **dict.fromkeys(("Max", "Mean", "Min", "Prod", "Sum"), _over_no_axes),
    "Cast": _cast_back,
    "Split": _split_again,
    "SplitV": _split_again,
    "StridedSlice": _unstacked,
    "Transpose": _transposed_back,
    "Unpack": _unstacked,
}
