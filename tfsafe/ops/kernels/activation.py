"""Activations whose slopes keep the digits of the tails."""

import math
from collections.abc import Callable

import tensorflow as tf

from tfsafe._gradients import custom_gradient, custom_gradient_in, known, local
from tfsafe._limits import LIMITS
from tfsafe.ops.kernels.lengths import cosine_of, hypot
from tfsafe.ops.kernels.zeros import (
    quotient,
    quotient_for_gradient,
    times_upstream,
    times_where_nonzero,
    with_slope,
    zero_unless,
)

_Gradient = Callable[[tf.Tensor], tf.Tensor]


@with_slope(lambda x: _tanh_slope(x))
def tanh(x: tf.Tensor) -> tf.Tensor:
    """Computes the hyperbolic tangent elementwise, with the slope of its tails."""
    return tf.tanh(x)


@custom_gradient
def _tanh_slope(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    # Not 1 - tanh(x)^2. With p = sigmoid(-2 * |x|), the slope is 4 * p * (1 - p).
    rest = tf.sigmoid(-2 * tf.abs(x))
    slope = tf.raw_ops.SigmoidGrad(
        y=rest, dy=tf.fill(tf.shape(x), tf.constant(4, x.dtype))
    )

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        return times_upstream(
            times_upstream(upstream, known(slope, _tanh_slope, x)), -2 * tanh(x)
        )

    return slope, vjp


@with_slope(lambda x: _sigmoid_slope(x))
def sigmoid(x: tf.Tensor) -> tf.Tensor:
    """Computes `1 / (1 + exp(-x))` elementwise, with the slope of its tails."""
    return tf.sigmoid(x)


@custom_gradient
def _sigmoid_slope(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    # Not y * (1 - y), which is 0 as soon as y rounds to 1.
    slope = tf.raw_ops.SoftplusGrad(gradients=tf.sigmoid(x), features=-x)

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        return times_upstream(
            times_upstream(upstream, known(slope, _sigmoid_slope, x)), -tanh(x / 2)
        )

    return slope, vjp


@custom_gradient_in(1)
def elu(x: tf.Tensor, alpha: float, scale: float = 1.0) -> tuple[tf.Tensor, _Gradient]:
    """Computes `scale` times `x` above 0 and `alpha * (exp(x) - 1)` elsewhere."""

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        return times_upstream(upstream, _elu_slope(x, alpha, scale))

    # In this order forward mode has the slope from the right at 0, and the maximum is
    # NaN for NaN in every version of XLA.
    bounded = tf.minimum(tf.zeros([], x.dtype), x)
    # This is `expm1(bounded)`, for less; and the slope needs the exponential.
    below = tf.tanh(0.5 * bounded) * (1 + tf.exp(bounded))
    if alpha == scale == 1:
        return tf.maximum(x, below), vjp
    # One of the terms is 0.
    return scale * tf.maximum(x, 0) + (scale * alpha) * below, vjp


@custom_gradient_in(1)
def _elu_slope(x: tf.Tensor, alpha: float, scale: float) -> tuple[tf.Tensor, _Gradient]:
    slope = tf.exp(tf.minimum(x, 0))
    if alpha != 1:
        # The exponential of 0 is 1, and the difference is exact.
        above = tf.cast(x >= 0, x.dtype)
        slope = alpha * (slope - above) + above
    if scale != 1:
        slope *= scale

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        again = _elu_slope(x, alpha, scale)
        return times_upstream(upstream, zero_unless(~(x >= 0), again))

    return slope, vjp


@custom_gradient
def mish(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    """Computes `x * tanh(log(1 + exp(x)))` elementwise."""

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        slope = _gate(x) + times_upstream(_gate_slope(x), x)
        return times_upstream(upstream, slope)

    # 0, not NaN, at -inf.
    return tf.math.multiply_no_nan(x, _gate(x)), vjp


@with_slope(lambda x: _gate_slope(x))
def _gate(x: tf.Tensor) -> tf.Tensor:
    """Computes `tanh(log(1 + exp(x)))`."""
    # At the bound the gate has long been 1.
    power = tf.exp(tf.minimum(x, 0.5 * math.log(LIMITS[x.dtype.name].max) - 1))
    above = power * (power + 2)
    return above / (above + 2)


@custom_gradient
def _gate_slope(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    """Computes the derivative of `_gate`, `(1 - gate^2) * sigmoid(x)`."""

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        slope = sigmoid(-x) - 2 * times_where_nonzero(_gate(x), sigmoid(x))
        return times_upstream(times_upstream(upstream, _gate_slope(x)), slope)

    # Of `exp(-|x|)`: the gate rounds to 1 long before its slope rounds to 0.
    decay = tf.exp(-tf.abs(x))
    factor = tf.where(x < 0, tf.ones([], x.dtype), decay)
    below = tf.square(1 + decay) + tf.square(factor)
    return 4 * (decay * factor) * ((1 + decay) / tf.square(below)), vjp


def squareplus(x: tf.Tensor, b: float) -> tf.Tensor:
    """Computes `(x + sqrt(x^2 + b)) / 2` elementwise."""
    root = tf.constant(b**0.5, x.dtype)

    @custom_gradient
    def function(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
        def vjp(upstream: tf.Tensor) -> tf.Tensor:
            side = local(root)

            def slope_of(x: tf.Tensor) -> tf.Tensor:
                return quotient_for_gradient(_squareplus_value(x, side), hypot(x, side))

            # The textbook form of the slope loses the digits of its tail, and has the
            # derivative that keeps them.
            def textbook(x: tf.Tensor) -> tf.Tensor:
                half = 0.5 + 0.5 * cosine_of(x, side)
                if not b:
                    half = tf.where(tf.equal(x, 0), tf.zeros_like(x), half)
                return half + tf.stop_gradient(slope_of(x) - half)

            return times_upstream(upstream, known(slope_of(x), textbook, x))

        return _squareplus_value(x, root), vjp

    return function(x)


def _squareplus_value(x: tf.Tensor, root: tf.Tensor) -> tf.Tensor:
    # Halves first, because the sum may be above the largest number.
    above = 0.5 * tf.abs(x) + 0.5 * hypot(x, root)
    below = quotient(root, above) * (0.25 * root)
    return tf.where(x < 0, below, above)
