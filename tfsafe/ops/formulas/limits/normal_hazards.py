"""Computes hazards and means of normal distributions that are cut off."""

import math

import numpy as np
import tensorflow as tf

from tfsafe.ops.formulas.limits import removable
from tfsafe.ops.formulas.limits.quotients import near_or_far
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.exponential import exp, expm1

# Above, the hazard is nearly its asymptote, and a continued fraction is short.
_FAR = 2.0
_TERMS = {tf.float32: 20, tf.float64: 48}
# Between limits as near as this, a density is integrated by Gauss' rule.
_SHORT = 4.0


def _nodes(count: int) -> tuple[list[float], list[float]]:
    """Returns places and weights for an integral from 0 to 1."""
    places, weights = np.polynomial.legendre.leggauss(count)
    return ((1 + places) / 2).tolist(), (weights / 2).tolist()


_NODES = {tf.float32: _nodes(8), tf.float64: _nodes(16)}


@precision.runs_in_float32
def hazard_less_asymptote(x: tf.Tensor) -> tf.Tensor:
    """Computes `exp(-x * x) / erfc(x) - sqrt(pi) * x`."""
    root = math.sqrt(math.pi)

    # `sqrt(pi) * (1 / 2) / (x + 1 / (x + (3 / 2) / (x + ...)))`.
    def fraction(x: tf.Tensor) -> tf.Tensor:
        rest = tf.zeros_like(x)
        for term in range(_TERMS[x.dtype], 0, -1):
            rest = term / 2 / (x + rest)
        return root * rest

    def plain(x: tf.Tensor) -> tf.Tensor:
        return tf.exp(-tf.square(x)) / tf.math.erfc(x) - root * x

    return near_or_far(x > _FAR, fraction, plain, x)


def _hazard(x: tf.Tensor) -> tf.Tensor:
    """Computes `exp(-x * x) / erfc(x)`."""
    return hazard_less_asymptote(x) + math.sqrt(math.pi) * x


@precision.runs_in_float32
def mean_between(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Computes `(exp(-a * a) - exp(-b * b)) / (erf(b) - erf(a))`.

    It is `sqrt(pi)` times the mean of a normal distribution that is cut off at a and b,
    in units of its deviation times the square root of 2.

    Args:
      a: A limit.
      b: The other.

    Returns:
      The quotient, which is `sqrt(pi) * a` where the limits are equal.
    """
    is_first = a <= b
    low, high = tf.where(is_first, a, b), tf.where(is_first, b, a)
    # Mirrored, so that the limit that is nearer to 0 is the lower one.
    is_mirrored = low + high < 0
    low, high = tf.where(is_mirrored, -high, low), tf.where(is_mirrored, -low, high)
    step = high - low
    # In both directions without a limit, the sum is NaN and the quotient 0.
    is_short = (step < 1) & (step * (low + high) < _SHORT)
    is_tail = (low > 0.5) & tf.logical_not(is_short)
    made = near_or_far(
        is_short,
        _by_integral,
        lambda low, high: near_or_far(is_tail, _by_hazards, _plain, low, high),
        low,
        high,
    )
    return tf.where(is_mirrored, -made, made)


def _by_integral(low: tf.Tensor, high: tf.Tensor) -> tf.Tensor:
    step, total = high - low, high + low
    integral = tf.zeros_like(step)
    for place, weight in zip(*_NODES[step.dtype], strict=True):
        inside = place * step
        integral += weight * tf.exp(-inside * (2 * low + inside))
    rise = removable.expm1_over_x(-step * total)
    return math.sqrt(math.pi) / 2 * total * rise / integral


def _by_hazards(low: tf.Tensor, high: tf.Tensor) -> tf.Tensor:
    fall = -(high - low) * (high + low)
    return -expm1(fall) / (1 / _hazard(low) - exp(fall) / _hazard(high))


def _plain(low: tf.Tensor, high: tf.Tensor) -> tf.Tensor:
    densities = tf.exp(-tf.square(low)) - tf.exp(-tf.square(high))
    return densities / (tf.math.erf(high) - tf.math.erf(low))
