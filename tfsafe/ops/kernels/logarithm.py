"""Logarithms of `x`, `1 + x`, odds and the sigmoid, alone and times a weight."""

from collections.abc import Callable

import tensorflow as tf

from tfsafe._gradients import custom_gradient, known, unbroadcast
from tfsafe.ops.kernels.activation import sigmoid
from tfsafe.ops.kernels.zeros import (
    log1p_zero_at_minus_one,
    log_zero_at_zero,
    nan_of,
    quotient,
    quotient_positive,
    reciprocal,
    reciprocal_positive,
    times_upstream,
    times_where_nonzero,
    with_slope,
)

_Gradient = Callable[[tf.Tensor], tf.Tensor]


@with_slope(lambda x: reciprocal_positive(x))
def log(x: tf.Tensor) -> tf.Tensor:
    """Computes the natural logarithm elementwise, with slope 0 at 0."""
    return tf.math.log(x)


@with_slope(lambda x: reciprocal_positive(1 + x))
def log1p(x: tf.Tensor) -> tf.Tensor:
    """Computes `log(1 + x)` elementwise, with slope 0 at -1."""
    return tf.math.log1p(x)


@with_slope(lambda x: _logit_slope(x))
def logit(x: tf.Tensor) -> tf.Tensor:
    """Computes the log-odds `log(x / (1 - x))`, the inverse of the sigmoid."""
    # For the likelier outcome, the odds less 1 are (2x - 1) / (1 - x), and all of it
    # is exact but the quotient; for the other one the sign changes.
    complement = 1 - x
    lead = 2 * x - 1
    sign = tf.where(lead < 0, -tf.ones_like(x), tf.ones_like(x))
    return sign * tf.math.log1p(sign * lead / tf.minimum(x, complement))


@custom_gradient
def _logit_slope(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    slope = reciprocal_positive(x * (1 - x))

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        again = known(slope, _logit_slope, x)
        return times_where_nonzero(
            times_upstream(times_upstream(upstream, again), again), 2 * x - 1
        )

    return slope, vjp


@with_slope(lambda x: sigmoid(-x))
def log_sigmoid(x: tf.Tensor) -> tf.Tensor:
    """Computes `log(1 / (1 + exp(-x)))` elementwise."""
    return -tf.nn.softplus(-x)


_Pair = tuple[tf.Tensor, tf.Tensor]
_Gradients = Callable[[tf.Tensor], _Pair]


@custom_gradient
def xlogy(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
    """Computes `x * log(y)` elementwise, and 0 where `x` is 0."""
    value = or_nan(tf.math.xlogy(x, y), y)

    def vjp(upstream: tf.Tensor) -> _Pair:
        in_x = times_upstream(upstream, log_zero_at_zero(y))
        in_y = times_upstream(upstream, quotient_positive(x, y, value))
        return unbroadcast(in_x, x), unbroadcast(in_y, y)

    return value, vjp


@custom_gradient
def xlog1py(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
    """Computes `x * log(1 + y)` elementwise, and 0 where `x` is 0."""
    value = or_nan(tf.math.xlog1py(x, y), y)

    def vjp(upstream: tf.Tensor) -> _Pair:
        in_x = times_upstream(upstream, log1p_zero_at_minus_one(y))
        in_y = times_upstream(upstream, quotient_positive(x, 1 + y, value))
        return unbroadcast(in_x, x), unbroadcast(in_y, y)

    return value, vjp


@custom_gradient
def xdivy(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
    """Computes `x / y` elementwise, and 0 where `x` is 0."""

    def vjp(upstream: tf.Tensor) -> _Pair:
        in_x = times_upstream(upstream, reciprocal(y))
        in_y = -times_upstream(upstream, times_upstream(reciprocal(y), quotient(x, y)))
        return unbroadcast(in_x, x), unbroadcast(in_y, y)

    return or_nan(tf.math.xdivy(x, y), y), vjp


def or_nan(value: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Returns `value`, and NaN where `y` is NaN."""
    return value + nan_of(y)
