"""Knows which tensors still hold the rows of the batch, and along which axis."""

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfsafe.debugging import values as _values
from tfsafe.debugging.tracing.step import Step
from tfsafe.graph import MATRIX_PRODUCTS, OpFact, op_types

_BY_ROW = op_types(OpFact.BY_ROW)
# Products of many matrices: element by element along all axes but the last two.
_BATCHED = MATRIX_PRODUCTS - {"MatMul"}
_REDUCTIONS = op_types(OpFact.REDUCES) | {"All", "Any"}
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
# Their elements stay in their places along each axis whose length stays.
_PARTS = {
    "AddN",
    "BiasAdd",
    "BroadcastTo",
    "ConcatV2",
    "LogSoftmax",
    "Slice",
    "Softmax",
    "Split",
    "SplitV",
    "Tile",
}
# The same for the third input: transposed convolutions.
_ROWS_OF_THIRD = {
    "Conv2DBackpropInput",
    "Conv3DBackpropInputV2",
    "DepthwiseConv2dNativeBackpropInput",
}
# Operations that look something up at indices: the position of that input.
_LOOKUPS = {"GatherV2": 1, "OneHot": 0, "ResourceGather": 1}
# Lists of tensors, in which loops keep what they read and write: the axis of their
# elements is that of the whole less 1.
_LISTS = {
    "TensorListFromTensor": -1,
    "TensorListGetItem": 0,
    "TensorListPopBack": 0,
    "TensorListPushBack": 0,
    "TensorListSetItem": 0,
    "TensorListStack": 1,
}


class Batch(NamedTuple):
    """The rows that a call works on, or one replica of it.

    Attributes:
      size: How many; of ragged rows, how many values they have.
      first: Number of the first of them in the batch of all replicas.
      splits: Where ragged rows begin and end in their values; None for others.
    """

    size: int
    first: int = 0
    splits: np.ndarray | None = None


