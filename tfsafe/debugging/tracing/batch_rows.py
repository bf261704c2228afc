"""Knows which tensors still hold the rows of the batch, one after the other."""

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfsafe.debugging.tracing import values as _values
from tfsafe.debugging.tracing.step import Step
from tfsafe.graph import OpFact, op_types

_BY_ROW = op_types(OpFact.BY_ROW)
# Products of many matrices: element by element along all axes but the last two.
_BATCHED = op_types(OpFact.MULTIPLIES_MATRICES) - {"MatMul"}
_REDUCTIONS = op_types(OpFact.REDUCES)
# Row i of their output is that of row i of the first input. In a normalization over the
# batch it depends on the other rows as well.
_SAME_ROWS = {
    "ComplexAbs",
    "Conv3D",
    "DepthwiseConv2dNative",
    "FusedBatchNormV3",
    "LeakyRelu",
    "MaxPool",
    "MaxPool3D",
    "MirrorPad",
    "Pad",
    "PadV2",
    "RFFT",
    "Relu6",
    "ResizeBilinear",
    "ResizeNearestNeighbor",
}
# Masks are made of these, element by element.
_OF_MASKS = {
    "Equal",
    "Greater",
    "GreaterEqual",
    "Less",
    "LessEqual",
    "LogicalAnd",
    "LogicalNot",
    "LogicalOr",
    "NotEqual",
}
_ELEMENTWISE = op_types(OpFact.ELEMENTWISE) | _OF_MASKS
# The order of the elements stays, whatever the shape.
_IN_ORDER = {"ExpandDims", "Reshape", "Squeeze"}
# The same for the third input: transposed convolutions.
_ROWS_OF_THIRD = {
    "Conv2DBackpropInput",
    "Conv3DBackpropInputV2",
    "DepthwiseConv2dNativeBackpropInput",
}
# Operations that look something up at indices: the position of that input.
_LOOKUPS = {"GatherV2": 1, "OneHot": 0, "ResourceGather": 1}


class Rows:
    """Follows the rows of a batch from operation to operation.

    A tensor holds them if its elements, in their order, are those of the first row,
    then those of the second, and so on. A tensor that is not known to do so is taken
    not to: a weight whose first axis happens to be as long as the batch has no rows.

    Args:
      batch: Number of rows.
      values: What to start from: the tensors whose first axis is as long.
    """

    def __init__(self, batch: int, values: Iterable[Any]):
        self._batch = batch
        self._held: dict[int, weakref.ref[Any]] = {}
        for each in values:
            self.start(each)

    def start(self, value: Any) -> None:
        """Takes a tensor for a batch, if it has as many rows."""
        if isinstance(value, tf.Tensor) and _length(value) == self._batch:
            self._add(value)

    def of(self, value: Any, index: Sequence[int]) -> int | None:
        """Returns the row that an element of a tensor belongs to, if any."""
        if not index or id(value) not in self._held:
            return None
        return index[0] * self._batch // int(value.shape[0])

    def observe(self, step: Step) -> None:
        """Follows the rows through one operation."""
        if not any(id(each) in self._held for each in step.inputs):
            return
        for each in step.outputs:
            if self._is_kept(step, each):
                self._add(each)

    def _add(self, value: Any) -> None:
        if _length(value) and _length(value) % self._batch == 0:
            key, drop = id(value), self._held.pop
            self._held[key] = weakref.ref(value, lambda _: drop(key, None))

    def _is_kept(self, step: Step, output: Any) -> bool:
        kind, inputs = step.type, step.inputs
        if not isinstance(output, tf.Tensor) or not _values.is_number(output):
            return False
        if kind in _IN_ORDER:
            return id(inputs[0]) in self._held
        if kind in _SAME_ROWS | _ROWS_OF_THIRD:
            given = inputs[2 if kind in _ROWS_OF_THIRD else 0]
            is_alike = output.shape.rank == given.shape.rank
            return id(given) in self._held and is_alike and _length(output) > 0
        if kind in _LOOKUPS and id(inputs[_LOOKUPS[kind]]) in self._held:
            indices = inputs[_LOOKUPS[kind]]
            return bool(output.shape[: indices.shape.rank] == indices.shape)
        rows = [
            each
            for each in inputs
            if id(each) in self._held and each.shape[0] == _length(output)
        ]
        if kind in _ELEMENTWISE or (kind in _BATCHED and output.shape.rank > 2):
            return any(each.shape.rank == output.shape.rank for each in rows)
        if kind == "Einsum":
            return any(_is_labelled_first(step, each) for each in rows)
        if kind == "MatMul":
            is_first = any(each is inputs[0] for each in rows)
            return is_first and not step.attribute("transpose_a")
        if kind in _SPECIAL:
            return any(each is inputs[0] for each in rows) and _SPECIAL[kind](
                inputs, output
            )
        return bool(rows) and kind in _BY_ROW


def _length(value: Any) -> int:
    return int(value.shape[0]) if value.shape.rank else 0


def _is_reduced_within(inputs: Sequence[Any], output: Any) -> bool:
    del output
    rank = inputs[0].shape.rank
    return 0 not in {int(axis) % rank for axis in np.ravel(_values.array(inputs[1]))}


def _is_labelled_first(step: Step, given: Any) -> bool:
    """Returns whether the first axis of an einsum is the first one of an input."""
    terms, _, result = tf.compat.as_str(step.attribute("equation")).partition("->")
    return any(
        each is given and term[:1] == result[:1] != "."
        for term, each in zip(terms.split(","), step.inputs, strict=True)
    )


def _is_sliced_within(inputs: Sequence[Any], output: Any) -> bool:
    given, begin, end, strides = inputs
    # An index takes an axis away: 0, whose end is 1, may take the first.
    first, last, stride = (
        int(_values.array(each)[0]) for each in (begin, end, strides)
    )
    is_clear = output.shape.rank == given.shape.rank or last != 1
    return is_clear and (first, stride) == (0, 1)


def _is_gathered_within(inputs: Sequence[Any], output: Any) -> bool:
    given, _, axis = inputs
    return output.shape.rank >= given.shape.rank and int(_values.array(axis)) != 0


def _is_first_axis_first(inputs: Sequence[Any], output: Any) -> bool:
    del output
    return int(_values.array(inputs[1])[0]) == 0


_SPECIAL: dict[str, Callable[[Sequence[Any], Any], bool]] = {
    "GatherV2": _is_gathered_within,
    "StridedSlice": _is_sliced_within,
    "Transpose": _is_first_axis_first,
    **dict.fromkeys(_REDUCTIONS, _is_reduced_within),
}
