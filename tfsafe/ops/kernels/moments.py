"""Products of deviations from means."""

from collections.abc import Sequence

import tensorflow as tf

from tfsafe.ops.kernels import precision


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
