"""Logarithm of the softmax and of a sum of exponentials.

With m the largest element of a row and

    others = sum of exp(x_i - m) over all elements but one that is largest,

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
from tfsafe._limits import LIMITS
from tfsafe.ops.kernels.probability.probabilities import (
    centered,
    hide,
    is_minus_inf,
    softmax,
)
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
    """Common results; the first has the shape of `x`, the others one number a row.

    The exponentials are those of the distance to the largest element.
    """

    exponentials: tf.Tensor
    largest: tf.Tensor
    others: tf.Tensor
    is_empty: tf.Tensor


def _row(x: tf.Tensor, axis: _Axis) -> tuple[tf.Tensor, _Row]:
    """Returns the distances to the largest element of each row, and the sums."""
    # `reduce_max` may pass over a NaN, which then reaches `others` by its exponential.
    largest = tf.reduce_max(x, axis, keepdims=True)
    # The distance to an infinite number would be NaN; the minimum makes it 0.
    bound = tf.constant(LIMITS[x.dtype.name].max, x.dtype)
    below = tf.minimum(x - tf.clip_by_value(largest, -bound, bound), 0)
    exponentials = tf.exp(below)
    total = tf.reduce_sum(exponentials, axis, keepdims=True)
    # Where the sum is below 1.5 the largest is alone, and the others are below half of
    # it. No number is compared with the largest itself: XLA may compute `x` twice and
    # round it in two ways. A difference costs less than a selection.
    lower = exponentials - tf.cast(below > -0.35, x.dtype)
    others = tf.reduce_sum(lower, axis, keepdims=True)
    others = tf.where(total < 1.5, others, total - 1)
    is_empty = is_minus_inf(largest) & (others >= 0)
    return below, _Row(exponentials, largest, others, is_empty)


@custom_gradient_in(1)
def log_softmax(x: tf.Tensor, axis: _Axis) -> tuple[tf.Tensor, _Gradient]:
    """Computes the logarithm of the softmax, `x - logsumexp(x)`."""
    below, row = _row(x, axis)
    # A +inf makes all of its row NaN; a row of nothing but -inf keeps its values.
    has_inf = tf.math.is_inf(row.largest) & ~row.is_empty
    row = row._replace(others=row.others + nan_where(has_inf, x.dtype))

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        return _slope(x, upstream, _Row(*map(local, row)), axis)

    return below - tf.math.log1p(row.others), vjp


@custom_gradient_in(2)
def _slope(
    x: tf.Tensor, upstream: tf.Tensor, row: _Row, axis: _Axis
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]]:
    """Returns `u - p * sum(u)`, with the digits of a class that dominates its row.

    The slopes of a row sum to 0. What they do sum to is the error of the dominating
    class, where `1 - p` cancels; a second difference takes it off.
    """
    exists = _exists(row, x.dtype)
    is_live = tf.reduce_any(tf.cast(upstream, tf.bool), axis, keepdims=True)
    probability = tf.where(is_live, exists / (1 + row.others), tf.zeros_like(exists))
    # A row of nothing but -inf has gradient 0.
    slope = tf.math.multiply_no_nan(upstream, exists)
    for _ in range(2):
        total = tf.reduce_sum(slope, axis, keepdims=True)
        factor = tf.math.multiply_no_nan(total, probability)
        slope -= tf.math.multiply_no_nan(row.exponentials, factor)

    def vjp(outer: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        probs = _softmax(x, _Row(*map(local, row)), axis)
        total = tf.reduce_sum(upstream, axis, keepdims=True)
        outer = centered(outer, probs, axis)
        return -times_where_nonzero(total, times_upstream(outer, probs)), outer

    return slope, vjp


@custom_gradient_in(1)
def _logsumexp(x: tf.Tensor, axis: _Axis) -> tuple[tf.Tensor, _Gradient]:
    row = _row(x, axis)[1]

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        return times_upstream(upstream, _softmax(x, _Row(*map(local, row)), axis))

    return row.largest + tf.math.log1p(row.others), vjp


def _softmax(x: tf.Tensor, row: _Row, axis: _Axis) -> tf.Tensor:
    """Returns the softmax; 0 in a row of nothing but `-inf`, NaN in a row with NaN."""
    probs = row.exponentials * (_exists(row, x.dtype) / (1 + row.others))
    return known(probs, lambda x: softmax(x, axis), x)


def _exists(row: _Row, dtype: tf.DType) -> tf.Tensor:
    # A factor and not a choice, so that NaN stays NaN.
    return 1 - tf.cast(row.is_empty, dtype)
