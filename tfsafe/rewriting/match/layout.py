"""Recognises changes of shape that keep the elements in their order."""

from collections.abc import Iterable, Sequence

import tensorflow as tf

from tfsafe.graph import OpFact, op_types
from tfsafe.rewriting.facts.tensors import Reader

_RESHAPES = op_types(OpFact.RESHAPES)


def adds_axes(reader: Reader, op: tf.Operation) -> bool:
    """Returns whether `op` is `x[:, None]` or the like, and takes all of x."""
    if op.type != "StridedSlice" or op.get_attr("shrink_axis_mask"):
        return False
    strides = reader.constant(op.inputs[3])
    whole = op.get_attr("new_axis_mask") | op.get_attr("ellipsis_mask")
    whole |= op.get_attr("begin_mask") & op.get_attr("end_mask")
    return (
        strides is not None
        and bool((strides == 1).all())
        and whole == (1 << strides.size) - 1
    )


def reshaped(reader: Reader, tensor: tf.Tensor) -> Iterable[tf.Tensor]:
    """Yields `tensor`, then what it was reshaped from, step by step."""
    while True:
        tensor = reader.source(tensor)
        yield tensor
        op = tensor.op
        if op.type not in _RESHAPES and not adds_axes(reader, op):
            return
        tensor = op.inputs[0]


def lines_up(shape: tf.TensorShape, whole: tf.TensorShape, axes: Sequence[int]) -> bool:
    """Returns whether a reshaped reduction lines up with the rows it was taken of.

    That is, whether its shape is that of the whole with size 1 at the reduced axes. The
    elements keep their order, so that sizes decide; one of them may be unknown.
    """
    rank = whole.rank
    if rank is None or shape.rank != rank or any(shape[axis] != 1 for axis in axes):
        return False
    kept = [axis for axis in range(rank) if axis not in axes]
    unknown = [axis for axis in kept if whole[axis] is None]
    return len(unknown) <= 1 and all(
        shape[axis] == whole[axis] for axis in kept if axis not in unknown
    )
