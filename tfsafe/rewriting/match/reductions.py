"""Recognises sums, means and norms over axes."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import tensorflow as tf

from tfsafe.ops.formulas.differences.angles import within_domain
from tfsafe.ops.formulas.limits.removable import squared_acos
from tfsafe.ops.kernels import precision
from tfsafe.rewriting.engine.rule import Build
from tfsafe.rewriting.facts.layouts import reshapes, same_shape
from tfsafe.rewriting.facts.sums import axes_of_einsum
from tfsafe.rewriting.facts.tensors import Reader, is_float
from tfsafe.rewriting.match.arithmetic import (
    Base,
    Term,
    root_of,
    squared,
    terms,
    without_floor,
)

# The functions that take sums and means over axes, by the type of the operation.
REDUCTIONS: dict[str, Callable[..., tf.Tensor]] = {
    "Mean": tf.reduce_mean,
    "Sum": tf.reduce_sum,
}


class Reduction(NamedTuple):
    """A sum or mean of `x` over `axes`, over all of them if None."""

    x: tf.Tensor
    axes: tuple[int, ...] | None
    keepdims: bool


class Norm(NamedTuple):
    """The Euclidean norm of `base` over `axes`, over all of them if None."""

    base: Base
    axes: tuple[int, ...] | None
    keepdims: bool


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
    if op.type == "Einsum" and op_type == "Sum":
        summed = axes_of_einsum(op)
        return None if summed is None else Reduction(op.inputs[0], summed, False)
    if op.type != op_type:
        return None
    x = op.inputs[0]
    axes = reader.axes(op.inputs[1], x.shape.rank)
    if axes == () or (axes is None and not _is_all(reader, op)):
        return None
    return Reduction(x, axes, op.get_attr("keep_dims"))


def dot_product(
    reader: Reader, tensor: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, Reduction] | None:
    """Reads `sum(a * b)` of tensors of one shape; the reduction is of a product."""
    op = reader.op(tensor)
    axes = axes_of_einsum(op)
    if axes is not None and len(op.inputs) == 2 and op.inputs[0].shape.rank is not None:
        a, b = op.inputs
        return a, b, Reduction(a, axes, False)
    total = reduction(reader, tensor, "Sum")
    if total is None:
        return None
    product = reader.op(total.x)
    base = squared(reader, total.x)
    if base is not None and base.minus is None:
        return base.x, base.x, total
    if product.type != "Mul":
        return None
    a, b = product.inputs
    return (a, b, total) if same_shape(a, b) else None


def _is_all(reader: Reader, op: tf.Operation) -> bool:
    """Returns whether `op` reduces all axes of a tensor of unknown rank."""
    axes = reader.op(op.inputs[1])
    if axes.type != "Range" or not reader.is_number(axes.inputs[0], 0):
        return False
    rank = reader.op(axes.inputs[1])
    return rank.type == "Rank" and reader.same(rank.inputs[0], op.inputs[0])


def sum_of_squares(reader: Reader, tensor: tf.Tensor) -> Norm | None:
    """Reads a sum of squares over axes; returns what it is the square of."""
    op = reader.op(tensor)
    if op.type == "Einsum" and len(op.inputs) == 2:
        axes = axes_of_einsum(op) if reader.same(*op.inputs) else None
        return None if axes is None else Norm(Base(op.inputs[0]), axes, False)
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


def is_length(reader: Reader, tensor: tf.Tensor, other: tf.Tensor) -> bool:
    """Returns whether two tensors of one shape are the same norm, perhaps reshaped."""
    a, b = (_through_shapes(reader, each, norm) for each in (tensor, other))
    return same_shape(tensor, other) and _are_alike(reader, a, b)


def is_square_of(reader: Reader, square: tf.Tensor, root: tf.Tensor) -> bool:
    """Returns whether a sum of squares is that of a norm of the same shape."""
    a = _through_shapes(reader, square, sum_of_squares)
    b = _through_shapes(reader, root, norm)
    return same_shape(square, root) and _are_alike(reader, a, b)


def _through_shapes(
    reader: Reader,
    tensor: tf.Tensor,
    read: Callable[[Reader, tf.Tensor], Norm | None],
) -> Norm | None:
    found = (read(reader, each) for each in reshaped(reader, tensor))
    return next(filter(None, found), None)


def _are_alike(reader: Reader, a: Norm | None, b: Norm | None) -> bool:
    if a is None or b is None or a.axes != b.axes:
        return False
    if a.base.minus is None or b.base.minus is None:
        is_alike = a.base.minus is b.base.minus
    else:
        is_alike = reader.same(a.base.minus, b.base.minus)
    return is_alike and reader.same(a.base.x, b.base.x)


def squared_length(reader: Reader, term: Term) -> Build | None:
    """Reads a number times a Euclidean norm, also reshaped, a root or an `acos`.

    Returns:
      How to build its square without the root, of the shape of the term and at least in
      float32; None for anything else.
    """
    for each in reshaped(reader, term.tensor):
        found = norm(reader, each)
        if found is not None:
            base, axes, _ = found
            return lambda value: tf.reshape(
                term.factor**2
                * tf.reduce_sum(tf.square(precision.wide(base.make(value))), axes),
                tf.shape(value(term.tensor)),
            )
    op, inside = reader.op(term.tensor), root_of(reader, term.tensor)
    if inside is not None:
        return _squared(term, inside, _not_negative)
    if op.type == "Acos":
        return _squared(term, op.inputs[0], within_domain(squared_acos))
    return None


def _squared(
    term: Term, inside: tf.Tensor, square: Callable[[tf.Tensor], tf.Tensor]
) -> Build:
    return lambda value: term.factor**2 * square(precision.wide(value(inside)))


def _not_negative(x: tf.Tensor) -> tf.Tensor:
    return tf.where(x < 0, tf.constant(math.nan, x.dtype), x)


def mean_of_squares(reader: Reader, tensor: tf.Tensor) -> tuple[float, Norm | None]:
    """Reads a sum or mean of squares over axes; returns n of `norm ** 2 / n` first."""
    mean = reduction(reader, tensor, "Mean")
    if mean is None:
        return 1.0, sum_of_squares(reader, tensor)
    base, count = squared(reader, mean.x), _count(mean)
    if base is None or not count:
        return 1.0, None
    return count, Norm(base, mean.axes, mean.keepdims)


def _count(found: Reduction) -> float:
    """Returns how many elements each sum has; 0 where that is not known."""
    if found.x.shape.rank is None:
        return 0.0
    axes = range(found.x.shape.rank) if found.axes is None else found.axes
    return float(math.prod(found.x.shape[axis] or 0 for axis in axes))


def mean_of(reader: Reader, term: Term) -> tuple[float, Reduction] | None:
    """Reads a number times a mean, or times a sum of as many elements as are known."""
    mean = reduction(reader, term.tensor, "Mean")
    if mean is not None:
        return term.factor, mean
    total = reduction(reader, term.tensor, "Sum")
    if total is None or not (count := _count(total)):
        return None
    return term.factor * count, total


def single_mean(reader: Reader, tensor: tf.Tensor) -> Reduction | None:
    """Reads a mean, also where it is a sum over a number."""
    found = terms(reader, reader.value_source(tensor))
    mean = mean_of(reader, found[0]) if len(found) == 1 else None
    if mean is None or abs(mean[0] - 1) > 1e-6:
        return None
    return mean[1]


def along(reader: Reader, tensor: tf.Tensor, found: Norm, x: tf.Tensor) -> bool:
    """Returns whether `tensor`, a reshaped norm of `x`, lines up with its rows."""
    rank = x.shape.rank
    if found.axes is None or (rank is not None and len(found.axes) == rank):
        return bool(tensor.shape.rank == 0 or found.keepdims)
    if rank is None:
        return found.keepdims and reader.source(tensor).op.type != "Reshape"
    kept = [1 if i in found.axes else size for i, size in enumerate(x.shape)]
    is_kept = found.keepdims and list(tensor.shape) == kept
    return is_kept or lines_up(tensor.shape, x.shape, found.axes)


def reshaped(reader: Reader, tensor: tf.Tensor) -> Iterable[tf.Tensor]:
    """Yields `tensor`, then what it was reshaped from, step by step."""
    while True:
        tensor = reader.source(tensor)
        yield tensor
        op = tensor.op
        if not reshapes(reader, op):
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
