"""Layer normalisation that does not amplify a row without spread.

For the recurrent cells, whose loop calls it in every step: the caller checks
its arguments and converts half precision.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfsafe._gradients import custom_gradient_in, unbroadcast
from tfsafe._limits import LIMITS


@custom_gradient_in(3)
def layer_norm(
    x: tf.Tensor, gain: tf.Tensor, shift: tf.Tensor, epsilon: float
) -> tuple[tf.Tensor, Callable[[tf.Tensor], list[tf.Tensor]]]:
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
      A row without incoming gradient gives a zero gradient, whatever it holds.

    References:
      Ba, Kiros and Hinton, "Layer Normalization", arXiv:1607.06450, 2016.
    """
    value, inverse = standardize(x, epsilon)

    def vjp(upstream: tf.Tensor) -> list[tf.Tensor]:
        d_x, *others = pull_back((value, inverse), gain, upstream)
        return [d_x, *map(unbroadcast, others, (gain, shift))]

    return value * gain + shift, vjp


def standardize(
    x: tf.Tensor, epsilon: float, *, is_centred: bool = False
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the standardised rows, and `1 / sqrt(variance + epsilon)` of each.

    Args:
      x: Tensor of float32 or float64; a row is its last axis, of known size.
      epsilon: Added to the variance.
      is_centred: Whether the rows are products with `centred_columns`: their means
        are 0 and need no computation.
    """
    # The plain formula, unlike `standardization`, which also scales and shifts the
    # row and looks for zeros upstream: a loop over small tensors pays for each op.
    least: Any = 0
    if not is_centred:
        mean = tf.reduce_mean(x, -1, keepdims=True)
        x -= mean
        least = tf.square((x.shape[-1] * LIMITS[x.dtype.name].eps / 4) * mean)
    variance = tf.reduce_mean(tf.square(x), -1, keepdims=True)
    total = variance + epsilon
    # Not `rsqrt`: where the variance overflows, inf / inf is NaN and not 0.
    inverse = tf.sqrt(total) / total
    # Of one shape: TensorFlow selects slowly from operands that broadcast.
    inverse = tf.where(variance <= least, tf.zeros_like(inverse), inverse)
    return x * inverse, inverse


def pull_back(
    normalized: Sequence[tf.Tensor],
    gain: tf.Tensor,
    upstream: tf.Tensor,
    *,
    is_centred: bool = False,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns the gradients of `value * gain + shift` in the row, gain and shift.

    Args:
      normalized: Results of `standardize`.
      gain: The gain.
      upstream: The incoming gradient.
      is_centred: As in `standardize`. The gradient in the row then lacks the part that
        subtracts its mean, which the gradient of `centred_columns` subtracts.
    """
    value, inverse = normalized
    in_gain = tf.math.multiply_no_nan(value, upstream)
    along = tf.reduce_mean(in_gain * gain, -1, keepdims=True)
    slope = upstream * gain
    if not is_centred:
        slope -= tf.reduce_mean(slope, -1, keepdims=True)
    slope -= tf.math.multiply_no_nan(value, along)
    return tf.math.multiply_no_nan(inverse, slope), in_gain, upstream


def centred_columns(kernel: tf.Tensor, count: int, size: int) -> tf.Tensor:
    """Returns a kernel whose products have mean 0 in their first `count` pieces.

    Subtracting the mean is linear: done in the kernel, once, it spares the loop over
    the products. Pieces of equal columns become exactly 0.

    Args:
      kernel: Tensor of shape `(features, columns)`.
      count: How many pieces of the columns.
      size: Columns of each piece.
    """
    pieces = tf.reshape(kernel[:, : count * size], [-1, count, size])
    pieces -= pieces[..., :1]
    pieces -= tf.reduce_mean(pieces, -1, keepdims=True)
    rest = kernel[:, count * size :]
    return tf.concat([tf.reshape(pieces, [-1, count * size]), rest], 1)
