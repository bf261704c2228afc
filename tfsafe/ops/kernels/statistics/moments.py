"""Mean, variance and standard deviation of what a mask keeps.

A row is scaled by a power of 2, so that no sum and no square leaves the range, and
shifted by one of its own elements, so that the spread keeps its digits however large
the mean is and that equal elements have a variance of exactly 0.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tfsafe._gradients import (
    custom_gradient_in,
    known,
    local,
    nan_where,
)
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.probability.probabilities import hide
from tfsafe.ops.kernels.zeros import (
    divide_unless_zero,
    quotient_for_gradient,
    reciprocal,
    times_upstream,
)

_Axis = Sequence[int] | None
_Gradient = Callable[[tf.Tensor], tf.Tensor]


@custom_gradient_in(1)
def mean(
    x: tf.Tensor, axis: _Axis, keep: tf.Tensor | None
) -> tuple[tf.Tensor, _Gradient]:
    """Computes the mean, and 0 where there is nothing to take it of."""
    count = _count(x, axis, keep)
    kept = _zero_unless(keep, x)
    value = tf.reduce_sum(kept, axis, keepdims=True) / count
    # Where the sum overflowed.
    other = tf.reduce_sum(kept * (1 / count), axis, keepdims=True)

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        portion = tf.broadcast_to(upstream / count, tf.shape(x))
        return _zero_unless(keep, portion)

    return tf.where(tf.math.is_finite(value), value, other), vjp


@custom_gradient_in(1)
def variance(
    x: tf.Tensor, axis: _Axis, keep: tf.Tensor | None
) -> tuple[tf.Tensor, _Gradient]:
    """Computes the mean of the squared distances from the mean."""
    row = _row(x, axis, keep)

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        mask = local(keep)
        deviation = known(
            row.power * row.centred, lambda x: _deviation(x, axis, mask), x
        )
        return times_upstream(2 * upstream / row.count, deviation)

    # Not a product of three, in which a graph would square the power first: that
    # may overflow.
    return tf.square(row.power * tf.sqrt(row.variance)), vjp


@custom_gradient_in(1)
def std(
    x: tf.Tensor, axis: _Axis, keep: tf.Tensor | None
) -> tuple[tf.Tensor, _Gradient]:
    """Computes the standard deviation, with gradient 0 where all elements are equal."""
    row = _row(x, axis, keep)
    root = tf.sqrt(row.variance)

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        mask = local(keep)
        score = known(
            divide_unless_zero(row.centred, root),
            lambda x: _score(x, axis, mask),
            x,
        )
        return times_upstream(upstream / row.count, score)

    return row.power * root, vjp


@custom_gradient_in(1)
def _deviation(
    x: tf.Tensor, axis: _Axis, keep: tf.Tensor | None
) -> tuple[tf.Tensor, _Gradient]:
    """Returns `x` less its mean, and 0 where it is masked."""
    row = _row(x, axis, keep)

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        return _centre(upstream, row.count, axis, keep)

    return row.power * row.centred, vjp


@custom_gradient_in(1)
def _score(
    x: tf.Tensor, axis: _Axis, keep: tf.Tensor | None
) -> tuple[tf.Tensor, _Gradient]:
    """Returns the deviation over the standard deviation; 0 where both are 0."""
    row = _row(x, axis, keep)
    root = tf.sqrt(row.variance)
    value = divide_unless_zero(row.centred, root)

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        mask = local(keep)
        score = known(value, lambda x: _score(x, axis, mask), x)
        along = tf.reduce_sum(times_upstream(upstream, score), axis, keepdims=True)
        slope = _centre(upstream, row.count, axis, mask)
        slope -= times_upstream(along / row.count, score)
        deviation = known(row.power * root, lambda x: std(x, axis, mask), x)
        return times_upstream(slope, reciprocal(deviation))

    return value, vjp


class _Row(NamedTuple):
    """A row over a power of 2; the deviations are 0 where it is masked."""

    centred: tf.Tensor
    variance: tf.Tensor
    power: tf.Tensor
    count: tf.Tensor


def _row(x: tf.Tensor, axis: _Axis, keep: tf.Tensor | None) -> _Row:
    scaled, power, _ = precision.scaled(_zero_unless(keep, x), axis)
    first = an_element(scaled, axis, keep)
    count = _count(x, axis, keep)
    centred = _centre(scaled - first, count, axis, keep)
    variance = tf.reduce_sum(tf.square(centred), axis, keepdims=True) / count
    return _Row(centred, variance, power, count)


def _centre(
    x: tf.Tensor, count: tf.Tensor, axis: _Axis, keep: tf.Tensor | None
) -> tf.Tensor:
    total = tf.reduce_sum(_zero_unless(keep, x), axis, keepdims=True)
    return _zero_unless(keep, x - total / count)


def an_element(x: tf.Tensor, axis: _Axis, keep: tf.Tensor | None = None) -> tf.Tensor:
    """Returns one of the elements that count in each row; 0 if it is not finite."""
    if keep is None and axis is not None and x.shape.rank is not None:
        # The first of each row, or nothing in a row of size 0.
        x = x[tuple(slice(1 if i in axis else None) for i in range(x.shape.rank))]
    if keep is not None:
        x = hide(x, keep)
    first = tf.reduce_max(x, axis, keepdims=True)
    return tf.where(tf.math.is_finite(first), first, tf.zeros_like(first))


def _count(x: tf.Tensor, axis: _Axis, keep: tf.Tensor | None) -> tf.Tensor:
    """Returns how many elements count in each row, and 1 for rows without any."""
    if keep is not None:
        count = tf.reduce_sum(tf.cast(keep, x.dtype), axis, keepdims=True)
    elif axis is None:
        count = tf.size(x, tf.int64)
    else:
        shape = tf.shape(x, tf.int64)
        count = tf.reduce_prod(tf.stack([1, *(shape[each] for each in axis)]))
    return tf.maximum(tf.cast(count, x.dtype), 1)


def _zero_unless(keep: tf.Tensor | None, x: tf.Tensor) -> tf.Tensor:
    return x if keep is None else tf.where(keep, x, tf.zeros_like(x))


def covariance(
    x: tf.Tensor, y: tf.Tensor, axes: Sequence[int] | None, keepdims: bool
) -> tf.Tensor:
    """Computes the mean of `(x - mean(x)) * (y - mean(y))` over axes."""

    def formula(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        x, y = (each - tf.reduce_mean(each, axes, keepdims=True) for each in (x, y))
        return tf.reduce_mean(x * y, axes, keepdims=keepdims)

    return precision.in_float32(formula, x, y)


def mean_beside(
    x: tf.Tensor, other: tf.Tensor, axes: Sequence[int] | None, keepdims: bool
) -> tf.Tensor:
    """Computes the mean of `x`, broadcast to the shape of another tensor."""
    shape = tf.broadcast_dynamic_shape(tf.shape(x), tf.shape(other))
    return tf.reduce_mean(tf.broadcast_to(x, shape), axes, keepdims=keepdims)


def times_inverse(x: tf.Tensor, inverse: tf.Tensor) -> tf.Tensor:
    """Computes `x * inverse`; 0, with slopes 0, where `x` is 0 and it is infinite."""
    is_nothing = tf.equal(x, 0) & tf.math.is_inf(inverse)
    return x * tf.where(is_nothing, tf.zeros_like(inverse), inverse)


def normalised(weights: tf.Tensor, axis: Sequence[int]) -> tf.Tensor:
    """Scales weights so that they add up to 1; all that are 0 stay so."""
    total = tf.reduce_sum(weights, axis=axis, keepdims=True)
    return tf.math.divide_no_nan(weights, total)


def weighted_moments(x: tf.Tensor, weight: tf.Tensor) -> list[tf.Tensor]:
    """Returns weighted count, mean and summed squared distances along the first axis.

    The distances are taken from the largest value, so that a constant has none.
    """
    lowest = tf.constant(x.dtype.min, x.dtype)
    largest = tf.reduce_max(tf.where(tf.equal(weight, 0), lowest, x), 0, keepdims=True)
    largest = tf.where(largest > lowest, largest, tf.zeros_like(largest))
    count = tf.reduce_sum(weight, 0, keepdims=True)
    offset = tf.math.divide_no_nan(
        tf.reduce_sum(weight * (x - largest), 0, keepdims=True), count
    )
    distance = x - largest - offset
    spread = tf.reduce_sum(weight * tf.square(distance), 0, keepdims=True)
    return [count, largest + offset, spread]


def merged_moments(count: Any, mean: Any, spread: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns count and summed squared distances of several parts, one a row.

    Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing
    sample variances", 1982.
    """
    count, mean, spread = (tf.convert_to_tensor(x) for x in (count, mean, spread))
    _, _, between = weighted_moments(mean, count)
    return tf.reduce_sum(count, 0), tf.reduce_sum(spread, 0) + between[0]


