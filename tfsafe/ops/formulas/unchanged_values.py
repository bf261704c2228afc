"""TensorFlow's own values, with gradients that keep the promises of this package.

For formulas whose values are to stay as they are, the infinite ones included, while a
zero incoming gradient gives a zero gradient and singular slopes are bounded.
"""

import math
from collections.abc import Callable

import tensorflow as tf

from tfsafe._gradients import custom_gradient, known, unbroadcast
from tfsafe.ops.kernels import exponential, logarithm, power, precision, zeros
from tfsafe.ops.kernels.zeros import (
    product_vjp,
    quotient_for_gradient,
    quotient_vjp,
    times_upstream,
    times_where_nonzero,
    with_slope,
)

_Function = Callable[[tf.Tensor], tf.Tensor]
_Gradients = Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]
_Slope = tuple[None, tf.Tensor]


def elementwise(function: _Function) -> _Function:
    """Returns a function of one tensor with zero gradients for zero upstream.

    Its gradients of all orders are those of TensorFlow, but 0 where the incoming
    gradient is 0, even at a NaN or where the slope is infinite.
    """

    @custom_gradient
    def of_local(x: tf.Tensor) -> tuple[tf.Tensor, _Function]:
        def vjp(upstream: tf.Tensor) -> tf.Tensor:
            return times_upstream(upstream, elementwise(_slope(function))(x))

        return function(x), vjp

    return of_local


