"""Logarithm of the softmax and of a sum of exponentials.

With m the largest element of a row, k how often it occurs and

    others = (k - 1) + sum of exp(x_i - m) over the elements below m,

the row's sum of exponentials is `exp(m) * (1 + others)`. Nothing in it overflows, and
`log1p(others)` keeps the digits that `log(1 + others)` loses when one element
dominates the row.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf

from tfsafe._gradients import (
    custom_gradient_in,
    known,
    local,
    nan_where,
)
from tfsafe.ops.kernels.probabilities import centered, hide, is_minus_inf, softmax
from tfsafe.ops.kernels.zeros import times_upstream, times_where_nonzero

_Axis = Sequence[int] | None
_Gradient = Callable[[tf.Tensor], tf.Tensor]


def exclude(x: tf.Tensor, condition: tf.Tensor) -> tf.Tensor:
    """Returns `-inf` where `condition` holds, out of a logarithm as in `nan_where`."""
    return x + tf.math.log(1 - tf.cast(condition, x.dtype))


def masked_logsumexp(x: tf.Tensor, keep: tf.Tensor | None, axis: _Axis) -> tf.Tensor:
    """Computes `logsumexp` of what `keep` keeps; `-inf` where it keeps nothing."""
    if keep is None:
        return _logsumexp(x, axis)
    is_empty = tf.reduce_all(~keep | is_minus_inf(x), axis, keepdims=True)
    return exclude(_logsumexp(hide(x, keep), axis), is_empty)


class _Row(NamedTuple):
    """Common results; the first two have the shape of `x`, the others one number a row.

    The exponentials are those of the distance to the largest element.
    """

    is_largest: tf.Tensor
    exponentials: tf.Tensor
    largest: tf.Tensor
    others: tf.Tensor
    is_empty: tf.Tensor


def _row(x: tf.Tensor, axis: _Axis) -> tuple[tf.Tensor, _Row]:
    """Returns the distances to the largest element of each row, and the sums."""
    # `reduce_max` may pass over a NaN, which then reaches `others` by its exponential.
    largest = tf.reduce_max(x, axis, keepdims=True)
    is_largest = tf.equal(x, largest)
    # Without the `where`, inf - inf is NaN.
    below = tf.where(is_largest, tf.zeros_like(x), x - largest)
    exponentials = tf.exp(below)
    total = tf.reduce_sum(exponentials, axis, keepdims=True)
    others = _sum_below(exponentials, is_largest, axis)
    # Two or more that are largest: nothing is lost in a sum of at least 2.
    others = tf.where(total - others > 1.5, total - 1, others)
    is_empty = is_minus_inf(largest) & (others >= 0)
    return below, _Row(is_largest, exponentials, largest, others, is_empty)


def _sum_below(x: tf.Tensor, is_largest: tf.Tensor, axis: _Axis) -> tf.Tensor:
    kept = tf.where(is_largest, tf.zeros_like(x), x)
    return tf.reduce_sum(kept, axis, keepdims=True)


@custom_gradient_in(1)
def log_softmax(x: tf.Tensor, axis: _Axis) -> tuple[tf.Tensor, _Gradient]:
    """Computes the logarithm of the softmax, `x - logsumexp(x)`."""
    below, row = _row(x, axis)
    # A +inf makes all of its row NaN; a row of nothing but -inf keeps its values.
    has_inf = tf.math.is_inf(row.largest) & ~row.is_empty
    row = row._replace(others=row.others + nan_where(has_inf, x.dtype))
    empty = tf.where(row.is_empty, row.largest, tf.zeros_like(row.largest))

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        copy = _Row(*map(local, row))
        # A row of nothing but -inf has gradient 0.
        upstream = tf.where(copy.is_empty, tf.zeros_like(upstream), upstream)
        return _slope(x, upstream, copy, axis)

    return below - (tf.math.log1p(row.others) - empty), vjp


@custom_gradient_in(2)
def _slope(
    x: tf.Tensor, upstream: tf.Tensor, row: _Row, axis: _Axis
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]]:
    """Returns `u - p * sum(u)` without the `1 - p` of a class that dominates its row.

    With P the sum of p below that class and U the sum of u below it, its entry is

        u - p * (u + U) = u * P - p * U

    which has no difference of nearly equal numbers.
    """
    is_live = tf.reduce_any(tf.cast(upstream, tf.bool), axis, keepdims=True)
    total = tf.reduce_sum(upstream, axis, keepdims=True)
    below = _sum_below(upstream, row.is_largest, axis)
    largest = 1 / (1 + row.others)
    dominating = (total - below) * (row.others * largest) - below * largest
    factor = tf.where(is_live, total * largest, tf.zeros_like(total))
    slope = upstream - tf.math.multiply_no_nan(row.exponentials, factor)
    dominates = row.is_largest & (row.others < 1)

    def vjp(outer: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        probs = _softmax(x, _Row(*map(local, row)), axis)
        total = tf.reduce_sum(upstream, axis, keepdims=True)
        outer = centered(outer, probs, axis)
        return -times_where_nonzero(total, times_upstream(outer, probs)), outer

    return tf.where(dominates, dominating, slope), vjp


@custom_gradient_in(1)
def _logsumexp(x: tf.Tensor, axis: _Axis) -> tuple[tf.Tensor, _Gradient]:
    row = _row(x, axis)[1]

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        return times_upstream(upstream, _softmax(x, _Row(*map(local, row)), axis))

    return row.largest + tf.math.log1p(row.others), vjp


def _softmax(x: tf.Tensor, row: _Row, axis: _Axis) -> tf.Tensor:
    """Returns the softmax; 0 in a row of nothing but `-inf`, NaN in a row with NaN."""
    # A product and not a choice, so that NaN stays NaN.
    exists = 1 - tf.cast(row.is_empty, x.dtype)
    probs = row.exponentials * (exists / (1 + row.others))
    return known(probs, lambda x: softmax(x, axis), x)
