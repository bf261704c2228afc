"""Sums and means of reciprocals, inverted."""

from collections.abc import Callable, Sequence

import tensorflow as tf

from tfsafe._gradients import custom_gradient_in
from tfsafe.ops.formulas.unchanged_values import divide
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.zeros import times_upstream


def harmonic_sum(x: tf.Tensor, axes: Sequence[int] | None) -> tf.Tensor:
    """Computes `1 / sum(1 / x)` over axes that keep size 1, with its slopes at 0."""
    return precision.in_float32(lambda x: _harmonic_sum(x, axes), x)


def harmonic_mean(x: tf.Tensor, axes: Sequence[int] | None) -> tf.Tensor:
    """Computes `1 / mean(1 / x)` over axes that keep size 1, with its slopes at 0."""

    def compute(x: tf.Tensor) -> tf.Tensor:
        value = _harmonic_sum(x, axes)
        return value * tf.cast(tf.size(x) / tf.size(value), x.dtype)

    return precision.in_float32(compute, x)


@custom_gradient_in(1)
def _harmonic_sum(
    x: tf.Tensor, axes: Sequence[int] | None
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
    value = 1 / tf.reduce_sum(1 / x, axes, keepdims=True)

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        is_zero = tf.equal(x, 0)
        one = tf.ones_like(x)
        count = tf.reduce_sum(tf.cast(is_zero, x.dtype), axes, keepdims=True)
        # Several zeros have equal parts of the slope along all of them.
        fraction = tf.where(
            is_zero, 1 / tf.maximum(count, 1), value / tf.where(is_zero, one, x)
        )
        return times_upstream(upstream * one, tf.square(fraction))

    return value, vjp


def parallel(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Computes `1 / (1 / x + 1 / y)`, with its slopes at 0."""
    both = tf.stack([x + tf.zeros_like(y), y + tf.zeros_like(x)])
    return tf.squeeze(harmonic_sum(both, [0]), 0)


def saturation(k: tf.Tensor, x: tf.Tensor, offset: float) -> tf.Tensor:
    """Computes `1 / (offset + k / x)`, with its slopes at 0."""
    return precision.in_float32(lambda k, x: _saturation(k, x, offset), k, x)


def _saturation(k: tf.Tensor, x: tf.Tensor, offset: float) -> tf.Tensor:
    is_near = tf.abs(offset * x) < tf.abs(k)
    x, k = x + tf.zeros_like(k), k + tf.zeros_like(x)
    zero, one = tf.zeros_like(x), tf.ones_like(x)
    inside = tf.where(is_near, x, zero)
    near = inside / (offset * inside + tf.where(is_near, k, one))
    quotient = divide(tf.where(is_near, zero, k), tf.where(is_near, one, x))
    return tf.where(is_near, near, 1 / (offset + quotient))
