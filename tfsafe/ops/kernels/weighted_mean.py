"""Mean by weights, where a weight may be 0."""

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