def squared_error(x: tf.Tensor, y: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
    """Sums weighted squared differences along the first axis."""
    return tf.reduce_sum(weight * tf.square(x - y), 0)


def determination(error: tf.Tensor, count: tf.Tensor, spread: tf.Tensor) -> tf.Tensor:
    """Computes `1 - error / spread`; without a spread 1 if the error is 0 too."""
    is_flat = tf.equal(spread, 0)
    flat = tf.cast(tf.equal(error, 0) & (count > 0), spread.dtype)
    quotient = error / tf.where(is_flat, tf.ones_like(spread), spread)
    return tf.where(is_flat, flat, 1 - quotient)


def average(x: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
    """Computes the weighted mean, the plain one where the weights add up to 0."""
    total = tf.reduce_sum(weight)
    weighted = tf.math.divide_no_nan(tf.reduce_sum(weight * x), total)
    return tf.where(tf.equal(total, 0), tf.reduce_mean(x), weighted)


@custom_gradient_in(2)
def weighted_mean(
    x: tf.Tensor, weights: tf.Tensor, axis: _Axis, empty_value: float
) -> tuple[tf.Tensor, Any]:
    """Computes the mean by weights, and `empty_value` where they sum to 0."""
    is_ignored = tf.equal(weights, 0)
    fractions, inverse, total = _scaled_weights(weights, axis)
    kept, power, _ = precision.scaled(tf.where(is_ignored, tf.zeros_like(x), x), axis)
    weighted = tf.reduce_sum(fractions * kept, axis, keepdims=True)
    is_empty = tf.equal(total, 0)
    mean = power * divide_unless_zero(weighted, total)

    def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        mean = weighted_mean(x, weights, axis, empty_value)
        unseen = tf.logical_and(is_ignored, ~tf.math.is_finite(x))
        distance = tf.where(unseen, mean, x) - mean
        slope = quotient_for_gradient(distance, total) * inverse
        fraction = quotient_for_gradient(fractions, total)
        return times_upstream(upstream, fraction), times_upstream(upstream, slope)

    return tf.where(is_empty, tf.constant(empty_value, x.dtype), mean), vjp


def _scaled_weights(
    weights: tf.Tensor, axis: _Axis
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    # A mean does not change when all its weights are scaled, so that the power may be
    # taken for a constant: no gradient is missing.
    _, _, inverse = precision.scaled(tf.stop_gradient(weights), axis)
    fractions = weights * inverse + nan_where(weights < 0, weights.dtype)
    return fractions, inverse, tf.reduce_sum(fractions, axis, keepdims=True)


def without_rounding(
    difference: tf.Tensor, term: tf.Tensor, rounding: float = 2.0**-51
) -> tf.Tensor:
    """Returns a difference of float64; 0 where it is the rounding of a term.

    Of averages of numbers in float32 that is the rounding of the averages: an epsilon
    that a quotient adds to it would be far less. The slopes stay.
    """
    is_rounding = tf.abs(difference) < rounding * tf.abs(term)
    left = tf.where(is_rounding, difference, tf.zeros_like(difference))
    return difference - tf.stop_gradient(left)