def _slope(function: _Function) -> _Function:
    def slope(x: tf.Tensor) -> tf.Tensor:
        # A copy: in the gradient of a loop, `x` belongs to the graph of the loop, and
        # no tape records that it is captured.
        x = tf.identity(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return tape.gradient(y, x, unconnected_gradients="zero")

    return slope


@custom_gradient
def multiply(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
    """Computes `x * y`, where 0 times infinity is NaN."""
    return x * y, product_vjp(x, y)


@custom_gradient
def squared_difference(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
    """Computes `(x - y) ** 2`."""

    def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        slope = times_where_nonzero(upstream, 2 * (x - y))
        return unbroadcast(slope, x), -unbroadcast(slope, y)

    return tf.math.squared_difference(x, y), vjp


@precision.runs_in_float32
@custom_gradient
def divide(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
    """Computes `x / y`, infinite or NaN at `y = 0`, with slopes 0 there."""
    return x / y, quotient_vjp(x, y, tf.math.divide_no_nan(x, y))


@precision.runs_in_float32
@custom_gradient
def over(number: tf.Tensor, x: tf.Tensor) -> tuple[tf.Tensor, Callable[..., _Slope]]:
    """Computes `number / x` like `divide`; the gradient does not form `1 / x ** 2`."""

    def vjp(upstream: tf.Tensor) -> _Slope:
        value = zeros.quotient_no_nan(number, x)
        slope = times_upstream(times_upstream(upstream, value), zeros.reciprocal(x))
        return None, unbroadcast(-slope, x)

    return number / x, vjp


def divide_no_nan(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Computes `x / y`, and 0 where `y` is 0, whatever `x` is."""
    return precision.in_float32(zeros.quotient_no_nan, x, y)


@precision.runs_in_float32
@custom_gradient
def reciprocal(x: tf.Tensor) -> tuple[tf.Tensor, _Function]:
    """Computes `1 / x`, infinite at 0, with slope 0 there."""

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        slope = zeros.reciprocal(x)
        return times_upstream(times_upstream(upstream, slope), -slope)

    return tf.math.reciprocal(x), vjp


@precision.runs_in_float32
@with_slope(lambda x: zeros.reciprocal(x))
def log(x: tf.Tensor) -> tf.Tensor:
    """Computes the logarithm, with slope 0 at 0 and TensorFlow's `1 / x` below."""
    return tf.math.log(x)


@precision.runs_in_float32
@with_slope(lambda x: zeros.reciprocal(1 + x))
def log1p(x: tf.Tensor) -> tf.Tensor:
    """Computes `log(1 + x)`, with slope 0 at -1 and `1 / (1 + x)` below."""
    return tf.math.log1p(x)


@precision.runs_in_float32
@with_slope(lambda x: -_odds(-x))
def log1mexp(x: tf.Tensor) -> tf.Tensor:
    """Computes `log(1 - exp(x))`, with slope 0 at 0 and TensorFlow's above."""
    return exponential.log1mexp_value(x)


@custom_gradient
def _odds(x: tf.Tensor) -> tuple[tf.Tensor, _Function]:
    """Returns `1 / (exp(x) - 1)`, also where that is negative."""
    value = zeros.reciprocal(tf.math.expm1(x))

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        again = known(value, _odds, x)
        return -times_where_nonzero(times_upstream(upstream, again), 1 + again)

    return value, vjp


@precision.runs_in_float32
@custom_gradient
def rsqrt(x: tf.Tensor) -> tuple[tf.Tensor, _Function]:
    """Computes `1 / sqrt(x)`, infinite at 0, with slope 0 there."""
    inverse = tf.math.rsqrt(x)

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        # The value of `power.rsqrt`, which is 0 where x is 0.
        at_zero = tf.where(tf.equal(x, 0), tf.zeros_like(inverse), inverse)
        return -0.5 * quotient_for_gradient(
            times_upstream(upstream, known(at_zero, power.rsqrt, x)), x
        )

    return inverse, vjp


@precision.runs_in_float32
def pow(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Computes `x ** y`, with bounded slopes at `x = 0`."""
    exponent = tf.get_static_value(y) if y.shape.rank == 0 else None
    if exponent is not None and math.isfinite(exponent) and exponent != 0:
        return power.constant_power(x, float(exponent))
    value = power.pow(x, y)
    # TensorFlow's power is 1 in two cases, even of NaN.
    is_one = (tf.equal(y, 0) | tf.equal(x, 1)) & tf.math.is_nan(value)
    return tf.where(is_one, tf.ones_like(value), value)


@custom_gradient
def held(x: tf.Tensor) -> tuple[tf.Tensor, _Function]:
    """Returns `x`, which no optimiser merges with the operations before and after.

    Grappler and XLA make `(1 + b) - p` of `(1 - p) + b`, which rounds `b` to a multiple
    of the gap above 1. They leave a selection alone.
    """
    return tf.where(tf.equal(x, 0), tf.zeros_like(x), x), tf.identity


@precision.runs_in_float32
def xlogy(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Computes `x log(y)`, and 0 where `x` is 0, whatever `y` is."""
    return _zero_at_zero(logarithm.xlogy, x, y, least=0.0)


@precision.runs_in_float32
def xlog1py(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Computes `x log(1 + y)`, and 0 where `x` is 0, whatever `y` is."""
    return _zero_at_zero(logarithm.xlog1py, x, y, least=-1.0)


@precision.runs_in_float32
def xdivy(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Computes `x / y`, and 0 where `x` is 0, whatever `y` is."""
    return _zero_at_zero(logarithm.xdivy, x, y, least=-math.inf)


def _zero_at_zero(
    function: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    x: tf.Tensor,
    y: tf.Tensor,
    least: float,
) -> tf.Tensor:
    # TensorFlow's value and slopes are 0 even where `y` is NaN or outside the domain.
    value = function(x, y)
    is_zero = tf.equal(x, 0) & ~(y >= least)
    return tf.where(is_zero, tf.zeros_like(value), value)


@custom_gradient
def masked(
    x: tf.Tensor, mask: tf.Tensor, is_unknown: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor, None]]]:
    """Computes `x * mask`, and 0 where `mask` is 0, NaN or not.

    Args:
      x: Floating tensor.
      mask: Zeros and ones, of the same dtype.
      is_unknown: Where the mask is a comparison with NaN, which says nothing: there a
        NaN in `x` comes out.

    Returns:
      Tensor of the broadcast shape.
    """
    comes_out = is_unknown & tf.math.is_nan(x)

    def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, None]:
        return (
            unbroadcast(times_where_nonzero(upstream, mask), x),
            unbroadcast(times_where_nonzero(upstream, x), mask),
            None,
        )

    # Not the product: XLA makes a selection of it, which passes over a NaN.
    value = tf.math.multiply_no_nan(x, mask)
    return tf.where(comes_out, x, value), vjp


def smooth_tie(x: tf.Tensor, y: tf.Tensor | None = None) -> tf.Tensor:
    """Returns zeros with the slopes that a maximum lacks at a tie.

    With it `max(x, y) + log1p(exp(-|x - y|))`, whose maximum has the slopes 1 and 0
    where x is y, has those of `log(exp(x) + exp(y))` there.

    Args:
      x: Floating tensor.
      y: Tensor of its dtype; None for `relu(x)`, whose slope at 0 is 0.

    Returns:
      Zeros of the broadcast shape.
    """
    first, second = (tf.zeros_like(x), x) if y is None else (x, y)
    is_tie = tf.equal(first, second)
    zero = tf.zeros([], x.dtype)
    gap = tf.where(is_tie, second, zero) - tf.where(is_tie, first, zero)
    log = tf.nn.softplus(gap)
    return tf.where(is_tie, log - tf.stop_gradient(log), zero)
