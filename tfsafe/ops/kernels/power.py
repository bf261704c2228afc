"""Powers and roots, with gradients of every order at 0."""

from collections.abc import Callable

import tensorflow as tf

from tfsafe._gradients import (
    custom_gradient,
    custom_gradient_in,
    known,
    local,
    nan_where,
    unbroadcast,
)
from tfsafe.ops.kernels.logarithm import log
from tfsafe.ops.kernels.zeros import (
    one_where_zero,
    quotient_no_nan,
    times_upstream,
    times_where_nonzero,
    zero_unless,
)

_Gradient = Callable[[tf.Tensor], tf.Tensor]
_Gradients = Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]


@custom_gradient_in(1)
def constant_power(
    x: tf.Tensor, exponent: float, above: tf.Tensor | None = None
) -> tuple[tf.Tensor, _Gradient]:
    # `above` is `x ** (exponent + 1)`, and given if the result is for a slope, whose
    # pole at 0 is replaced by 0.
    """Computes `x ** exponent` for a Python number."""
    value = _power_value(x, exponent, above)

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        if not exponent:
            return times_upstream(upstream, nan_where(tf.math.is_nan(x), x.dtype))
        return times_upstream(
            upstream, exponent * constant_power(x, exponent - 1, value)
        )

    return value, vjp


def _power_value(x: tf.Tensor, exponent: float, above: tf.Tensor | None) -> tf.Tensor:
    if not exponent:
        # TensorFlow's power is 1 here, even of NaN.
        return 1 + nan_where(tf.math.is_nan(x), x.dtype)
    if above is None or exponent > 0:
        return tf.pow(x, tf.constant(exponent, x.dtype))
    # Below this, `exponent` is rounded; and the quotient leaves the range only where
    # the power does.
    if exponent + 1 < 0.5:
        return zero_unless(~tf.math.is_inf(x), tf.math.divide_no_nan(above, x))
    # The power of 1 is 1.
    pole = one_where_zero(x)
    return tf.pow(x + pole, tf.constant(exponent, x.dtype)) - pole


@custom_gradient_in(2)
def pow(
    x: tf.Tensor, y: tf.Tensor, lowered: int = 0, above: tf.Tensor | None = None
) -> tuple[tf.Tensor, _Gradients]:
    """Computes `x ** (y - lowered)`, with `above` as in `constant_power`."""
    is_nan = tf.math.is_nan(x) | tf.math.is_nan(y)
    exponent = y - lowered
    # TensorFlow's power is 1 in two cases, even of NaN.
    value = _pow_value(x, exponent, above) + nan_where(is_nan, x.dtype)

    def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        higher = local(above)
        again = known(value, lambda x, y: pow(x, y, lowered, higher), x, y)
        # `log(1)` where x is not positive; a value of NaN has the slope NaN.
        logarithm = log(tf.where(x <= 0, tf.ones_like(x), x))
        lower = pow(x, y, lowered + 1, local(value))
        in_x = times_where_nonzero(y - lowered, lower)
        in_x += nan_where(is_nan, x.dtype)
        in_y = times_where_nonzero(again, logarithm)
        in_y += nan_where(tf.math.is_nan(value), x.dtype)
        return (
            unbroadcast(times_upstream(upstream, in_x), x),
            unbroadcast(times_upstream(upstream, in_y), y),
        )

    return value, vjp


def _pow_value(x: tf.Tensor, exponent: tf.Tensor, above: tf.Tensor | None) -> tf.Tensor:
    if above is None:
        return tf.pow(x, exponent)
    is_pole = tf.equal(x, 0) & (exponent < 0)
    base = tf.where(is_pole, tf.ones_like(x), x)
    is_rounded = (exponent < -0.5) & tf.math.is_finite(base)
    value = tf.where(
        is_rounded,
        above / tf.where(tf.equal(base, 0), tf.ones_like(base), base),
        tf.pow(base, exponent),
    )
    return tf.where(is_pole, tf.zeros_like(value), value)


@custom_gradient
def sqrt(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    """Computes the square root elementwise, with slope 0 at 0."""
    root = tf.sqrt(x)

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        half = tf.constant(0.5, x.dtype)
        return times_upstream(upstream, quotient_no_nan(half, known(root, sqrt, x)))

    return root, vjp


@custom_gradient_in(1)
def rsqrt(x: tf.Tensor, at_zero: float = 0.0) -> tuple[tf.Tensor, _Gradient]:
    """Computes `1 / sqrt(x)` elementwise, and `at_zero` where `x` is 0."""
    inverse = tf.math.reciprocal_no_nan(tf.sqrt(x))

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        # The cube of the value is never formed. The value is 0 where x is.
        return times_upstream(
            upstream, quotient_no_nan(-0.5 * known(inverse, rsqrt, x), x)
        )

    if not at_zero:
        return inverse, vjp
    singular = tf.constant(at_zero, x.dtype)
    return tf.where(tf.equal(x, 0), singular, inverse), vjp
