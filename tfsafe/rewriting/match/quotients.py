"""Takes the divisor out of products, sums and layouts of quotients.

In `cross(v / t, p)` every term is a quotient by `t`: the whole is `cross(v, p) / t`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from tfsafe.graph import DIVISIONS, SUMS, raw_kernel
from tfsafe.rewriting.engine.rule import Build, Value
from tfsafe.rewriting.facts.layouts import same_shape
from tfsafe.rewriting.facts.tensors import Reader, is_float
from tfsafe.rewriting.match.arithmetic import multiplied
from tfsafe.rewriting.match.reductions import reshaped

_SUMS = SUMS | {"Pack", "ConcatV2"}
_PRODUCTS = frozenset({"Mul", "Cross", "MatMul", "BatchMatMulV2"})
_MATRICES = frozenset({"MatMul", "BatchMatMulV2"})
_LAYOUTS = frozenset({"ExpandDims", "Neg", "Reshape", "Squeeze"})
# Deeper formulas are left alone.
_DEPTH = 12


class Quotient(NamedTuple):
    """A tensor `build / divisor ** degree`.

    Attributes:
      degree: How many times it was divided.
      build: Builds the tensor without the divisions.
    """

    degree: int
    build: Build


def is_reshaped(reader: Reader, a: tf.Tensor, b: tf.Tensor) -> bool:
    """Returns whether two tensors have the same elements in the same order."""
    return reader.same(_core(reader, a), _core(reader, b))


def _core(reader: Reader, tensor: tf.Tensor) -> tf.Tensor:
    return list(reshaped(reader, tensor))[-1]


def without_divisor(
    reader: Reader, tensor: tf.Tensor, divisor: tf.Tensor, like: tf.Tensor
) -> Quotient | None:
    """Takes a divisor out of a tensor.

    Returns:
      The tensor without it; None without a quotient by it, or where the axes of the
      divisor and of the tensor may not line up.
    """
    taker = _Taker(reader, divisor, like.shape)
    found = taker.read(tensor, _DEPTH)
    return found if found.degree and taker.fits(tensor) else None


class _Taker:
    """Takes one divisor out of tensors."""

    def __init__(self, reader: Reader, divisor: tf.Tensor, shape: tf.TensorShape):
        self._reader = reader
        self._shape = shape
        self._core = _core(reader, divisor)
        # How many leading axes the divisor varies along.
        self._leads: set[int | None] = set()

    def read(self, tensor: tf.Tensor, depth: int) -> Quotient:
        """Returns the tensor without the divisor, or unchanged with degree 0."""
        op = self._reader.op(tensor)
        whole = Quotient(0, lambda value: value(tensor))
        if not depth:
            return whole
        if op.type in DIVISIONS:
            return self._divided(op) or whole
        if op.type == "Square":
            inner = self.read(op.inputs[0], depth - 1)
            degree, inputs = 2 * inner.degree, [inner]
        elif op.type in _PRODUCTS:
            inputs = [self.read(each, depth - 1) for each in op.inputs]
            degree = sum(each.degree for each in inputs)
        elif op.type in _SUMS:
            inputs = [self.read(each, depth - 1) for each in op.inputs]
            degrees = {
                each.degree
                for each, x in zip(inputs, op.inputs, strict=True)
                if is_float(x) and (each.degree or not self._is_nothing(x))
            }
            degree = max(degrees, default=0) if len(degrees) == 1 else 0
        elif op.type in _LAYOUTS | {"Sum", "Mean", "StridedSlice", "Unpack"}:
            inner = self.read(op.inputs[0], depth - 1)
            degree, inputs = inner.degree, [inner]
        else:
            return whole
        if not degree or not self._keeps_leading_axes(op, inputs):
            return whole
        place = self._reader.source(tensor).value_index
        return Quotient(degree, lambda value: self._made(op, inputs, value)[place])

    def _is_nothing(self, tensor: tf.Tensor) -> bool:
        """Returns whether a tensor is 0, or 0 times another."""
        found = multiplied(self._reader, self._reader.op(tensor))
        return self._reader.scalar(tensor) == 0 or (
            found is not None and found.factor == 0
        )

    def _made(
        self, op: tf.Operation, inputs: Sequence[Quotient], value: Value
    ) -> Sequence[tf.Tensor]:
        rest = [value(each) for each in op.inputs[len(inputs) :]]
        return raw_kernel(op)([*(each.build(value) for each in inputs), *rest])

    def _divided(self, op: tf.Operation) -> Quotient | None:
        x, y = op.inputs
        if not self._reader.same(_core(self._reader, y), self._core):
            return None
        if y.shape.rank is None or (y.shape.rank and y.shape.rank != x.shape.rank):
            return None
        if not same_shape(x, op.outputs[0]):
            return None
        self._leads.add(_lead(y.shape))
        return Quotient(1, lambda value: value(x))

    def fits(self, tensor: tf.Tensor) -> bool:
        """Returns whether the divisor lines up with a tensor that has it."""
        if self._leads == {0}:
            return self._shape.num_elements() == 1
        return (
            len(self._leads) == 1
            and self._leads == {_lead(self._shape)}
            and tensor.shape.rank == self._shape.rank
        )

    def _keeps_leading_axes(self, op: tf.Operation, inputs: Sequence[Quotient]) -> bool:
        """Returns whether the axes that the divisor varies along stay in front."""
        if self._leads == {0}:
            return True
        (lead,) = self._leads if len(self._leads) == 1 else (None,)
        shape, rank = op.outputs[0].shape, op.outputs[0].shape.rank
        tensors = [x for x, each in zip(op.inputs, inputs, strict=False) if each.degree]
        if lead is None or rank is None or None in [x.shape.rank for x in tensors]:
            return False
        if any(list(x.shape[:lead]) != list(shape[:lead]) for x in tensors):
            return False
        if op.type in {"Mul", "Cross", "Neg", "Square"} | SUMS:
            return all(x.shape.rank == rank for x in tensors)
        if op.type in _MATRICES:
            return lead <= rank - 2 and all(x.shape.rank == rank for x in tensors)
        if op.type == "Pack":
            return op.get_attr("axis") % rank >= lead
        if op.type == "Unpack":
            return op.get_attr("axis") % tensors[0].shape.rank >= lead
        if op.type in {"Sum", "Mean"}:
            axes = self._reader.axes(op.inputs[1], tensors[0].shape.rank)
            return axes is not None and min(axes, default=lead) >= lead
        if op.type == "ConcatV2":
            axis = self._reader.scalar(op.inputs[-1])
            return axis is not None and int(axis) % rank >= lead
        if op.type == "StridedSlice":
            return self._slices_behind(op, lead)
        # One unknown size of the leading ones cannot be any other.
        return sum(size is None for size in shape) <= 1

    def _slices_behind(self, op: tf.Operation, lead: int) -> bool:
        """Returns whether a slice takes the leading axes whole."""
        strides = self._reader.constant(op.inputs[3])
        whole = op.get_attr("begin_mask") & op.get_attr("end_mask")
        if strides is None or (strides != 1).any():
            return False
        if op.get_attr("ellipsis_mask") == 1:
            named = strides.size - 1 - op.get_attr("new_axis_mask").bit_count()
            return bool(named <= op.inputs[0].shape.rank - lead)
        front = (1 << lead) - 1
        other = op.get_attr("new_axis_mask") | op.get_attr("ellipsis_mask")
        return bool(whole & front == front and not other & front)


def _lead(shape: tf.TensorShape) -> int | None:
    """Returns how many axes are in front of the last ones of size 1."""
    if shape.rank is None:
        return None
    sizes = list(shape)
    while sizes and sizes[-1] == 1:
        sizes.pop()
    return len(sizes)
