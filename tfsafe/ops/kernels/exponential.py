"""Exponentials that neither overflow nor cancel."""

import math
from collections.abc import Callable

import tensorflow as tf

from tfsafe._gradients import custom_gradient
from tfsafe.ops.kernels.activation import tanh
from tfsafe.ops.kernels.zeros import (
    reciprocal_positive,
    times_upstream,
    times_where_nonzero,
    with_slope,
)

_Gradient = Callable[[tf.Tensor], tf.Tensor]

# Beyond it the hyperbolic cosine is an exponential, to the last digit of float64.
_LARGE = 20.0
_LOG_2 = math.log(2)


@with_slope(lambda x: exp(x))
def expm1(x: tf.Tensor) -> tf.Tensor:
    """Computes `exp(x) - 1` elementwise, with the digits that a small `x` needs."""
    return tf.math.expm1(x)


@with_slope(lambda x: exp(x))
def exp(x: tf.Tensor) -> tf.Tensor:
    """Returns the exponential; zero upstream gives 0 also where it overflows."""
    return tf.exp(x)


@with_slope(lambda x: tanh(x))
def log_cosh(x: tf.Tensor) -> tf.Tensor:
    """Computes `log(cosh(x))` elementwise."""
    size = tf.abs(x)
    bounded = tf.minimum(size, _LARGE)
    # With m = exp(|x|) - 1 the cosine is 1 + m^2 / (2 + 2 m): no term cancels.
    m = tf.math.expm1(bounded)
    return tf.math.log1p(0.5 * m * (m / (1 + m))) + (size - bounded)


@custom_gradient
def log1mexp(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    """Computes `log(1 - exp(x))` elementwise for `x <= 0`."""

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        return -times_upstream(upstream, odds(-x))

    return log1mexp_value(x), vjp


def log1mexp_value(x: tf.Tensor) -> tf.Tensor:
    """Returns `log(1 - exp(x))`, without a gradient of ours."""
    # Switch at -log 2 (Maechler). The bound keeps numeric checks from an infinity.
    far = tf.math.log1p(-tf.exp(tf.minimum(x, -0.5 * _LOG_2)))
    near = tf.math.log(-tf.math.expm1(x))
    return tf.where(x < -_LOG_2, far, near)


@custom_gradient
def odds(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    """Returns the odds `1 / (exp(x) - 1)` of a probability `exp(-x)`; 0 where x = 0."""

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        return -times_where_nonzero(times_upstream(upstream, odds(x)), certainty(x))

    return reciprocal_positive(tf.math.expm1(x)), vjp


@custom_gradient
def certainty(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    """Returns `1 / (1 - exp(-x))`, which is 1 more than the odds; 0 where x = 0."""

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        return -times_where_nonzero(times_upstream(upstream, odds(x)), certainty(x))

    return reciprocal_positive(-tf.math.expm1(-x)), vjp


@with_slope(lambda x: certainty(x))
def log_expm1(x: tf.Tensor) -> tf.Tensor:
    """Computes `log(exp(x) - 1)` elementwise for `x >= 0`, the inverse of softplus."""
    return x + log1mexp_value(-x)
