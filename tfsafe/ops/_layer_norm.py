"""Layer normalisation that does not amplify a row without spread.

For the recurrent cells, whose loop calls it once per step: checks stand with the
caller, and half precision is the caller's to convert.
"""

from collections.abc import Callable

import tensorflow as tf


def layer_norm(
    x: tf.Tensor, gain: tf.Tensor, shift: tf.Tensor, epsilon: float
) -> tf.Tensor:
    """Computes `gain * (x - mean) / sqrt(variance + epsilon) + shift` along a row.

    Args:
      x: Tensor of float32 or float64; a row is its last axis.
      gain: Tensor of the same dtype that broadcasts to `x`.
      shift: Likewise.
      epsilon: Added to the variance, which is the mean of the squares.

    Returns:
      `Tensor` with the shape and dtype of `x`.

    Numerics:
      error      <= 8 ulp of the row's largest magnitude over its deviation, where the
                 row has at most 64 elements
      all equal  value shift, gradient 0 in x. A choice: the slope of the formula,
                 up to 1 / sqrt(epsilon), compounds over the steps of a recurrent cell
      inf        value NaN in the whole row
      NaN        value NaN in the whole row
      The squares cannot overflow.

    References:
      Ba, Kiros and Hinton, "Layer Normalization", arXiv:1607.06450, 2016.
    """
    return standardize(x, epsilon) * gain + shift


def standardize(x: tf.Tensor, epsilon: float) -> tf.Tensor:
    """Computes `(x - mean) / sqrt(variance + epsilon)` along a row, see `layer_norm`."""

    @tf.custom_gradient
    def function(x: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
        spread = tf.reduce_max(x, -1, keepdims=True) - tf.reduce_min(
            x, -1, keepdims=True
        )
        # At least 1, as only overflow is to be avoided.
        shrink = 1 / tf.maximum(spread, 1)
        centred = (x - tf.reduce_mean(x, -1, keepdims=True)) * shrink
        variance = tf.reduce_mean(tf.square(centred), -1, keepdims=True)
        # The variance of equal elements may round to something above 0: theirs is
        # told by the spread.
        inverse = tf.where(
            tf.equal(spread, 0),
            tf.zeros([], x.dtype),
            tf.math.rsqrt(variance + epsilon * tf.square(shrink)),
        )
        value = centred * inverse

        def vjp(upstream: tf.Tensor) -> tf.Tensor:
            mean = tf.reduce_mean(upstream, -1, keepdims=True)
            along = tf.reduce_mean(upstream * value, -1, keepdims=True)
            return inverse * shrink * (upstream - mean - value * along)

        return value, vjp

    return function(x)
