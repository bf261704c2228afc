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
    custom_gradient,
    custom_gradient_in,
    local,
    nan_where,
    zero_unused_rows,
)
from tfsafe.ops.kernels.probabilities import hide, is_minus_inf, softmax_vjp
from tfsafe.ops.kernels.zeros import times_upstream

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
    """Common results; all but the exponentials have size 1 along `axis`."""

    largest: tf.Tensor
    is_largest: tf.Tensor
    ties: tf.Tensor
    exponentials: tf.Tensor
    others: tf.Tensor
    has_inf: tf.Tensor
    is_empty: tf.Tensor


def _row(x: tf.Tensor, axis: _Axis) -> _Row:
    # `reduce_max` may pass over a NaN, which then reaches `others` by its exponential.
    largest = tf.reduce_max(x, axis, keepdims=True)
    is_largest = tf.equal(x, largest)
    ties = tf.reduce_sum(tf.cast(is_largest, x.dtype), axis, keepdims=True)
    # Without the `where`, inf - inf is NaN.
    exponentials = tf.exp(tf.where(is_largest, tf.zeros_like(x), x - largest))
    others = (ties - 1) + _sum_below(exponentials, is_largest, axis)
    is_inf = tf.math.is_inf(largest)
    has_inf = tf.logical_and(is_inf, largest > 0)
    is_empty = tf.logical_and(is_inf, largest < 0)
    return _Row(largest, is_largest, ties, exponentials, others, has_inf, is_empty)


def _sum_below(x: tf.Tensor, is_largest: tf.Tensor, axis: _Axis) -> tf.Tensor:
    kept = tf.where(is_largest, tf.zeros_like(x), x)
    return tf.reduce_sum(kept, axis, keepdims=True)


def _mean_at_largest(x: tf.Tensor, row: _Row, axis: _Axis) -> tf.Tensor:
    kept = tf.where(row.is_largest, x, tf.zeros_like(x))
    return tf.math.divide_no_nan(tf.reduce_sum(kept, axis, keepdims=True), row.ties)


@custom_gradient_in(1)
def log_softmax(x: tf.Tensor, axis: _Axis) -> tuple[tf.Tensor, _Gradient]:
    """Computes the logarithm of the softmax, `x - logsumexp(x)`."""
    row = _row(x, axis)
    # A row of nothing but -inf keeps its values; a +inf makes all of its row NaN.
    largest = tf.where(row.is_empty, tf.zeros_like(row.largest), row.largest)
    nan = nan_where(row.has_inf, x.dtype)
    value = (x - largest) - (tf.math.log1p(row.others) + nan)

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        return _log_softmax_vjp(x, row, axis, upstream)

    return value, vjp


def _log_softmax_vjp(
    x: tf.Tensor, row: _Row, axis: _Axis, upstream: tf.Tensor
) -> tf.Tensor:
    """Returns `u - p * sum(u)` without the `1 - p` of a class that dominates its row.

    The mean of `u - p * sum(u)` over the k largest elements is equal to

        (sum(u) * (sum of p below them) - (sum of u below them)) / k

    which has no difference of nearly equal numbers. It takes the mean's place.
    """
    is_nan = tf.logical_or(tf.math.is_nan(row.others), row.has_inf)
    # A row of NaN gets zeros here and NaN at the end, so that it does not spread
    # to the gradient of this gradient.
    probs = tf.where(is_nan, tf.zeros_like(x), _softmax(x, row, axis))
    total = tf.reduce_sum(upstream, axis, keepdims=True)
    plain = upstream - probs * total
    mean = tf.math.divide_no_nan(
        total * _sum_below(probs, row.is_largest, axis)
        - _sum_below(upstream, row.is_largest, axis),
        row.ties,
    )
    at_largest = (plain - _mean_at_largest(plain, row, axis)) + mean
    slopes = tf.where(row.is_largest, at_largest, plain)
    is_live = tf.reduce_any(tf.not_equal(upstream, 0), axis, keepdims=True)
    nan = nan_where(tf.logical_and(is_nan, is_live), x.dtype)
    return tf.where(row.is_empty, tf.zeros_like(slopes), slopes) + nan


@custom_gradient_in(1)
def _logsumexp(x: tf.Tensor, axis: _Axis) -> tuple[tf.Tensor, _Gradient]:
    row = _row(x, axis)

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        return times_upstream(upstream, _softmax(x, row, axis))

    return row.largest + tf.math.log1p(row.others), vjp


def _softmax(x: tf.Tensor, row: _Row, axis: _Axis) -> tf.Tensor:
    """Computes the softmax; 0 in a row of nothing but `-inf`, NaN in a row with NaN."""
    row = _Row(*map(local, row))

    @custom_gradient
    def function(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
        def vjp(upstream: tf.Tensor) -> tf.Tensor:
            probs = zero_unused_rows(_softmax(x, row, axis), upstream, axis)
            return softmax_vjp(probs, upstream, axis)

        # A product and not a choice, so that NaN stays NaN.
        exists = 1 - tf.cast(row.is_empty, x.dtype)
        return exists * row.exponentials / (1 + row.others), vjp

    return function(x)
