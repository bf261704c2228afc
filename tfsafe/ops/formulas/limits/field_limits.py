"""Computes formulas of finance, ecology, rendering and statistics with a limit in them.

Where nothing cancels or overflows the written formula is used, so that ordinary values
keep their digits.
"""

from collections.abc import Callable, Sequence

import tensorflow as tf

from tfsafe._gradients import custom_gradient, unbroadcast
from tfsafe.ops.formulas import unchanged_values
from tfsafe.ops.formulas.limits import removable
from tfsafe.ops.formulas.limits.quotients import (
    extreme_value,
    near_or_far,
    power_minus_one_over,
)
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.exponential import exp, expm1
from tfsafe.ops.kernels.power import constant_power

_Gradients = Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]
# A square above it is not added to 1 in any dtype.
_LARGE = 2.0**30


@precision.runs_in_float32
def one_plus_inverse_times_log(k: tf.Tensor, z: tf.Tensor) -> tf.Tensor:
    """Computes `(1 + 1 / k) * log(1 + k * z)`."""
    return tf.math.log1p(k * z) + z * removable.log1p_over_x(k * z)


def log_of_extreme_value(k: tf.Tensor, z: tf.Tensor) -> tf.Tensor:
    """Computes `log((1 + k * z) ** (-1 / k))`."""
    return precision.in_float32(lambda k, z: -z * removable.log1p_over_x(k * z), k, z)


@precision.runs_in_float32
def one_minus_extreme_value(k: tf.Tensor, z: tf.Tensor) -> tf.Tensor:
    """Computes `1 - (1 + k * z) ** (-1 / k)`."""
    log = log_of_extreme_value(k, z)
    is_near = (tf.abs(log) < 0.5) | (tf.abs(k * z) < 0.25)
    return near_or_far(
        is_near,
        lambda k, z: -expm1(log_of_extreme_value(k, z)),
        lambda k, z: 1 - extreme_value(k, z),
        k,
        z,
    )


@precision.runs_in_float32
def extreme_density(k: tf.Tensor, z: tf.Tensor) -> tf.Tensor:
    """Computes `(1 + k * z) ** (-1 / k - 1)`."""
    return near_or_far(
        tf.abs(k * z) < 0.25,
        lambda k, z: exp(-one_plus_inverse_times_log(k, z)),
        lambda k, z: unchanged_values.pow(1 + k * z, -1 / k - 1),
        k,
        z,
    )


@precision.runs_in_float32
@custom_gradient
def logistic_growth(p: tf.Tensor, t: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
    """Computes `p * exp(t) / (1 + p * (exp(t) - 1))`."""
    is_rising = t > 0
    small = exp(-tf.abs(t))
    below = tf.where(is_rising, p + (1 - p) * small, 1 + p * (small - 1))
    # Nothing grows from nothing, also where the exponential underflows.
    below = tf.where(tf.equal(p, 0) & tf.equal(small, 0), tf.ones_like(below), below)
    above = tf.where(is_rising, p, p * small)

    def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        rate = upstream * (small / below) / below
        return unbroadcast(rate, p), unbroadcast(p * (1 - p) * rate, t)

    return above / below, vjp


@precision.runs_in_float32
def one_plus_square_times(h: tf.Tensor, a: tf.Tensor) -> tf.Tensor:
    """Computes `1 + h ** 2 * (a - 1)`, which vanishes at `h = 1` and `a = 0`."""
    return near_or_far(
        (tf.abs(a) < 0.5) & (tf.abs(tf.abs(h) - 1) < 0.5),
        lambda h, a: (1 - h) * (1 + h) + tf.square(h) * a,
        lambda h, a: 1 + tf.square(h) * (a - 1),
        h,
        a,
    )


@precision.runs_in_float32
def van_leer(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Computes `(r + abs(r)) / (1 + abs(r))` of `r = a / b`; 0 for `r = 0 / 0`."""

    def limited(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
        r = unchanged_values.divide(a, b)
        return (r + tf.abs(r)) / (1 + tf.abs(r))

    def infinite(a: tf.Tensor, _: tf.Tensor) -> tf.Tensor:
        return 1 + tf.stop_gradient(tf.sign(a * tf.sign(1 / b)))

    is_limited = tf.math.is_finite(a / b) | tf.math.is_nan(a) | tf.math.is_nan(b)
    made = near_or_far(is_limited, limited, infinite, a, b)
    is_nothing = tf.equal(a, 0) & tf.equal(b, 0)
    return tf.where(is_nothing, tf.zeros_like(made), made)


@precision.runs_in_float32
def general_robust_loss(a: tf.Tensor, square: tf.Tensor) -> tf.Tensor:
    """Computes `abs(a - 2) / a * ((square / abs(a - 2) + 1) ** (a / 2) - 1)`."""

    def usual(a: tf.Tensor, square: tf.Tensor) -> tf.Tensor:
        b = tf.abs(a - 2)
        return b / 2 * power_minus_one_over(square / b + 1, a / 2)

    return near_or_far(
        tf.not_equal(a, 2),
        usual,
        lambda _, square: square / 2,
        a,
        square,
    )


def standardised_moment(
    d: tf.Tensor,
    order: float,
    axes: Sequence[int] | None,
    keepdims: bool,
    means: tuple[bool, bool],
) -> tf.Tensor:
    """Computes `mean(d ** order) / mean(d ** 2) ** (order / 2)`; 0 where d is 0.

    Args:
      d: Deviations.
      order: 3 for the skewness, 4 for the kurtosis.
      axes: Axes of the means.
      keepdims: Of the means.
      means: Whether the numerator is a mean, not a sum, and the denominator.

    Returns:
      The quotient.
    """
    top, bottom = (tf.reduce_mean if each else tf.reduce_sum for each in means)

    def compute(d: tf.Tensor) -> tf.Tensor:
        # The quotient does not depend on the scale.
        _, _, down = precision.scaled(tf.stop_gradient(d), axes)
        y = d * down
        above = top(constant_power(y, order), axes, keepdims=keepdims)
        spread = bottom(tf.square(y), axes, keepdims=keepdims)
        is_nothing = tf.equal(spread, 0)
        kept = tf.where(is_nothing, tf.ones_like(spread), spread)
        made = above / constant_power(kept, order / 2)
        return tf.where(is_nothing, tf.zeros_like(made), made)

    return precision.in_float32(compute, d)


@precision.runs_in_float32
def weighted_lgamma(weight: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """Computes `weight * lgamma(x)`; 0 at a pole with weight 0."""
    is_pole = tf.equal(weight, 0) & (x <= 0) & tf.equal(x, tf.floor(x))
    kept = tf.where(is_pole, tf.ones_like(x), x)
    return tf.where(is_pole, tf.zeros_like(x), weight) * tf.math.lgamma(kept)
