"""Products and quotients that are 0 where their first factor is 0."""

from collections.abc import Callable

import tensorflow as tf

from tfsafe._gradients import custom_gradient, unbroadcast
from tfsafe.ops.kernels.zeros import (
    log1p_zero_at_minus_one,
    log_zero_at_zero,
    quotient,
    quotient_positive,
    reciprocal,
    times_upstream,
)

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
    return tf.where(tf.math.is_nan(y), y, value)
