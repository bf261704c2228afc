"""Logarithms of `x`, of `1 + x`, of the odds and of the sigmoid."""

from collections.abc import Callable

import tensorflow as tf

from tfsafe._gradients import custom_gradient
from tfsafe.ops.kernels.activation import sigmoid
from tfsafe.ops.kernels.known import known
from tfsafe.ops.kernels.zeros import (
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
