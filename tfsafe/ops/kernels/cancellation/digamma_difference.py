"""Computes the difference of two values of the digamma function."""

import tensorflow as tf

from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.limits.quotients import near_or_far, point

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
    return near_or_far(is_positive, _positive, plain, point(x, 1, 1), point(y, 1, 1))


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
