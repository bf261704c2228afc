"""Weighted means, products of deviations from means, and sums of their squares."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfsafe._gradients import custom_gradient, nan_where
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.zeros import (
    divide_unless_zero,
    quotient_for_gradient,
    times_upstream,
)


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


_Axis = Sequence[int] | None


def weighted_mean(
    x: tf.Tensor, weights: tf.Tensor, axis: _Axis, empty_value: float
) -> tf.Tensor:
    """Computes the mean by weights, and `empty_value` where they sum to 0."""

    @custom_gradient
    def function(x: tf.Tensor, weights: tf.Tensor) -> tuple[tf.Tensor, Any]:
        is_ignored = tf.equal(weights, 0)
        fractions, inverse, total = _scaled_weights(weights, axis)
        kept, power, _ = precision.scaled(
            tf.where(is_ignored, tf.zeros_like(x), x), axis
        )
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

    return function(x, weights)


def _scaled_weights(
    weights: tf.Tensor, axis: _Axis
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    # A mean does not change when all its weights are scaled, so that the power may be
    # taken for a constant: no gradient is missing.
    _, _, inverse = precision.scaled(tf.stop_gradient(weights), axis)
    fractions = weights * inverse + nan_where(weights < 0, weights.dtype)
    return fractions, inverse, tf.reduce_sum(fractions, axis, keepdims=True)
