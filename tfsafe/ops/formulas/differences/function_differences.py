"""Differences `f(a) - f(b)` of a function at two points that are near each other.

There the value is computed from b and the distance `d = a - b`; elsewhere it is the
difference as written, so that ordinary values keep their digits.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from tfsafe._gradients import custom_gradient, unbroadcast
from tfsafe._limits import LIMITS
from tfsafe.ops.formulas.limits.quotients import near_or_far
from tfsafe.ops.kernels import precision

_Function = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]
# Up to this distance the formulas keep more digits than the difference.
_NEAR = 0.5


class Difference(NamedTuple):
    """How to compute the difference of one function.

    Attributes:
      is_near: Of b and d; returns where to use `near`.
      near: Of b and d; returns the difference.
      neutral: A b at which `near` is finite with a distance of 0.
    """

    is_near: _Function
    near: _Function
    neutral: float

    def of_step(
        self, b: tf.Tensor, d: tf.Tensor, of_a: tf.Tensor, of_b: tf.Tensor
    ) -> tf.Tensor:
        """Computes `f(b + d) - f(b)`, with its gradients in b and d."""
        return precision.in_float32(self._select, b, d, of_a, of_b)

    def of_points(
        self, b: tf.Tensor, d: tf.Tensor, of_a: tf.Tensor, of_b: tf.Tensor
    ) -> tf.Tensor:
        """Computes `f(b + d) - f(b)`, with the gradients of the values as they are."""

        def compute(
            b: tf.Tensor, d: tf.Tensor, of_a: tf.Tensor, of_b: tf.Tensor
        ) -> tf.Tensor:
            value = tf.stop_gradient(self._select(b, d, of_a, of_b))
            return _with_value(of_a, of_b, value)

        return precision.in_float32(compute, b, d, of_a, of_b)

    def _select(
        self, b: tf.Tensor, d: tf.Tensor, of_a: tf.Tensor, of_b: tf.Tensor
    ) -> tf.Tensor:
        near = self.is_near(b, d)
        inside = tf.where(near, b, tf.constant(self.neutral, b.dtype))
        step = tf.where(near, d, tf.zeros([], d.dtype))
        return tf.where(near, self.near(inside, step), of_a - of_b)


@custom_gradient
def _with_value(
    of_a: tf.Tensor, of_b: tf.Tensor, value: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, ...]]]:
    """Returns the value, with the gradients of `of_a - of_b`."""

    def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, ...]:
        in_value = tf.zeros_like(value)
        return unbroadcast(upstream, of_a), unbroadcast(-upstream, of_b), in_value

    return tf.identity(value), vjp


def _is_close(b: tf.Tensor, d: tf.Tensor) -> tf.Tensor:
    return (tf.abs(d) < _NEAR) & tf.math.is_finite(b)


def _is_close_in_range(b: tf.Tensor, d: tf.Tensor) -> tf.Tensor:
    return _is_close(b, d) & (b < math.log(LIMITS[b.dtype.name].max) - 1)


def _is_ratio_near_one(b: tf.Tensor, d: tf.Tensor) -> tf.Tensor:
    # A subnormal number has few digits, and so has its distance from another.
    limits = LIMITS[b.dtype.name]
    low = tf.minimum(b, b + d)
    return (low >= limits.tiny / limits.eps) & (tf.abs(d) < _NEAR * low)


def _is_ratio_of_either_sign_near_one(b: tf.Tensor, d: tf.Tensor) -> tf.Tensor:
    return _is_ratio_near_one(b, d) | _is_ratio_near_one(-b, -d)


def _is_angle_small(b: tf.Tensor, d: tf.Tensor) -> tf.Tensor:
    product = b * (b + d)
    is_small = tf.abs(d) < _NEAR * (1 + tf.abs(b))
    return is_small & (product > 0) & tf.math.is_finite(product)


def _is_in_upper_tail(b: tf.Tensor, d: tf.Tensor, start: float = 1.0) -> tf.Tensor:
    return _is_close(b, d) | ((tf.minimum(b, b + d) > start) & tf.math.is_finite(d))


def _is_in_tails(b: tf.Tensor, d: tf.Tensor) -> tf.Tensor:
    return _is_in_upper_tail(b, d) | _is_in_upper_tail(-b, -d)


def _is_short(b: tf.Tensor, d: tf.Tensor) -> tf.Tensor:
    # The next term is below the fourth power of this, over 100.
    longest = LIMITS[d.dtype.name].eps ** 0.25
    size = tf.maximum(tf.ones([], b.dtype), tf.abs(b))
    return (tf.abs(d) * size < longest) & (size < 30)


def _is_short_or_in_tails(b: tf.Tensor, d: tf.Tensor) -> tf.Tensor:
    beyond = tf.minimum(tf.abs(b), tf.abs(b + d)) > _NEAR
    is_alike = tf.equal(tf.sign(b), tf.sign(b + d)) & tf.math.is_finite(d)
    return _is_short(b, d) | (beyond & is_alike)


def _of_sigmoid(b: tf.Tensor, d: tf.Tensor) -> tf.Tensor:
    high, low = tf.maximum(b, b + d), tf.minimum(b, b + d)
    # The magnitude with its sign, where `tf.abs` has no slope at 0.
    sign = tf.where(d < 0, -tf.ones_like(d), tf.ones_like(d))
    return sign * tf.sigmoid(high) * tf.sigmoid(-low) * -tf.math.expm1(-sign * d)


def _of_erf(b: tf.Tensor, d: tf.Tensor) -> tf.Tensor:
    # In the tail, of the two points mirrored where they are negative.
    sign = tf.where(b < 0, -tf.ones_like(b), tf.ones_like(b))
    tail = sign * (tf.math.erfc(sign * b) - tf.math.erfc(sign * (b + d)))
    square = tf.square(b + 0.5 * d)
    # The first terms of the integral about the middle.
    density = (2 / math.sqrt(math.pi)) * tf.exp(-square)
    integral = density * d * (1 + (2 * square - 1) / 12 * tf.square(d))
    return tf.where(_is_short(b, d), integral, tail)


DIFFERENCES = {
    "Atan": Difference(_is_angle_small, lambda b, d: tf.atan(d / (1 + b * (b + d))), 0),
    "Cos": Difference(
        _is_close, lambda b, d: -2 * tf.sin(b + d / 2) * tf.sin(d / 2), 0
    ),
    "Erf": Difference(_is_short_or_in_tails, _of_erf, 0),
    "Exp": Difference(_is_close_in_range, lambda b, d: tf.exp(b) * tf.math.expm1(d), 0),
    "Log": Difference(_is_ratio_near_one, lambda b, d: tf.math.log1p(d / b), 1),
    "Log1p": Difference(
        lambda b, d: _is_ratio_near_one(1 + b, d),
        lambda b, d: tf.math.log1p(d / (1 + b)),
        0,
    ),
    "Reciprocal": Difference(
        _is_ratio_of_either_sign_near_one, lambda b, d: -d / (b + d) / b, 1
    ),
    "Sigmoid": Difference(_is_in_upper_tail, _of_sigmoid, 0),
    "Sin": Difference(_is_close, lambda b, d: 2 * tf.cos(b + d / 2) * tf.sin(d / 2), 0),
    "Softplus": Difference(
        _is_close, lambda b, d: tf.math.log1p(tf.sigmoid(b) * tf.math.expm1(d)), 0
    ),
    "Sqrt": Difference(
        _is_ratio_near_one, lambda b, d: d / (tf.sqrt(b + d) + tf.sqrt(b)), 1
    ),
    "Tan": Difference(
        _is_close, lambda b, d: tf.sin(d) / (tf.cos(b) * tf.cos(b + d)), 0
    ),
    "Tanh": Difference(_is_in_tails, lambda b, d: 2 * _of_sigmoid(2 * b, 2 * d), 0),
}


def of_power(exponent: tf.Tensor) -> Difference:
    """Returns how to compute `a ** k - b ** k`."""

    def near(b: tf.Tensor, d: tf.Tensor) -> tf.Tensor:
        k = tf.cast(exponent, b.dtype)
        return tf.pow(b, k) * tf.math.expm1(k * tf.math.log1p(d / b))

    return Difference(_is_ratio_near_one, near, 1)


# So many steps of the recurrence; then the asymptotic series has all digits.
_STEPS = 10
# Coefficients of the powers -2, -4, ... in the series of digamma.
_SERIES = (-1 / 12, 1 / 120, -1 / 252, 1 / 240, -1 / 132)


@precision.runs_in_float32
def digamma_difference(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Computes `digamma(x + y) - digamma(x)`."""

    def plain(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        return tf.math.digamma(x + y) - tf.math.digamma(x)

    is_positive = (x > 0) & (x + y > 0)
    return near_or_far(is_positive, _positive, plain, x, y)


def _positive(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    total = tf.zeros_like(x + y)
    for step in range(_STEPS):
        total += y / (x + step) / (x + step + y)
    far, whole = x + _STEPS, x + _STEPS + y
    total += tf.math.log1p(y / far) + y / (2 * far) / whole
    a, b = 1 / tf.square(far), 1 / tf.square(whole)
    # What the inverse squares differ by, a factor of every difference of their powers.
    difference = -y / far / whole * (1 / far + 1 / whole)
    powers, power_of_b = tf.ones_like(difference), tf.ones_like(difference)
    for coefficient in _SERIES:
        total += coefficient * difference * powers
        power_of_b *= b
        powers = powers * a + power_of_b
    return total


def digamma_less_of_sum(x: tf.Tensor, axis: int) -> tf.Tensor:
    """Computes `digamma(x) - digamma(sum(x))` of positive numbers along an axis."""
    # What is added to each number, without what the difference of the sum would lose.
    before = tf.cumsum(x, axis, exclusive=True)
    behind = tf.cumsum(x, axis, exclusive=True, reverse=True)
    return -digamma_difference(x, before + behind)
