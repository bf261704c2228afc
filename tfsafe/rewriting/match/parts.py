"""The parts that hand-written formulas are made of: squares, sums, means and norms."""

from collections.abc import Iterable
from typing import NamedTuple

import tensorflow as tf

from tfsafe.graph import OpFact, op_types
from tfsafe.rewriting.engine.rule import Value
from tfsafe.rewriting.facts.tensors import Reader

_ADDITIONS = op_types(OpFact.ADDS)
_KEEP_SHAPE = op_types(OpFact.KEEPS_SHAPE)
# Deeper sums are not taken apart.
_DEPTH = 12


class Base(NamedTuple):
    """What is squared: `x`, or `x - minus`."""

    x: tf.Tensor
    minus: tf.Tensor | None = None

    def make(self, value: Value) -> tf.Tensor:
        """Returns the base in the graph that is made."""
        return (
            value(self.x) if self.minus is None else value(self.x) - value(self.minus)
        )


class Reduction(NamedTuple):
    """A sum or mean of `x` over `axes`, over all of them where None."""

    x: tf.Tensor
    axes: tuple[int, ...] | None
    keepdims: bool


class Norm(NamedTuple):
    """The Euclidean norm of `base` over `axes`, over all of them where None."""

    base: Base
    axes: tuple[int, ...] | None
    keepdims: bool


class Term(NamedTuple):
    """A number times a tensor."""

    factor: float
    tensor: tf.Tensor

    def make(self, value: Value) -> tf.Tensor:
        """Returns the term in the graph that is made."""
        x = value(self.tensor)
        return x if self.factor == 1 else self.factor * x


def is_float(tensor: tf.Tensor) -> bool:
    """Returns whether the dtype is one that the functions of `tfsafe.ops` take."""
    return tensor.dtype in {tf.float16, tf.bfloat16, tf.float32, tf.float64}


def number(reader: Reader, tensor: tf.Tensor, beside: tf.Tensor) -> float | None:
    """Returns the number that all elements of `tensor` are, or None.

    Args:
      reader: Reader of the graph.
      tensor: A constant, or ones and the like of the shape of another tensor.
      beside: What it is combined with. It must not be given another shape by it.
    """
    op = reader.op(tensor)
    if op.type == "OnesLike" and _has_shape(reader, beside, op.inputs[0]):
        return 1.0
    value = reader.scalar(tensor)
    return value if value is not None and _fits(tensor.shape, beside.shape) else None


def _has_shape(reader: Reader, tensor: tf.Tensor, of: tf.Tensor) -> bool:
    """Returns whether `tensor` is `of`, or an elementwise function of it."""
    while not reader.same(tensor, of):
        op = reader.op(tensor)
        if op.type not in _KEEP_SHAPE:
            return False
        tensor = op.inputs[0]
    return True


def _fits(shape: tf.TensorShape, beside: tf.TensorShape) -> bool:
    if shape.rank == 0:
        return True
    if beside.rank is None or shape.rank > beside.rank:
        return False
    last = list(beside)[beside.rank - shape.rank :]
    return all(a == 1 or a == b for a, b in zip(shape, last, strict=True))


def squared(reader: Reader, tensor: tf.Tensor) -> Base | None:
    """Returns what `tensor` is the square of, or None."""
    op = reader.op(tensor)
    if not is_float(tensor):
        return None
    if op.type == "SquaredDifference":
        return Base(*op.inputs)
    is_square = (
        op.type == "Square"
        or (op.type == "Mul" and reader.same(*op.inputs))
        or (op.type == "Pow" and number(reader, op.inputs[1], op.inputs[0]) == 2)
    )
    return Base(op.inputs[0]) if is_square else None


def reduction(reader: Reader, tensor: tf.Tensor, op_type: str) -> Reduction | None:
    """Reads a reduction over axes that are known, and a `Squeeze` of them after it."""
    op = reader.op(tensor)
    if op.type == "Squeeze":
        inner = reduction(reader, op.inputs[0], op_type)
        if inner is None or not inner.keepdims or inner.axes is None:
            return None
        rank = inner.x.shape.rank
        squeezed = op.get_attr("squeeze_dims")
        dropped = {axis % rank if rank else axis for axis in squeezed}
        return inner._replace(keepdims=False) if dropped == set(inner.axes) else None
    if op.type != op_type:
        return None
    x = op.inputs[0]
    axes = reader.axes(op.inputs[1], x.shape.rank)
    if axes == () or (axes is None and not _is_all(reader, op)):
        return None
    return Reduction(x, axes, op.get_attr("keep_dims"))


def _is_all(reader: Reader, op: tf.Operation) -> bool:
    """Returns whether `op` reduces all axes of a tensor of unknown rank."""
    axes = reader.op(op.inputs[1])
    if axes.type != "Range" or not reader.is_number(axes.inputs[0], 0):
        return False
    rank = reader.op(axes.inputs[1])
    return rank.type == "Rank" and reader.same(rank.inputs[0], op.inputs[0])


def root_of(reader: Reader, tensor: tf.Tensor) -> tf.Tensor | None:
    """Returns what `tensor` is the square root of, or None."""
    op = reader.op(tensor)
    is_root = op.type == "Sqrt" or (
        op.type == "Pow" and number(reader, op.inputs[1], op.inputs[0]) == 0.5
    )
    return op.inputs[0] if is_root and is_float(tensor) else None