class Rows:
    """Follows the rows of a batch from operation to operation.

    A tensor holds them along its first axis if its elements, in their order, are those
    of the first row, then those of the second, and so on; along another one if that is
    as long as the batch. A tensor that is not known to do so is taken not to: a weight
    whose first axis happens to be as long as the batch has no rows.

    Args:
      batches: The rows of each replica, by `values.replica_in` a label.
      values: What to start from, by label: the tensors whose first axis is as long
        as their batch.
      ragged: The splits of ragged arguments, by path.
    """

    def __init__(
        self,
        batches: Mapping[str, Batch],
        values: Iterable[tuple[str, Any]],
        ragged: Mapping[str, np.ndarray] = {},
    ):
        self._batches = batches
        self._ragged = {
            name: each
            for path, each in ragged.items()
            for name in (path, f"argument `{path}`")
        }
        self._held: dict[int, tuple[weakref.ref[Any], int, Batch]] = {}
        for label, value in values:
            self.start(label, value)

    def start(self, label: str, value: Any) -> None:
        """Takes a tensor for a batch, if it has as many rows."""
        batch = self._batches.get(_values.replica_in(label))
        if batch is None or not isinstance(value, tf.Tensor):
            return
        if label in self._ragged and _length(value):
            splits = self._ragged[label]
            self._add(value, 0, Batch(_length(value), batch.first, splits))
            return
        if _length(value) == batch.size:
            self._add(value, 0, batch)

    def of(self, value: Any, index: Sequence[int]) -> int | None:
        """Returns the row that an element of a tensor belongs to, if any."""
        if not index or id(value) not in self._held:
            return None
        _, axis, batch = self._held[id(value)]
        row = index[axis] * batch.size // int(value.shape[axis])
        if batch.splits is not None:
            row = int(np.searchsorted(batch.splits, row, "right")) - 1
        return batch.first + row

    def is_ragged(self, value: Any) -> bool:
        """Returns whether a tensor has the values of ragged rows."""
        return id(value) in self._held and self._held[id(value)][2].splits is not None

    def observe(self, step: Step) -> None:
        """Follows the rows through one operation."""
        held = [id(each) for each in step.inputs if id(each) in self._held]
        if not held:
            return
        batch = self._held[held[0]][2]
        for each in step.outputs:
            if batch.splits is not None and _reduces_rows(step, batch.splits):
                self._add(each, 0, Batch(len(batch.splits) - 1, batch.first))
                continue
            axis = self._kept(step, each)
            if axis is not None:
                self._add(each, axis, batch)

    def _axis(self, value: Any) -> int | None:
        held = self._held.get(id(value))
        return None if held is None else held[1]

    def _add(self, value: Any, axis: int, batch: Batch) -> None:
        if value.dtype != tf.variant:
            length = int(value.shape[axis]) if axis < value.shape.rank else 0
            if not length or length % batch.size or (axis and length != batch.size):
                return
        key, drop = id(value), self._held.pop
        end = weakref.ref(value, lambda _: drop(key, None))
        self._held[key] = end, axis, batch

    def _kept(self, step: Step, output: Any) -> int | None:
        """Returns the axis along which an output of an operation holds the rows."""
        if not isinstance(output, tf.Tensor):
            return None
        kind, inputs = step.type, step.inputs
        held = [
            (each, axis) for each in inputs if (axis := self._axis(each)) is not None
        ]
        if kind in _LISTS:
            # What is written comes after the list.
            axis = held[-1][1] + _LISTS[kind]
            return axis if axis >= 0 else None
        if not _values.is_number(output):
            return None
        if kind in _LOOKUPS and id(inputs[_LOOKUPS[kind]]) in self._held:
            indices = inputs[_LOOKUPS[kind]]
            is_alike = output.shape[: indices.shape.rank] == indices.shape
            return self._axis(indices) if is_alike else None
        if kind == "Einsum":
            return _in_einsum(step, {id(each): axis for each, axis in held})
        if kind in _MOVES:
            given, axis = held[0]
            is_first = given is inputs[0] or kind == "Pack"
            return _MOVES[kind](step, axis, output) if is_first else None
        first = [each for each, axis in held if axis == 0]
        if any(self._is_kept_first(step, each, output) for each in first):
            return 0
        for each, axis in held:
            if axis and _is_kept_within(kind, each, axis, output):
                return axis
        return None

    def _is_kept_first(self, step: Step, given: Any, output: Any) -> bool:
        """Returns whether the rows stay along the first axis."""
        kind, inputs = step.type, step.inputs
        is_alike = output.shape.rank == given.shape.rank
        if kind in _SAME_ROWS | _ROWS_OF_THIRD:
            of = inputs[2 if kind in _ROWS_OF_THIRD else 0]
            return given is of and is_alike and _length(output) > 0
        if _length(given) != _length(output):
            return False
        if kind in _ELEMENTWISE | _PARTS or (
            kind in _BATCHED and output.shape.rank > 2
        ):
            return bool(is_alike)
        if kind == "MatMul":
            return given is inputs[0] and not step.attribute("transpose_a")
        return kind in _BY_ROW


def _reduces_rows(step: Step, splits: np.ndarray) -> bool:
    """Returns whether an operation reduces each of some ragged rows to one."""
    if not step.type.startswith(("Segment", "UnsortedSegment")):
        return False
    of_rows = np.repeat(np.arange(len(splits) - 1), np.diff(splits))
    is_whole = _length(step.outputs[0]) == len(splits) - 1
    return is_whole and np.array_equal(_numbers(step.inputs[1]), of_rows)


def _length(value: Any) -> int:
    return int(value.shape[0]) if value.shape.rank else 0


def _is_kept_within(kind: str, given: Any, axis: int, output: Any) -> bool:
    """Returns whether the rows stay along an axis that is not the first."""
    rank = output.shape.rank
    if rank != given.shape.rank or output.shape[axis] != given.shape[axis]:
        return False
    is_batched = kind in _BATCHED and axis < rank - 2
    return is_batched or kind in _ELEMENTWISE | _PARTS


def _numbers(value: Any) -> list[int]:
    return [int(each) for each in np.ravel(_values.array(value))]


def _less_those_before(axis: int, removed: Iterable[int]) -> int | None:
    """Returns the position of an axis after others are removed; None if it is."""
    gone = set(removed)
    return None if axis in gone else axis - sum(each < axis for each in gone)


