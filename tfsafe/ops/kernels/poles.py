"""Slopes with a pole: 0 at the pole, and NaN where the function is not defined."""

from collections.abc import Callable

import tensorflow as tf

from tfsafe._gradients import chain, custom_gradient, product, unbroadcast

_Three = tuple[tf.Tensor, tf.Tensor, None]


@custom_gradient
def inverse(x: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
    """Returns `1 / x`, 0 where `x` is 0 and NaN where it is negative."""

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        slope = inverse(x)
        return -product(chain(upstream, slope), slope)

    # The sign of the root is 0, 1 or NaN, for less than a comparison and a selection.
    return tf.math.divide_no_nan(tf.sign(tf.sqrt(x)), x), vjp


def over(x: tf.Tensor, y: tf.Tensor, outside: tf.Tensor) -> tf.Tensor:
    """Returns `x / y` where `y` is positive, and `x / outside` elsewhere; 0 if `x` is.

    For a slope with a pole, with the value of the function as `outside`: at the pole
    it is infinite, which makes the slope 0, and beyond it NaN, which makes the slope
    NaN.

    Args:
      x: Numerator, mostly the incoming gradient. Where it is 0, so is the result.
      y: Denominator.
      outside: Denominator where `y` is not positive; not differentiated.

    Returns:
      Quotient, of the broadcast shape.
    """
    return _over(x, y, tf.stop_gradient(outside))


@custom_gradient
def _over(
    x: tf.Tensor, y: tf.Tensor, outside: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], _Three]]:
    denominator = tf.where(y > 0, y, outside)

    def vjp(upstream: tf.Tensor) -> _Three:
        no_slope = tf.equal(denominator, 0)
        upstream = tf.where(no_slope, tf.zeros_like(upstream), upstream)
        in_x = _over(upstream, y, outside)
        in_y = -product(in_x, _over(x, y, outside))
        return unbroadcast(in_x, x), unbroadcast(in_y, y), None

    return tf.math.xdivy(x, denominator), vjp
