"""Layer normalisation that does not amplify a row without spread.

For the recurrent cells, whose loop calls it in every step: the caller checks
its arguments and converts half precision.
"""

from collections.abc import Callable

import tensorflow as tf

from tfsafe._gradients import custom_gradient_in
from tfsafe._limits import LIMITS


def layer_norm(
    x: tf.Tensor, gain: tf.Tensor, shift: tf.Tensor, epsilon: float
) -> tf.Tensor:
    """Computes `gain * (x - mean) / sqrt(variance + epsilon) + shift` along a row.

    Args:
      x: Tensor of float32 or float64; a row is its last axis, of known size.
      gain: Tensor of the same dtype that broadcasts to `x`.
      shift: The same for the shift.
      epsilon: Added to the variance, which is the mean of the squares.

    Returns:
      `Tensor` with the shape and dtype of `x`.

    Numerics:
      error      <= 8 ulp of the largest result in the row; more where the mean exceeds
                 the deviation, in proportion
      all equal  value shift, gradient 0 in x: a choice. The slope of the formula, up to
                 1 / sqrt(epsilon), compounds over the steps of a recurrent cell. A
                 deviation below `size * eps / 4` of the mean, which may be nothing but
                 the rounding of the mean, counts as none
      overflow   value NaN in the row where the variance overflows
      inf, NaN   value NaN in the whole row

    References:
      Ba, Kiros and Hinton, "Layer Normalization", arXiv:1607.06450, 2016.
    """
    return standardize(x, epsilon) * gain + shift


@custom_gradient_in(1)
def standardize(
    x: tf.Tensor, epsilon: float
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
    """Computes `(x - mean) / sqrt(variance + epsilon)` along a row."""
    value, inverse = with_inverse(x, epsilon)
    return value, lambda upstream: slope(value, inverse, upstream)


def with_inverse(x: tf.Tensor, epsilon: float) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the standardised rows, and `1 / sqrt(variance + epsilon)` of each."""
    # The plain formula, unlike `standardization`, which also scales and shifts the
    # row and looks for zeros upstream: a loop over small tensors pays for each op.
    mean = tf.reduce_mean(x, -1, keepdims=True)
    centred = x - mean
    variance = tf.reduce_mean(tf.square(centred), -1, keepdims=True)
    total = variance + epsilon
    # Not `rsqrt`: where the variance overflows, inf / inf is NaN and not 0.
    inverse = tf.sqrt(total) / total
    rounding = x.shape[-1] * LIMITS[x.dtype.name].eps / 4
    is_flat = variance <= tf.square(rounding * mean)
    inverse = tf.where(is_flat, tf.zeros([], x.dtype), inverse)
    return centred * inverse, inverse


def slope(value: tf.Tensor, inverse: tf.Tensor, upstream: tf.Tensor) -> tf.Tensor:
    """Returns the gradient of rows that `with_inverse` standardised."""
    mean = tf.reduce_mean(upstream, -1, keepdims=True)
    along = tf.reduce_mean(upstream * value, -1, keepdims=True)
    return inverse * (upstream - mean - value * along)