def _reduced(step: Step, axis: int, output: Any) -> int | None:
    rank = step.inputs[0].shape.rank
    gone = [each % rank for each in _numbers(step.inputs[1])]
    left = _less_those_before(axis, gone)
    is_kept = output.shape.rank == rank
    return axis if is_kept and left is not None else left


def _transposed(step: Step, axis: int, output: Any) -> int | None:
    del output
    return _numbers(step.inputs[1]).index(axis)


def _expanded(step: Step, axis: int, output: Any) -> int | None:
    (new,) = _numbers(step.inputs[1])
    return axis + (new % output.shape.rank <= axis)


def _reshaped(step: Step, axis: int, output: Any) -> int | None:
    # The order of the elements stays, whatever the shape.
    ahead = axis + 1
    is_alike = output.shape[:ahead] == step.inputs[0].shape[:ahead]
    return axis if axis == 0 or is_alike else None


def _reversed(step: Step, axis: int, output: Any) -> int | None:
    rank = output.shape.rank
    return None if axis in {each % rank for each in _numbers(step.inputs[1])} else axis


def _packed(step: Step, axis: int, output: Any) -> int | None:
    return axis + (step.attribute("axis") % output.shape.rank <= axis)


def _unpacked(step: Step, axis: int, output: Any) -> int | None:
    return _less_those_before(axis, [step.attribute("axis") % (output.shape.rank + 1)])


def _gathered(step: Step, axis: int, output: Any) -> int | None:
    given, indices, along = step.inputs
    (along,) = _numbers(along)
    along %= given.shape.rank
    if along == axis and _numbers(indices) == list(range(_length(given))):
        # How a ragged tensor is broadcast to its own shape.
        return axis
    if along == axis or output.shape.rank < given.shape.rank:
        return None
    if axis < along:
        return axis
    return axis + indices.shape.rank - 1 - (step.attribute("batch_dims") or 0)


def _sliced(step: Step, axis: int, output: Any) -> int | None:
    begins, _, strides = (_numbers(each) for each in step.inputs[1:])
    given = step.inputs[0].shape
    begin_mask, ellipsis, new, shrink = (
        step.attribute(f"{name}_mask")
        for name in ("begin", "ellipsis", "new_axis", "shrink_axis")
    )
    read = written = 0
    for i, (begin, stride) in enumerate(zip(begins, strides, strict=True)):
        bit = 1 << i
        if ellipsis & bit:
            later = range(i + 1, len(begins))
            named = sum(not new >> each & 1 for each in later)
            count = given.rank - read - named
            if read <= axis < read + count:
                return written + axis - read
            read, written = read + count, written + count
        elif new & bit:
            written += 1
        elif read == axis:
            is_whole = stride == 1 and (begin_mask & bit or begin == 0)
            is_gone = shrink & bit or output.shape.rank <= written
            if is_gone or not is_whole or output.shape[written] != given[axis]:
                return None
            return written
        else:
            read, written = read + 1, written + (not shrink & bit)
    return written + axis - read


def _in_einsum(step: Step, axes: Mapping[int, int]) -> int | None:
    """Returns the axis of the rows in an einsum, by the `axes` of its inputs."""
    terms, _, result = tf.compat.as_str(step.attribute("equation")).partition("->")
    for each, term in zip(step.inputs, terms.split(","), strict=True):
        axis = axes.get(id(each), len(term))
        label = term[axis : axis + 1]
        is_plain = "." not in term + result or (
            axis == 0 and label == result[:1] != "."
        )
        if is_plain and label and label in result:
            return result.index(label)
    return None


_MOVES: dict[str, Callable[[Step, int, Any], int | None]] = {
    "ExpandDims": _expanded,
    "GatherV2": _gathered,
    "Pack": _packed,
    "Reshape": _reshaped,
    "ReverseV2": _reversed,
    "Squeeze": _reshaped,
    "StridedSlice": _sliced,
    "Transpose": _transposed,
    "Unpack": _unpacked,
    **dict.fromkeys(_REDUCTIONS, _reduced),
}
