"""The normalised sine cardinal, with derivatives of every order at 0.

`sinc(x)` is the spherical Bessel function `j_0(pi * x)`, and the derivatives of the
`j_n` are sums of their neighbours, without a division:

    (2n + 1) * j_n' = n * j_{n-1} - (n + 1) * j_{n+1}
"""

import math
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe._gradients import custom_gradient
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.zeros import times_upstream

_Gradient = Callable[[tf.Tensor], tf.Tensor]
# Terms of the series, enough for float64 where it is used.
_TERMS = 10


def sinc(x: Any, *, name: str = "sinc") -> tf.Tensor:
    """Computes `sin(pi * x) / (pi * x)` elementwise, and 1 at 0.

    The normalised function of signal processing, as in NumPy and Keras, whose zeros are
    the integers. For `sin(x) / x` write `sinc(x / math.pi)`. The quotient is NaN at 0;
    with a replacement its slope loses its digits near 0.

    Args:
      x: Floating `Tensor` of any shape.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `x`.

    Raises:
      TypeError: If `x` does not have a floating dtype.

    Numerics:
      error    <= 3 ulp; slope <= 4 ulp, beyond x = 1 of its amplitude 1 / x
      x = 0    value 1, slope 0, second derivative -pi^2 / 3
      x = 1    value 0, slope -1
      x = inf  value 0, slope 0
      x = NaN  value NaN, slope NaN
      A zero incoming gradient gives a zero gradient, at every x.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> print(tfsafe.ops.sinc(tf.constant([0.0, 0.5, 1.5])).numpy())
      [ 1.      0.6366 -0.2122]

    References:
      NIST Digital Library of Mathematical Functions, 10.49, 10.51.2 and 10.53.1.
    """
    with tf.name_scope(name):
        return precision.in_float32(lambda x: _bessel(x, 0), _args.float_tensor(x, "x"))


def _bessel(x: tf.Tensor, order: int) -> tf.Tensor:
    """Computes the spherical Bessel function of this order at `pi * x`."""

    @custom_gradient
    def function(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
        def vjp(upstream: tf.Tensor) -> tf.Tensor:
            slope = -(order + 1) * _bessel(x, order + 1)
            if order:
                slope += order * _bessel(x, order - 1)
            return times_upstream(upstream, math.pi / (2 * order + 1) * slope)

        # The recursion below loses digits where `pi * x` is less than the order.
        near = tf.abs(math.pi * x) < max(1, order)
        is_inf = tf.math.is_inf(x)
        close = tf.where(near, x, tf.zeros_like(x))
        far = tf.where(near | is_inf, tf.ones_like(x), x)
        value = tf.where(near, _series(close, order), _recursion(far, order))
        return tf.where(is_inf, tf.zeros_like(x), value), vjp

    return function(x)


def _series(x: tf.Tensor, order: int) -> tf.Tensor:
    z = math.pi * x
    half_square = 0.5 * tf.square(z)
    total = tf.ones_like(z)
    for k in range(_TERMS + 2 * order, 0, -1):
        total = 1 - half_square / (k * (2 * order + 2 * k + 1)) * total
    odd = math.prod(range(1, 2 * order + 2, 2))
    return z**order / odd * total


def _recursion(x: tf.Tensor, order: int) -> tf.Tensor:
    # The distance to the nearest integer is exact, `pi * x` is not: the sine of a large
    # number keeps its digits, and is 0 at the integers.
    whole = tf.round(x)
    rest = math.pi * (x - whole)
    sign = 1 - 2 * tf.math.floormod(tf.abs(whole), 2)
    z = math.pi * x
    before, value = sign * tf.cos(rest) / z, sign * tf.sin(rest) / z
    for n in range(order):
        before, value = value, (2 * n + 1) / z * value - before
    return value
