"""The rule for squared distances that are expanded into products."""

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from tfsafe.graph import MATRIX_PRODUCTS, SUMS
from tfsafe.ops.formulas.differences import uncancelled
from tfsafe.ops.kernels.zeros import square
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.layouts import same_shape
from tfsafe.rewriting.facts.sums import transposed
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.match.arithmetic import Base, Term, squared, terms
from tfsafe.rewriting.match.reductions import reduction, reshaped, sum_of_squares


class _Product(NamedTuple):
    """A number times the product of `a` and `b`, of whatever kind."""

    op: tf.Operation
    factor: float
    a: tf.Tensor
    b: tf.Tensor


def _match_distances(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `|a|^2 + |b|^2 - 2 a b`, of all pairs or of vectors side by side."""
    found = terms(reader, op.outputs[0])
    if len(found) != 3:
        return None
    for place, term in enumerate(found):
        squares = [each.tensor for each in found if each is not found[place]]
        factors = [each.factor for each in found if each is not found[place]]
        product = _product(reader, term)
        if product is None or factors != [1, 1] or product.factor != -2:
            continue
        if product.op.type in MATRIX_PRODUCTS:
            return _all_pairs(reader, product, squares, op.outputs[0])
        if product.op.type == "Sum":
            return _side_by_side(reader, product, squares)
        return _elementwise(reader, product, squares)
    return None


def _product(reader: Reader, term: Term) -> _Product | None:
    op = reader.op(term.tensor)
    inner = reader.op(op.inputs[0]) if op.type == "Sum" else op
    if inner.type != "Mul" and (inner is not op or op.type not in MATRIX_PRODUCTS):
        return None
    (a_factor, a), (b_factor, b) = (_unscaled(reader, x) for x in inner.inputs)
    return _Product(op, term.factor * a_factor * b_factor, a, b)


def _unscaled(reader: Reader, tensor: tf.Tensor) -> Term:
    found = terms(reader, tensor)
    return found[0] if len(found) == 1 else Term(1.0, reader.source(tensor))


class _Side(NamedTuple):
    """Vectors: the rows of `x`, or its columns."""

    x: tf.Tensor
    is_turned: bool

    def make(self, value: Value) -> tf.Tensor:
        """Returns the vectors as rows, in the graph that is made."""
        x = value(self.x)
        return tf.linalg.matrix_transpose(x) if self.is_turned else x


def _all_pairs(
    reader: Reader, product: _Product, squares: Sequence[tf.Tensor], out: tf.Tensor
) -> Build | None:
    turned_a, turned_b = transposed(product.op)
    a = _sides(reader, product.a, turned_a)
    b = _sides(reader, product.b, not turned_b)
    rank = product.a.shape.rank
    if rank is None or product.b.shape.rank != rank or out.shape.rank != rank:
        return None
    # The rows of `a` run along the last axis but one, those of `b` along the last.
    for first, second in (squares, squares[::-1]):
        if _are_lengths(reader, first, a, rank - 2) and _are_lengths(
            reader, second, b, rank - 1
        ):
            return _squared_distances(reader, a[-1], b[-1])
    return None


def _sides(reader: Reader, tensor: tf.Tensor, is_turned: bool) -> Sequence[_Side]:
    """Returns the vectors as written, and what they were transposed from."""
    sides = [_Side(reader.source(tensor), is_turned)]
    op = reader.op(tensor)
    if op.type == "Transpose" and _swaps_last(reader, op):
        sides.append(_Side(reader.source(op.inputs[0]), not is_turned))
    return sides


def _squared_distances(reader: Reader, a: _Side, b: _Side) -> Build | None:
    size = uncancelled.count_differences(a.x, b.x)
    is_small = size is not None and size <= uncancelled.MOST_DIFFERENCES
    if a.x.dtype == tf.float64 and not is_small:
        return None

    def build(value: Value) -> tf.Tensor:
        rows = a.make(value)
        is_same = reader.same(a.x, b.x) and a.is_turned == b.is_turned
        return uncancelled.squared_distances(rows, rows if is_same else b.make(value))

    return build


def _swaps_last(reader: Reader, op: tf.Operation) -> bool:
    order = reader.constant(op.inputs[1])
    if order is None or order.size < 2:
        return False
    rank = order.size
    return list(order) == [*range(rank - 2), rank - 1, rank - 2]


def _are_lengths(
    reader: Reader, tensor: tf.Tensor, sides: Sequence[_Side], place: int
) -> bool:
    """Returns whether `tensor` is squared lengths of vectors, along axis `place`."""
    rank, shape = sides[0].x.shape.rank, tensor.shape
    # An axis in front that is missing counts as one of size 1.
    axis = None if shape.rank is None else place - rank + shape.rank
    if axis is None or axis < 0 or (place == rank - 2 and shape[-1] != 1):
        return False
    if place == rank - 1 and shape.rank > 1 and shape[-2] != 1:
        return False
    for each in _straightened(reader, tensor):
        found = sum_of_squares(reader, each)
        if found is not None:
            return found.base.minus is None and any(
                reader.same(found.base.x, side.x)
                and found.axes == (rank - 2 if side.is_turned else rank - 1,)
                and shape[axis] == side.x.shape[-1 if side.is_turned else -2]
                and _batches_fit(shape, side.x.shape)
                for side in sides
            )
    return False


def _batches_fit(shape: tf.TensorShape, of: tf.TensorShape) -> bool:
    return of.rank == 2 or list(shape[:-2]) == list(of[:-2])


def _straightened(reader: Reader, tensor: tf.Tensor) -> Sequence[tf.Tensor]:
    """Returns a vector and what it was reshaped or transposed from."""
    found = list(reshaped(reader, tensor))
    op = found[-1].op
    if op.type == "Transpose" and found[-1].shape.rank is not None:
        sizes = [size for size in found[-1].shape if size != 1]
        if len(sizes) <= 1 or _swaps_last(reader, op):
            found += reshaped(reader, op.inputs[0])
    return found


def _side_by_side(
    reader: Reader, product: _Product, squares: Sequence[tf.Tensor]
) -> Build | None:
    inner = reduction(reader, product.op.outputs[0], "Sum")
    norms = [sum_of_squares(reader, each) for each in squares]
    if inner is None or None in norms:
        return None
    _, _, a, b = product
    for found in norms:
        if found is None or found.base.minus is not None:
            return None
        if (found.axes, found.keepdims) != (inner.axes, inner.keepdims):
            return None
    bases = [found.base for found in norms if found is not None]
    if not _are(reader, bases, (a, b)) or not same_shape(a, b):
        return None
    axes, keepdims = inner.axes, inner.keepdims
    return lambda value: tf.reduce_sum(square(value(a) - value(b)), axes, keepdims)


def _elementwise(
    reader: Reader, product: _Product, squares: Sequence[tf.Tensor]
) -> Build | None:
    bases = [squared(reader, each) for each in squares]
    _, _, a, b = product
    found = [base for base in bases if base is not None and base.minus is None]
    if not _are(reader, found, (a, b)):
        return None
    return lambda value: square(value(a) - value(b))


def _are(
    reader: Reader, bases: Sequence[Base], factors: tuple[tf.Tensor, tf.Tensor]
) -> bool:
    """Returns whether the two bases are the two factors, in either order."""
    a, b = factors
    return len(bases) == 2 and any(
        reader.same(bases[0].x, first) and reader.same(bases[1].x, second)
        for first, second in ((a, b), (b, a))
    )


RULES = (
    Rule(
        name="squared-distances",
        before="sum(a * a) + sum(b * b) - 2 * matmul(a, b)",
        after="sum((a - b) ** 2)",
        fails_when="a is near b: no digit is left, or the result is negative",
        reference="tfsafe.ops.cdist",
        op_types=SUMS,
        match=_match_distances,
    ),
)
