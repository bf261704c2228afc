"""Computes logarithms and the ratio of the modified Bessel functions I0 and I1.

`tfsafe.rewriting` puts them in the place of hand-written formulas.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfsafe._gradients import custom_gradient

# From here on the asymptotic series of I1 / I0, with so many terms, has all digits.
_FAR, _TERMS = 30.0, 22


def _coefficients() -> list[float]:
    """Returns those of the powers of 1 / x in I1 / I0, by Riccati's equation."""
    a = [1.0]
    for n in range(1, _TERMS):
        a.append(((n - 2) * a[n - 1] - sum(a[i] * a[n - i] for i in range(1, n))) / 2)
    return a


_SERIES = _coefficients()


def _in_float64(function: Callable[..., tf.Tensor]) -> Callable[..., tf.Tensor]:
    return lambda x: tf.cast(function(tf.cast(x, tf.float64)), x.dtype)


@_in_float64
def log_bessel_i1(x: tf.Tensor) -> tf.Tensor:
    """Computes `log(I1(x))`, NaN for negative `x`."""
    return tf.math.log(bessel_ratio(x)) + log_bessel_i0(x)


@_in_float64
@custom_gradient
def log_bessel_i0(x: tf.Tensor) -> tuple[tf.Tensor, Any]:
    """Computes `log(I0(x))`."""
    size = tf.abs(x)
    # Not of `bessel_i0`, which XLA lacks; of infinity, `bessel_i0e` is 0.
    inside = tf.where(tf.math.is_inf(size), tf.zeros_like(x), size)
    value = tf.math.log(tf.math.bessel_i0e(inside)) + size
    quarter = tf.square(x) / 4
    value = tf.where(size < 1e-3, quarter - tf.square(quarter) / 4, value)
    return value, lambda upstream: upstream * bessel_ratio(x)


@_in_float64
def bessel_ratio(x: tf.Tensor) -> tf.Tensor:
    """Computes `I1(x) / I0(x)`."""
    is_far = tf.abs(x) > _FAR
    inverse = 1 / tf.where(is_far, tf.abs(x), _FAR * tf.ones_like(x))
    far = tf.ones_like(x) * _SERIES[-1]
    for coefficient in reversed(_SERIES[:-1]):
        far = far * inverse + coefficient
    near = _near_ratio(tf.where(is_far, tf.zeros_like(x), x))
    return tf.where(is_far, tf.sign(x) * far, near)


@custom_gradient
def _near_ratio(x: tf.Tensor) -> tuple[tf.Tensor, Any]:
    value = tf.math.bessel_i1e(x) / tf.math.bessel_i0e(x)

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        return upstream * _near_slope(x)

    return value, vjp


@custom_gradient
def _near_slope(x: tf.Tensor) -> tuple[tf.Tensor, Any]:
    """Returns `1 - A / x - A ** 2` of the ratio A."""
    ratio = tf.math.bessel_i1e(x) / tf.math.bessel_i0e(x)
    is_zero = tf.abs(x) < 1e-3
    safe = tf.where(is_zero, tf.ones_like(x), x)
    over = tf.where(is_zero, 0.5 - x * x / 16, ratio / safe)
    slope = 1 - over - ratio * ratio

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        # Derivative of A / x: (A' - A / x) / x, which is -x / 8 near 0.
        of_over = tf.where(is_zero, -x / 8, (slope - over) / safe)
        return upstream * (-of_over - 2 * ratio * slope)

    return slope, vjp
