"""Computes sums whose terms nearly cancel: a function less its tangent, and others.

Where the terms cancel, a power series or a logarithm is used; elsewhere the sum as it
is written, so that ordinary values keep their digits.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tfsafe import ops
from tfsafe.ops.formulas import unchanged_values
from tfsafe.ops.formulas.limits import removable
from tfsafe.ops.formulas.limits.quotients import near_or_far
from tfsafe.ops.formulas.out_of_range.weighted_exponentials import (
    quotient_of_weights,
    zero_where_weightless,
)
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.exponential import exp, expm1
from tfsafe.ops.kernels.zeros import quotient_no_nan

# Nearer to 0, a logarithm of a power keeps more digits than the power.
_NEAR = 0.5


def _times_power(
    series: Callable[[tf.Tensor], tf.Tensor],
    power: int,
    near: float,
    plain: Callable[..., tf.Tensor],
) -> Callable[[tf.Tensor], tf.Tensor]:
    def of_near(x: tf.Tensor) -> tf.Tensor:
        made = series(x)
        for _ in range(power):
            made *= x
        return made

    def compute(x: tf.Tensor) -> tf.Tensor:
        return near_or_far(tf.abs(x) < near, of_near, plain, x)

    return lambda x: precision.in_float32(compute, x)


# `exp(x) - 1 - x`, `x - log1p(x)`, `x - sin(x)`, `x - tan(x)` and `x - tanh(x)`.
exp_minus_tangent = _times_power(
    removable.exp_minus_tangent_over_square, 2, 1.0, lambda x: expm1(x) - x
)
x_minus_log1p = _times_power(
    removable.x_minus_log1p_over_square, 2, 0.25, lambda x: x - tf.math.log1p(x)
)
x_minus_sin = _times_power(
    removable.x_minus_sin_over_cube, 3, 1.0, lambda x: x - tf.sin(x)
)
x_minus_tan = _times_power(
    lambda x: -removable.tan_minus_x_over_cube(x), 3, 0.75, lambda x: x - tf.tan(x)
)
x_minus_tanh = _times_power(
    removable.x_minus_tanh_over_cube, 3, 0.75, lambda x: x - tf.tanh(x)
)


log1p_minus_fraction = _times_power(
    removable.log1p_moment, 2, 0.25, lambda x: tf.math.log1p(x) - x / (1 + x)
)
sinh_minus_x = _times_power(
    removable.sinh_minus_x_over_cube, 3, 1.0, lambda x: tf.sinh(x) - x
)


def x_minus_multiple(
    function: Callable[[tf.Tensor], tf.Tensor],
    x_minus: Callable[[tf.Tensor], tf.Tensor],
) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
    """Returns `x - k * function(x)`, given `x - function(x)`."""

    def compute(x: tf.Tensor, k: tf.Tensor) -> tf.Tensor:
        return near_or_far(
            (tf.abs(x) < 1) & (tf.abs(k - 1) < _NEAR),
            lambda x, k: (1 - k) * x + k * x_minus(x),
            lambda x, k: x - k * function(x),
            x,
            k,
        )

    return lambda x, k: precision.in_float32(compute, x, k)


@precision.runs_in_float32
def x_minus_one_minus_log(x: tf.Tensor, log: tf.Tensor) -> tf.Tensor:
    """Computes `x - 1 - log(x)`; the logarithm may be known where `x` underflows."""
    return step_minus_log(x - 1, log)


@precision.runs_in_float32
def step_minus_log(step: tf.Tensor, log: tf.Tensor) -> tf.Tensor:
    """Computes `step - log(1 + step)`, the logarithm being known."""
    return near_or_far(
        tf.abs(step) < 0.25,
        lambda step, _: x_minus_log1p(step),
        lambda step, log: step - log,
        step,
        log,
    )


@precision.runs_in_float32
def squared_difference_of_roots(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Computes `a + b - 2 sqrt(a * b)`."""

    def near(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
        return tf.square((a - b) / (tf.sqrt(a) + tf.sqrt(b)))

    def far(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
        return a + b - 2 * ops.sqrt(a) * ops.sqrt(b)

    is_near = (a > 0.25 * b) & (a < 4 * b)
    return near_or_far(is_near, near, far, a, b)


@precision.runs_in_float32
def bregman_of_entropy(
    x: tf.Tensor, y: tf.Tensor, difference: tf.Tensor, *log_ratio: tf.Tensor
) -> tf.Tensor:
    """Computes `x log(x / y) - x + y` from `x - y` too, with the value y at 0.

    Args:
      x: Numbers that are not negative.
      y: Numbers that are not negative.
      difference: `x - y`.
      *log_ratio: `log(x / y)`, if it is known where a number underflows.

    Returns:
      The divergences.
    """

    def near(_: tf.Tensor, y: tf.Tensor, difference: tf.Tensor, *__: tf.Tensor) -> Any:
        step = difference / y
        return y * step * step * removable.entropy_over_square(step)

    def far(x: tf.Tensor, y: tf.Tensor, _: tf.Tensor, *log: tf.Tensor) -> tf.Tensor:
        if log:
            return x * zero_where_weightless(log[0], x) - x + y
        is_nothing = tf.equal(x, 0) & tf.equal(y, 0)
        below = tf.where(is_nothing, tf.ones_like(y), y)
        return ops.xlogy(x, quotient_of_weights(x, below, tf.divide)) - x + y

    is_near = tf.abs(difference) < 0.25 * tf.abs(y)
    return near_or_far(is_near, near, far, x, y, difference, *log_ratio)


class EntropyOfMean(NamedTuple):
    """A number times the mean of `x log(x)`, less that of the mean, summed.

    Attributes:
      factor: The number.
      x: Positive numbers.
      mean: The axes of the mean.
      summed: The axes of the sum.
      lowest: Below this number the difference is to be computed as written.
    """

    factor: float
    x: tf.Tensor
    mean: Sequence[int]
    summed: Sequence[int]
    lowest: float


def mutual_information(
    terms: Sequence[EntropyOfMean], plain: tf.Tensor | float
) -> tf.Tensor:
    """Computes the mean divergence from a mean; `plain` where a number is low."""
    plain = tf.convert_to_tensor(plain)
    is_inside = functools.reduce(
        tf.logical_and,
        (
            tf.reduce_all(each.x >= each.lowest, [*each.mean, *each.summed], True)
            for each in terms
        ),
    )
    whole: tf.Tensor = tf.zeros([], terms[0].x.dtype)
    for each in terms:
        x = tf.where(is_inside, each.x, tf.ones_like(each.x))
        mean = tf.reduce_mean(x, each.mean, keepdims=True)
        divergence = bregman_of_entropy(x, mean, x - mean)
        divergence = tf.reduce_mean(divergence, each.mean, keepdims=True)
        whole += each.factor * tf.reduce_sum(divergence, each.summed, keepdims=True)
    shape = tf.shape(plain)
    made = tf.cast(tf.reshape(whole, shape), plain.dtype)
    return tf.where(tf.reshape(is_inside, shape), made, plain)


@precision.runs_in_float32
def one_minus_power(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Computes `1 - x ** y`."""
    log = y * tf.math.log(tf.where(x > 0, x, tf.ones_like(x)))
    return near_or_far(
        (x > 0) & (tf.abs(log) < _NEAR),
        lambda x, y: -expm1(y * tf.math.log(x)),
        lambda x, y: 1 - unchanged_values.pow(x, y),
        x,
        y,
    )


@precision.runs_in_float32
def one_minus_power_of_quotient(a: tf.Tensor, b: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Computes `1 - (a / b) ** y`."""
    return near_or_far(
        tf.abs(a - b) < 0.25 * tf.abs(b),
        lambda a, b, y: one_minus_power_of_complement((b - a) / b, y),
        lambda a, b, y: one_minus_power(unchanged_values.divide(a, b), y),
        a,
        b,
        y,
    )


@precision.runs_in_float32
def one_minus_power_of_complement(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Computes `1 - (1 - x) ** y`."""
    log = y * tf.math.log1p(tf.where(x < 1, -x, tf.zeros_like(x)))
    return near_or_far(
        (x < 1) & ((tf.abs(log) < _NEAR) | (tf.abs(x) < 2**-6)),
        lambda x, y: -expm1(y * tf.math.log1p(-x)),
        lambda x, y: 1 - unchanged_values.pow(1 - x, y),
        x,
        y,
    )


@precision.runs_in_float32
def log_one_minus_power(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Computes `log(1 - x ** y)`."""
    return _log_of_rest(one_minus_power(x, y), unchanged_values.pow(x, y))


@precision.runs_in_float32
def log_one_minus_power_of_complement(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Computes `log(1 - (1 - x) ** y)`."""
    rest = one_minus_power_of_complement(x, y)
    return _log_of_rest(rest, unchanged_values.pow(1 - x, y))


def _log_of_rest(rest: tf.Tensor, power: tf.Tensor) -> tf.Tensor:
    log1p = unchanged_values.log1p(-power)
    return tf.where(rest < 0.5, unchanged_values.log(rest), log1p)


def one_minus_cumprod_of_complement(
    x: tf.Tensor, axis: int, exclusive: bool, reverse: bool
) -> tf.Tensor:
    """Computes `1 - cumprod(1 - x)`."""

    def compute(x: tf.Tensor) -> tf.Tensor:
        is_inside = x < 1
        log = tf.math.log1p(-tf.where(is_inside, x, tf.zeros_like(x)))
        total = tf.cumsum(log, axis, exclusive, reverse)
        beyond = tf.cast(tf.logical_not(is_inside), x.dtype)
        counted = tf.cumsum(beyond, axis, exclusive, reverse)
        is_near = (counted < 0.5) & (tf.abs(total) < _NEAR)
        near = -expm1(tf.where(is_near, total, tf.zeros_like(total)))
        plain = 1 - ops.cumprod(1 - x, axis, exclusive, reverse)
        return tf.where(is_near, near, plain)

    return precision.in_float32(compute, x)


def one_minus_prod_of_complement(
    x: tf.Tensor, axes: tuple[int, ...], keepdims: bool
) -> tf.Tensor:
    """Computes `1 - prod(1 - x)`."""

    def compute(x: tf.Tensor) -> tf.Tensor:
        is_inside = x < 1
        log = tf.math.log1p(-tf.where(is_inside, x, tf.zeros_like(x)))
        total = tf.reduce_sum(log, axes, keepdims)
        inside = tf.reduce_all(is_inside, axes, keepdims)
        is_near = inside & (tf.abs(total) < _NEAR)
        near = -expm1(tf.where(is_near, total, tf.zeros_like(total)))
        return tf.where(is_near, near, 1 - tf.reduce_prod(1 - x, axes, keepdims))

    return precision.in_float32(compute, x)


@precision.runs_in_float32
def fraction_of_powers(x: tf.Tensor, n: tf.Tensor, k: tf.Tensor) -> tf.Tensor:
    """Computes `x ** n / (k ** n + x ** n)`."""

    def plain(x: tf.Tensor, n: tf.Tensor, k: tf.Tensor) -> tf.Tensor:
        a = tf.pow(x, n)
        total = a + tf.pow(k, n)
        is_nothing = tf.equal(total, 0)
        quotient = a / tf.where(is_nothing, tf.ones_like(total), total)
        return tf.where(is_nothing, tf.zeros_like(total), quotient)

    def scaled(x: tf.Tensor, n: tf.Tensor, k: tf.Tensor) -> tf.Tensor:
        is_above = x > k
        is_larger = is_above == (n > 0)
        size = tf.abs(n)
        # Not the minimum and maximum: at equal numbers both have the slope of `x`.
        less, more = tf.where(is_above, k, x), tf.where(is_above, x, k)
        ratio = tf.pow(quotient_no_nan(less, more), size)
        return tf.where(is_larger, 1 / (1 + ratio), ratio / (1 + ratio))

    total = tf.pow(x, n) + tf.pow(k, n)
    usual = (total > 1e-30) & (total < 1e30)
    is_scaled = (x > 0) & (k > 0) & tf.logical_not(usual)
    return near_or_far(is_scaled, scaled, plain, x, n, k)


def fraction_of_power(x: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Computes `x ** n / (1 + x ** n)`."""
    return fraction_of_powers(x, n, tf.ones([], x.dtype))


def rsqrt1pm1(x: tf.Tensor) -> tf.Tensor:
    """Computes `1 / sqrt(1 + x) - 1`."""

    def compute(x: tf.Tensor) -> tf.Tensor:
        return near_or_far(
            tf.abs(x) < _NEAR,
            lambda x: -x / (1 + x + tf.sqrt(1 + x)),
            lambda x: ops.rsqrt(1 + x) - 1,
            x,
        )

    return precision.in_float32(compute, x)


@precision.runs_in_float32
def elu_plus_one(x: tf.Tensor) -> tf.Tensor:
    """Computes `elu(x) + 1`, which is `exp(x)` where x is negative."""
    zero = tf.zeros_like(x)
    # The second derivative at 0 is 0, as with tf.nn.elu.
    return tf.where(x >= 0, x + 1, exp(tf.where(x >= 0, zero, x)))
