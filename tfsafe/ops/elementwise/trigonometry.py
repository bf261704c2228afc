"""Sinc, inverse functions with a bounded domain, and the angle between vectors."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe._gradients import custom_gradient, custom_gradient_in, nan_where
from tfsafe._limits import LIMITS
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.lengths import atan2, direction, euclidean
from tfsafe.ops.kernels.power import rsqrt
from tfsafe.ops.kernels.zeros import reciprocal, times_upstream, with_slope

_Gradient = Callable[[tf.Tensor], tf.Tensor]


def angle_between(
    a: Any, b: Any, axis: int = -1, *, name: str = "angle_between"
) -> tf.Tensor:
    """Computes the angle between two vectors, with gradient 0 where there is none.

    `acos` of the cosine similarity is NaN where the cosine of equal vectors rounds to a
    number above 1, has an infinite slope where it is 1, and is 0 or 3e-4 for every
    smaller angle in float32. This formula keeps all digits.

    Args:
      a: Floating `Tensor` of vectors along `axis`.
      b: Floating `Tensor` of the dtype of `a`, of a shape that broadcasts with it.
      axis: The axis of the vectors' elements.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the dtype of `a` and the broadcast shape without `axis`, from 0 to
      pi.

    Raises:
      TypeError: If `a` or `b` is not floating, if their dtypes differ, or if `axis` is
        not an integer.
      ValueError: If the shapes do not broadcast, or if `axis` is out of range.

    Numerics:
      error   value <= 4 ulp of the larger of itself and machine epsilon
      a = b   value 0, gradients 0 (the subgradient of least norm)
      a = -b  value pi, gradients 0 (a choice: the slope has no direction)
      a = 0   value pi/2, as their cosine is 0, or 0 if b is 0; gradients 0 (choices)
      NaN     value NaN, gradients NaN
      A zero incoming gradient gives zero gradients, whatever the row holds.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> a, b = tf.constant([1.0, 0.0]), tf.constant([1.0, 1e-6])
      >>> print(tfsafe.ops.angle_between(a, b).numpy())
      1e-06

    References:
      Kahan, "How Futile are Mindless Assessments of Roundoff in Floating-Point
      Computation?", 2006, section 12.
    """
    with tf.name_scope(name):
        a, b = _args.float_tensors(a=a, b=b)
        _args.check_broadcast(a=a, b=b)
        along = _args.axes(axis, tf.broadcast_static_shape(a.shape, b.shape))
        value = precision.in_float32(lambda a, b: _angle_between(a, b, along), a, b)
        return precision.drop(value, along)


def asin(x: Any, *, name: str = "asin") -> tf.Tensor:
    """Computes the inverse sine elementwise, with slope 0 at -1 and 1.

    Args:
      x: Floating `Tensor` of any shape, from -1 to 1.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `x`, from -pi/2 to pi/2.

    Raises:
      TypeError: If `x` does not have a floating dtype.

    Numerics:
      error    value <= 3 ulp, slope <= 4 ulp
      x = 1    value pi/2, slope 0 (a bounded choice: the true slope is infinite)
      x = -1   value -pi/2, slope 0 (the same choice)
      x > 1    value NaN, slope NaN
      x = NaN  value NaN, slope NaN
      A zero incoming gradient gives a zero gradient, at every x.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> print(tfsafe.ops.asin(tf.constant([0.0, 1.0])).numpy())
      [0.        1.5707964]
    """
    with tf.name_scope(name):
        return precision.in_float32(_asin, _args.float_tensor(x, "x"))


def acos(x: Any, *, name: str = "acos") -> tf.Tensor:
    """Computes the inverse cosine elementwise, with slope 0 at -1 and 1.

    For the angle between two vectors use `angle_between`: their cosine may round to a
    number above 1, and the inverse cosine loses the digits of small angles.

    Args:
      x: Floating `Tensor` of any shape, from -1 to 1.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `x`, from 0 to pi.

    Raises:
      TypeError: If `x` does not have a floating dtype.

    Numerics:
      error    value <= 3 ulp, slope <= 4 ulp
      x = 1    value 0, slope 0 (a bounded choice: the true slope is infinite)
      x = -1   value pi, slope 0 (the same choice)
      x > 1    value NaN, slope NaN
      x = NaN  value NaN, slope NaN
      A zero incoming gradient gives a zero gradient, at every x.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> print(tfsafe.ops.acos(tf.constant([0.0, 1.0])).numpy())
      [1.5707964 0.       ]
    """
    with tf.name_scope(name):
        return precision.in_float32(_acos, _args.float_tensor(x, "x"))


def acosh(x: Any, *, name: str = "acosh") -> tf.Tensor:
    """Computes the inverse hyperbolic cosine elementwise, with slope 0 at 1.

    Use it for the distance of hyperbolic embeddings, which is `acosh(1 + ...)` and 0
    for equal points.

    Args:
      x: Floating `Tensor` of any shape, at least 1.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `x`.

    Raises:
      TypeError: If `x` does not have a floating dtype.

    Numerics:
      error    value <= 4 ulp, slope <= 4 ulp
      x = 1    value 0, slope 0 (a bounded choice: the true slope is infinite)
      x = inf  value inf, slope 0
      x < 1    value NaN, slope NaN
      x = NaN  value NaN, slope NaN
      A zero incoming gradient gives a zero gradient, at every x.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> print(tfsafe.ops.acosh(tf.constant([1.0, 2.0])).numpy())
      [0.        1.316958]
    """
    with tf.name_scope(name):
        return precision.in_float32(_acosh, _args.float_tensor(x, "x"))


def atanh(x: Any, *, name: str = "atanh") -> tf.Tensor:
    """Computes the inverse hyperbolic tangent elementwise, with slope 0 at -1 and 1.

    Args:
      x: Floating `Tensor` of any shape, from -1 to 1.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `x`.

    Raises:
      TypeError: If `x` does not have a floating dtype.

    Numerics:
      error    value <= 4 ulp, slope <= 3 ulp
      x = 1    value inf, slope 0 (a bounded choice: the true slope is infinite)
      x = -1   value -inf, slope 0 (the same choice)
      x > 1    value NaN, slope NaN
      x = NaN  value NaN, slope NaN
      A zero incoming gradient gives a zero gradient, at every x.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> print(tfsafe.ops.atanh(tf.constant([0.0, 0.5])).numpy())
      [0.        0.5493061]
    """
    with tf.name_scope(name):
        return precision.in_float32(_atanh, _args.float_tensor(x, "x"))


@with_slope(lambda x: rsqrt(_complement(x)))
def _asin(x: tf.Tensor) -> tf.Tensor:

    return tf.asin(x)


@custom_gradient
def _acos(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        return times_upstream(-upstream, rsqrt(_complement(x)))

    return tf.acos(x), vjp


@with_slope(lambda x: -2 * x)
def _complement(x: tf.Tensor) -> tf.Tensor:
    """Computes `1 - x^2` without rounding the square."""
    return (1 - x) * (1 + x)


@custom_gradient
def _acosh(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        # Two roots: the root of the product would overflow.
        return times_upstream(times_upstream(upstream, rsqrt(x - 1)), rsqrt(x + 1))

    # Some versions of XLA lose half of the digits of `tf.acosh` near 1, and overflow.
    return 2 * tf.asinh(tf.sqrt(0.5 * (x - 1))), vjp


@custom_gradient
def _atanh(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        # The formula is finite outside the domain, the slope is not.
        outside = nan_where(tf.abs(x) > 1, x.dtype)
        return times_upstream(upstream, reciprocal(_complement(x)) + outside)

    return tf.atanh(x), vjp


def _angle_between(a: tf.Tensor, b: tf.Tensor, axis: Sequence[int] | None) -> tf.Tensor:
    a, b = direction(a, axis), direction(b, axis)
    return 2 * atan2(euclidean(a - b, axis), euclidean(a + b, axis))


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


@custom_gradient_in(1)
def _bessel(x: tf.Tensor, order: int) -> tuple[tf.Tensor, _Gradient]:
    """Computes the spherical Bessel function of this order at `pi * x`."""

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        slope = -(order + 1) * _bessel(x, order + 1)
        if order:
            slope += order * _bessel(x, order - 1)
        return times_upstream(upstream, math.pi / (2 * order + 1) * slope)

    # The recursion below loses digits where `pi * x` is less than the order.
    bound = max(1, order)
    near = tf.abs(math.pi * x) < bound
    is_inf = tf.math.is_inf(x)
    close = tf.where(near, x, tf.zeros_like(x))
    far = tf.where(near | is_inf, tf.ones_like(x), x)
    value = tf.where(near, _series(close, order, bound), _recursion(far, order))
    return tf.where(is_inf, tf.zeros_like(x), value), vjp


def _series(x: tf.Tensor, order: int, bound: float) -> tf.Tensor:
    z = math.pi * x
    half_square = 0.5 * tf.square(z)
    # As many terms as count where `z` is `bound`.
    least = LIMITS[x.dtype.name].eps / 8
    coefficients = [1 / math.prod(range(1, 2 * order + 2, 2))]
    k, size = 0, 1.0
    while size > least:
        k += 1
        ratio = 1 / (k * (2 * order + 2 * k + 1))
        coefficients.append(-ratio * coefficients[-1])
        size *= ratio * bound**2 / 2
    total = tf.fill(tf.shape(z), tf.constant(coefficients.pop(), z.dtype))
    for coefficient in reversed(coefficients):
        total = coefficient + half_square * total
    for _ in range(order):
        total *= z
    return total


def _recursion(x: tf.Tensor, order: int) -> tf.Tensor:
    # The distance to the nearest integer is exact, `pi * x` is not: the sine of a large
    # number keeps its digits, and is 0 at the integers.
    whole = tf.round(x)
    rest = math.pi * (x - whole)
    half = 0.5 * whole
    # Not `tf.math.floormod`, which takes longer than the sine and the cosine.
    sign = 1 - 4 * (half - tf.floor(half))
    z = math.pi * x
    before, value = sign * tf.cos(rest) / z, sign * tf.sin(rest) / z
    for n in range(order):
        before, value = value, (2 * n + 1) / z * value - before
    return value
