"""Recognises sums over axes, however they are written."""

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from tfsafe.graph import ADDITIONS, MATRIX_PRODUCTS
from tfsafe.rewriting.facts.layouts import place_of, same_shape
from tfsafe.rewriting.facts.tensors import Reader

# Parts of a sum that are added one by one.
_MOST = 16


class Contraction(NamedTuple):
    """A sum, over some axes or none, of the product of tensors of one shape."""

    factors: Sequence[tf.Tensor]
    axes: tuple[int, ...]
    keepdims: bool


def contraction(reader: Reader, op: tf.Operation) -> Contraction | None:
    """Reads `x[:, 0] + x[:, 1]`, `matmul(x, ones)` and `einsum("ij->i", x)`."""
    if op.type in ADDITIONS:
        return _of_places(reader, op)
    if op.type in MATRIX_PRODUCTS:
        return _by_ones(reader, op)
    axes = _summed_by_einsum(op)
    return None if axes is None else Contraction(op.inputs, axes, False)


def transposed(op: tf.Operation) -> tuple[bool, bool]:
    """Returns which of its inputs a product of matrices transposes."""
    names = "transpose_a", "transpose_b"
    first, second = names if op.type == "MatMul" else ("adj_x", "adj_y")
    return op.get_attr(first), op.get_attr(second)


def _of_places(reader: Reader, op: tf.Operation) -> Contraction | None:
    """Reads the sum of all places along one axis, each added once."""
    found: dict[int, tuple[tf.Tensor, int]] = {}
    stack = list(op.inputs)
    for _ in range(2 * _MOST):
        each = reader.written(reader.source(stack.pop()))
        part = _place(reader, each)
        if part is None and each.op.type not in ADDITIONS:
            return None
        if part is None:
            stack += each.op.inputs
        elif part.place in found:
            return None
        else:
            found[part.place] = part.whole, part.axis
        if not stack:
            break
    if stack:
        return None
    (whole, axis), *others = found.values()
    is_one = all(reader.same(x, whole) and along == axis for x, along in others)
    is_whole = len(found) == whole.shape[axis]
    return Contraction([whole], (axis,), False) if is_one and is_whole else None


class _Part(NamedTuple):
    """What `whole` has at one place along an axis."""

    whole: tf.Tensor
    axis: int
    place: int


def _place(reader: Reader, tensor: tf.Tensor) -> _Part | None:
    """Reads `x[:, i]`."""
    found = place_of(reader, tensor)
    if found is None:
        return None
    (axis, place), whole = found, tensor.op.inputs[0]
    size = None if whole.shape.rank is None else whole.shape[axis]
    return None if size is None else _Part(whole, axis, place % size)


def _by_ones(reader: Reader, op: tf.Operation) -> Contraction | None:
    """Reads the product of a matrix and a column or row of ones."""
    is_turned = any(value.b for value in op.node_def.attr.values())
    for ones, x, axis in ((op.inputs[1], op.inputs[0], -1), (*op.inputs, -2)):
        if is_turned or ones.shape.rank != 2 or ones.shape[axis] != 1:
            continue
        if x.shape.rank is not None and reader.scalar(ones) == 1:
            return Contraction([x], (x.shape.rank + axis,), True)
    return None


def axes_of_einsum(op: tf.Operation) -> tuple[int, ...] | None:
    """Returns the axes that `einsum("ij->i", x)` or `einsum("ij,ij->i", x, y)` sums."""
    return _summed_by_einsum(op) or None


def _summed_by_einsum(op: tf.Operation) -> tuple[int, ...] | None:
    """Returns the same, and no axes for `einsum("i,i->i", x, y)`."""
    if op.type != "Einsum" or len(op.inputs) > 2:
        return None
    labels, made = op.get_attr("equation").decode().replace(" ", "").split("->")
    first, *others = labels.split(",")
    kept = "".join(each for each in first if each in made)
    dots, rank = first.find("..."), op.inputs[0].shape.rank
    is_plain = len({*first} - {"."}) == len(first.replace("...", ""))
    if kept != made or not is_plain or any(each != first for each in others):
        return None
    if not all(same_shape(x, op.inputs[0]) for x in op.inputs):
        return None
    axes = tuple(place for place, each in enumerate(first) if each not in made)
    if dots >= 0:
        # Those behind the ellipsis count from the end.
        shift = rank - len(first)
        axes = tuple(axis if axis < dots else axis + shift for axis in axes)
    return axes
