"""Computes quotients of two arguments, or with a limit at a point other than 0.

Near the point a power series is used, elsewhere the written quotient, so that
ordinary values keep their digits. The first two derivatives are right at the point.
"""

import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import factorial

import tensorflow as tf

from tfsafe.ops.formulas import unchanged_values
from tfsafe.ops.formulas.limits import removable
from tfsafe.ops.formulas.limits.removable import Removable
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.exponential import exp, expm1
from tfsafe.ops.kernels.power import sqrt

_Function = Callable[..., tf.Tensor]
_TERMS = 40


def _coefficients(coefficient: Callable[[int], Fraction]) -> list[Fraction]:
    return [coefficient(n) for n in range(_TERMS)]


def near_or_far(
    is_near: tf.Tensor, near: _Function, far: _Function, *args: tf.Tensor
) -> tf.Tensor:
    """Selects between two functions; neither is computed where it is not used.

    There its arguments are 1/2, 1/4, 1/8, ...: it has to be finite at these.

    Args:
      is_near: Where to use `near`.
      near: The one function.
      far: The other.
      *args: Their arguments.

    Returns:
      The values, with the gradients of the function that is used.
    """
    unused = [tf.constant(0.5**n, x.dtype) for n, x in enumerate(args, 1)]
    pairs = list(zip(args, unused, strict=True))
    inside = [tf.where(is_near, x, number) for x, number in pairs]
    outside = [tf.where(is_near, number, x) for x, number in pairs]
    return tf.where(is_near, near(*inside), far(*outside))


@precision.runs_in_float32
def log_over_x_minus_one(x: tf.Tensor) -> tf.Tensor:
    """Computes `log(x) / (x - 1)`."""
    return near_or_far(
        tf.abs(x - 1) < 0.25,
        lambda x: removable.log1p_over_x(x - 1),
        lambda x: tf.math.log(x) / (x - 1),
        x,
    )


@precision.runs_in_float32
def x_minus_one_over_log(x: tf.Tensor) -> tf.Tensor:
    """Computes `(x - 1) / log(x)`."""
    return near_or_far(
        tf.abs(x - 1) < 0.25,
        lambda x: removable.x_over_log1p(x - 1),
        lambda x: (x - 1) / tf.math.log(x),
        x,
    )