def without_floor(reader: Reader, tensor: tf.Tensor) -> tf.Tensor:
    """Returns `x` for `maximum(x, 0)`, `relu(x)` and `abs(x)`."""
    op = reader.op(tensor)
    if op.type in {"Relu", "Abs"}:
        return op.inputs[0]
    for x, floor in both_ways(op, "Maximum"):
        if number(reader, floor, x) == 0:
            return x
    return tensor


def sum_of_squares(reader: Reader, tensor: tf.Tensor) -> Norm | None:
    """Reads a sum of squares over axes; returns what it is the square of."""
    total = reduction(reader, tensor, "Sum")
    base = None if total is None else squared(reader, total.x)
    if total is None or base is None:
        return None
    return Norm(base, total.axes, total.keepdims)


def norm(reader: Reader, tensor: tf.Tensor) -> Norm | None:
    """Reads a Euclidean norm."""
    inside = root_of(reader, tensor)
    if inside is not None:
        return sum_of_squares(reader, without_floor(reader, inside))
    direct = reduction(reader, tensor, "EuclideanNorm")
    if direct is None or not is_float(tensor):
        return None
    return Norm(Base(direct.x), direct.axes, direct.keepdims)


def reshaped(reader: Reader, tensor: tf.Tensor) -> Iterable[tf.Tensor]:
    """Yields `tensor` and what it is a mere reshaping of."""
    while True:
        tensor = reader.source(tensor)
        yield tensor
        op = tensor.op
        is_slice = op.type == "StridedSlice" and _only_adds_axes(reader, op)
        if op.type not in op_types(OpFact.RESHAPES) and not is_slice:
            return
        tensor = op.inputs[0]


def _only_adds_axes(reader: Reader, op: tf.Operation) -> bool:
    strides = reader.constant(op.inputs[3])
    whole = op.get_attr("new_axis_mask") | op.get_attr("ellipsis_mask")
    whole |= op.get_attr("begin_mask") & op.get_attr("end_mask")
    return (
        strides is not None
        and bool((strides == 1).all())
        and whole == (1 << strides.size) - 1
    )


def along(reader: Reader, tensor: tf.Tensor, found: Norm, x: tf.Tensor) -> bool:
    """Returns whether `tensor`, which reshapes a norm of `x`, stands beside its rows.

    That is, whether its shape is that of `x` with size 1 at the axes of the norm.
    """
    rank = x.shape.rank
    if found.axes is None or (rank is not None and len(found.axes) == rank):
        return bool(tensor.shape.rank == 0 or found.keepdims)
    if rank is None:
        return found.keepdims and reader.source(tensor).op.type != "Reshape"
    beside = [1 if i in found.axes else size for i, size in enumerate(x.shape)]
    # The elements keep their order, so that sizes decide, all but one of them known.
    return list(tensor.shape) == beside and (found.keepdims or beside.count(None) <= 1)


def both_ways(
    op: tf.Operation, *op_types: str
) -> Iterable[tuple[tf.Tensor, tf.Tensor]]:
    """Yields the two inputs of `op`, if it has one of the types, either way round."""
    if op.type in op_types:
        a, b = op.inputs
        yield a, b
        yield b, a


def terms(reader: Reader, tensor: tf.Tensor, depth: int = _DEPTH) -> list[Term]:
    """Takes a sum apart, through negation and multiplication by numbers."""
    op = reader.op(tensor)
    if op.type in _ADDITIONS and depth:
        return [t for each in op.inputs for t in terms(reader, each, depth - 1)]
    if op.type == "Sub" and depth:
        left, right = (terms(reader, each, depth - 1) for each in op.inputs)
        return left + [Term(-t.factor, t.tensor) for t in right]
    found = _scaled(reader, op) if depth else None
    if found is None or reader.constant(tensor) is not None:
        return [Term(1.0, reader.source(tensor))]
    return [
        Term(t.factor * found.factor, t.tensor)
        for t in terms(reader, found.tensor, depth - 1)
    ]


def _scaled(reader: Reader, op: tf.Operation) -> Term | None:
    if op.type == "Neg":
        return Term(-1.0, op.inputs[0])
    for x, other in both_ways(op, "Mul"):
        factor = number(reader, other, x)
        if factor is not None:
            return Term(factor, x)
    if op.type in op_types(OpFact.DIVIDES):
        divisor = number(reader, op.inputs[1], op.inputs[0])
        if divisor:
            return Term(1 / divisor, op.inputs[0])
    return None


def mean_of(reader: Reader, term: Term) -> tuple[float, Reduction] | None:
    """Reads a number times a mean, or times a sum of as many elements as are known."""
    mean = reduction(reader, term.tensor, "Mean")
    if mean is not None:
        return term.factor, mean
    total = reduction(reader, term.tensor, "Sum")
    if total is None or total.x.shape.rank is None:
        return None
    axes = range(total.x.shape.rank) if total.axes is None else total.axes
    count = 1.0
    for axis in axes:
        count *= total.x.shape[axis] or 0
    return (term.factor * count, total) if count else None


def single_mean(reader: Reader, tensor: tf.Tensor) -> Reduction | None:
    """Reads a mean, also where it is a sum over a number."""
    found = terms(reader, reader.value_source(tensor))
    mean = mean_of(reader, found[0]) if len(found) == 1 else None
    if mean is None or abs(mean[0] - 1) > 1e-6:
        return None
    return mean[1]