@precision.runs_in_float32
def logarithmic_mean(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Computes `(a - b) / (log(a) - log(b))`."""
    return near_or_far(
        tf.abs(a - b) < 0.25 * tf.abs(b),
        lambda a, b: b * removable.x_over_log1p((a - b) / b),
        lambda a, b: (a - b) / (tf.math.log(a) - tf.math.log(b)),
        a,
        b,
    )


@precision.runs_in_float32
def power_minus_one_over(x: tf.Tensor, k: tf.Tensor) -> tf.Tensor:
    """Computes `(x ** k - 1) / k`."""
    log = tf.math.log(tf.where(x > 0, x, tf.ones_like(x)))
    return near_or_far(
        (x > 0) & (tf.abs(k * log) < 0.5),
        lambda x, k: tf.math.log(x) * removable.expm1_over_x(k * tf.math.log(x)),
        lambda x, k: unchanged_values.divide(unchanged_values.pow(x, k) - 1, k),
        x,
        k,
    )


@precision.runs_in_float32
def growth(r: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Computes `((1 + r) ** n - 1) / r`."""
    small = tf.abs(r) < 0.25
    exponent = n * tf.math.log1p(tf.where(small, r, tf.zeros_like(r)))

    def near(r: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
        exponent = n * tf.math.log1p(r)
        return n * removable.log1p_over_x(r) * removable.expm1_over_x(exponent)

    return near_or_far(
        small & (tf.abs(exponent) < 0.5),
        near,
        lambda r, n: unchanged_values.divide(unchanged_values.pow(1 + r, n) - 1, r),
        r,
        n,
    )


def annuity(r: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Computes `(1 - (1 + r) ** n) / r`."""
    return -growth(r, n)


def payment(r: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Computes `r / (1 - (1 + r) ** n)`."""
    return -1 / growth(r, n)


@precision.runs_in_float32
def geometric_sum(q: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Computes `(1 - q ** n) / (1 - q)`."""
    return near_or_far(
        tf.abs(q - 1) < 0.25,
        lambda q, n: growth(q - 1, n),
        lambda q, n: unchanged_values.divide(1 - unchanged_values.pow(q, n), 1 - q),
        q,
        n,
    )


@precision.runs_in_float32
def extreme_value(k: tf.Tensor, z: tf.Tensor) -> tf.Tensor:
    """Computes `(1 + k * z) ** (-1 / k)`."""
    return near_or_far(
        tf.abs(k * z) < 0.25,
        lambda k, z: exp(-z * removable.log1p_over_x(k * z)),
        lambda k, z: unchanged_values.pow(1 + k * z, -1 / k),
        k,
        z,
    )


def over_factor(function: _Function) -> _Function:
    """Returns `f(k * z) / k`.

    Args:
      function: `f(x) / x`.
    """
    return lambda k, z: z * function(k * z)


@precision.runs_in_float32
def exp_difference(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Computes `(exp(a) - exp(b)) / (a - b)`."""
    return near_or_far(
        tf.abs(a - b) < 0.5,
        lambda a, b: exp(b) * removable.expm1_over_x(a - b),
        lambda a, b: (exp(a) - exp(b)) / (a - b),
        a,
        b,
    )


def sine_ratio(ratio: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """Computes `sin(ratio * x) / sin(x)`."""
    whole = removable.sin_over_x(ratio * x) * removable.x_over_sin(x)
    return ratio * whole


def sine_ratio_of_square(ratio: tf.Tensor, square: tf.Tensor) -> tf.Tensor:
    """Computes `sin(ratio * x) / sin(x)` of the square of x."""
    below = removable.x_over_sin.of_length(square)
    return ratio * removable.sin_over_x.of_length(tf.square(ratio) * square) * below


@precision.runs_in_float32
def sinh_ratio(ratio: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """Computes `sinh(ratio * x) / sinh(x)`."""

    def near(ratio: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
        return ratio * removable.sinh_over_x(ratio * x) * removable.x_over_sinh(x)

    def far(ratio: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
        a, b = tf.abs(ratio * x), tf.abs(x)
        return tf.sign(ratio) * exp(a - b) * expm1(-2 * a) / expm1(-2 * b)

    is_near = (tf.abs(x) < 0.5) & (tf.abs(ratio * x) < 0.5)
    return near_or_far(is_near, near, far, ratio, x)


@precision.runs_in_float32
def log_sinh_over_x(x: tf.Tensor) -> tf.Tensor:
    """Computes `log(sinh(x) / x)`."""

    def far(x: tf.Tensor) -> tf.Tensor:
        size = tf.abs(x)
        return size + tf.math.log(-expm1(-2 * size) / (2 * size))

    def near(x: tf.Tensor) -> tf.Tensor:
        return tf.math.log1p(tf.square(x) * removable.sinh_minus_x_over_cube(x))

    return near_or_far(tf.abs(x) < 1, near, far, x)


def log_two_sinh_over_x(x: tf.Tensor) -> tf.Tensor:
    """Computes `log(2 sinh(x) / x)`."""
    return log_sinh_over_x(x) + math.log(2)


@precision.runs_in_float32
def log_expm1_over_x(x: tf.Tensor) -> tf.Tensor:
    """Computes `log(expm1(x) / x)`."""

    def far(x: tf.Tensor) -> tf.Tensor:
        size = tf.abs(x)
        larger = tf.where(x > 0, x, tf.zeros_like(x))
        return larger + tf.math.log(-expm1(-size) / size)

    def near(x: tf.Tensor) -> tf.Tensor:
        return tf.math.log1p(x * removable.exp_minus_tangent_over_square(x))

    return near_or_far(tf.abs(x) < 1, near, far, x)


@precision.runs_in_float32
def expm1_ratio(ratio: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """Computes `expm1(ratio * x) / expm1(x)`."""

    def near(ratio: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
        return ratio * removable.expm1_over_x(ratio * x) * removable.x_over_expm1(x)

    def far(ratio: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
        a, b = ratio * x, x
        # Both exponentials are of negative numbers; what is taken out is added.
        scale = tf.maximum(a, tf.zeros_like(a)) - tf.maximum(b, tf.zeros_like(b))
        below = expm1(-tf.abs(b)) * tf.sign(-b)
        return exp(scale) * expm1(-tf.abs(a)) * tf.sign(-a) / below

    is_near = (tf.abs(x) < 0.5) & (tf.abs(ratio * x) < 0.5)
    return near_or_far(is_near, near, far, ratio, x)


@precision.runs_in_float32
def power_of_one_plus(k: tf.Tensor, z: tf.Tensor) -> tf.Tensor:
    """Computes `(1 + k * z) ** (1 / k)`."""
    return near_or_far(
        tf.abs(k * z) < 0.25,
        lambda k, z: exp(z * removable.log1p_over_x(k * z)),
        lambda k, z: unchanged_values.pow(1 + k * z, 1 / k),
        k,
        z,
    )


@precision.runs_in_float32
def compound(r: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
    """Computes `(1 + r / n) ** n`."""
    return near_or_far(
        (tf.abs(r) < 0.25 * tf.abs(n)) & tf.math.is_finite(n),
        lambda r, n: exp(r * removable.log1p_over_x(r / n)),
        lambda r, n: unchanged_values.pow(1 + r / n, n),
        r,
        n,
    )


@precision.runs_in_float32
def sabr(z: tf.Tensor, rho: tf.Tensor) -> tf.Tensor:
    """Computes `z / log((sqrt(1 - 2 rho z + z^2) + z - rho) / (1 - rho))`."""
    # Both sides change their signs with z and rho; for a positive z nothing cancels.
    is_negative = z < 0
    rho = tf.where(is_negative, -rho, rho + tf.zeros_like(z))
    z = tf.where(is_negative, -z, z)
    root = sqrt(1 + z * (z - 2 * rho))
    slope = (1 + (z - 2 * rho) / (root + 1)) / (1 - rho)
    return removable.x_over_log1p(z * slope) / slope


def einstein(x: tf.Tensor) -> tf.Tensor:
    """Computes `x ** 2 * exp(x) / (exp(x) - 1) ** 2`."""
    return near_or_far(
        tf.abs(x) < 1,
        lambda x: tf.square(removable.x_over_sinh(x / 2)),
        lambda x: removable.x_over_expm1(x) * removable.x_over_expm1(-x),
        x,
    )


def einstein_of_order(x: tf.Tensor, n: float) -> tf.Tensor:
    """Computes `x ** n * exp(x) / (exp(x) - 1) ** 2` for n of 2 and more."""
    return tf.pow(x, n - 2) * einstein(x)


def sqrt1pm1_over_x(x: tf.Tensor) -> tf.Tensor:
    """Computes `(sqrt(1 + x) - 1) / x`."""
    return 1 / (sqrt(1 + x) + 1)


# `sin(x) / x ** 2 - cos(x) / x`.
spherical_bessel = Removable(
    _coefficients(
        lambda n: (
            Fraction((-1) ** (n // 2) * (n + 1), factorial(n + 2))
            if n % 2
            else Fraction(0)
        )
    ),
    2.0,
    lambda x: (tf.sin(x) / x - tf.cos(x)) / x,
)


def clipped_over_x(x: tf.Tensor, limit: float) -> tf.Tensor:
    """Computes `minimum(x, limit) / x` for a positive limit."""
    bound = tf.constant(limit, x.dtype)
    is_below = x < bound
    return tf.where(is_below, tf.ones_like(x), bound / tf.where(is_below, bound, x))


def clipped_from_0_over_x(x: tf.Tensor, limit: float) -> tf.Tensor:
    """Computes `clip_by_value(x, 0, limit) / x` for a positive limit."""
    return tf.where(x < 0, tf.zeros_like(x), clipped_over_x(x, limit))


def shrunk_over_x(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Computes `maximum(x - y, 0) / x`, 0 where that is 0 over 0."""
    left = x - y
    is_none = left <= 0
    one = tf.ones_like(left)
    return tf.where(
        is_none,
        tf.zeros_like(left),
        tf.where(is_none, one, left) / tf.where(is_none, one, x),
    )


def raised_cosine(x: tf.Tensor) -> tf.Tensor:
    """Computes `cos(pi * x / 2) / (1 - x ** 2)`."""
    size = tf.where(x < 0, -x, x)
    half = tf.constant(math.pi / 2, x.dtype)
    return near_or_far(
        tf.abs(size - 1) < 0.5,
        lambda x: half * removable.sin_over_x(half * (1 - x)) / (1 + x),
        lambda x: tf.cos(half * x) / (1 - tf.square(x)),
        size,
    )


def zero_where_lost(
    compute: Callable[..., tf.Tensor],
    sides: Sequence[tf.Tensor],
    near: Sequence[tf.Tensor],
) -> tf.Tensor:
    """Computes a quotient or product, 0 where it is NaN near a point."""
    lost = functools.reduce(tf.logical_or, near)
    lost &= tf.math.is_nan(compute(*map(tf.stop_gradient, sides)))
    kept = (tf.where(lost, tf.ones([], x.dtype), x) for x in sides)
    made = compute(*kept)
    return tf.where(lost, tf.zeros_like(made), made)
