"""Divided differences of a function, right at equal and at neighbouring points."""

import math
from collections.abc import Callable

import tensorflow as tf

from tfsafe._limits import LIMITS

Function = Callable[[tf.Tensor], tf.Tensor]

# Gauss' rule with 5 points on [0, 1], and a rule of degree 3 on three of them, which
# is the error estimate of the first one.
_OUTER = math.sqrt(5 + 2 * math.sqrt(10 / 7)) / 6
_INNER = math.sqrt(5 - 2 * math.sqrt(10 / 7)) / 6
_HEAVY, _LIGHT = ((322 + sign * 13 * math.sqrt(70)) / 1800 for sign in (1, -1))
_LOW = 1 / (24 * _OUTER**2)
_LINE = (
    (0.5 - _OUTER, _LIGHT, _LOW),
    (0.5 - _INNER, _HEAVY, 0.0),
    (0.5, 128 / 450, 1 - 2 * _LOW),
    (0.5 + _INNER, _HEAVY, 0.0),
    (0.5 + _OUTER, _LIGHT, _LOW),
)

# Radon's rule with 7 points on a triangle, and one of degree 2 on four of them.
_NEAR, _FAR = ((6 - sign * math.sqrt(15)) / 21 for sign in (1, -1))
_NEAR_WEIGHT, _FAR_WEIGHT = ((155 - sign * math.sqrt(15)) / 1200 for sign in (1, -1))
_LOW_NEAR = 1 / 18 / (2 * _NEAR**2 + (1 - 2 * _NEAR) ** 2 - 1 / 3)
_TRIANGLE = (
    (1 / 3, 1 / 3, 9 / 40, 1 - 3 * _LOW_NEAR),
    (_NEAR, _NEAR, _NEAR_WEIGHT, _LOW_NEAR),
    (_NEAR, 1 - 2 * _NEAR, _NEAR_WEIGHT, _LOW_NEAR),
    (1 - 2 * _NEAR, _NEAR, _NEAR_WEIGHT, _LOW_NEAR),
    (_FAR, _FAR, _FAR_WEIGHT, 0.0),
    (_FAR, 1 - 2 * _FAR, _FAR_WEIGHT, 0.0),
    (1 - 2 * _FAR, _FAR, _FAR_WEIGHT, 0.0),
)


def first(function: Function, w: tf.Tensor) -> tf.Tensor:
    """Returns `(f(w_i) - f(w_j)) / (w_i - w_j)`, and the slope at equal points.

    Neighbouring points take the mean of the slopes between them where it has more
    digits than the quotient. Where the slope is infinite, equal points get 0.

    Args:
      function: Elementwise and differentiable.
      w: Points of shape `[batch, n]`.

    Returns:
      Tensor of shape `[batch, n, n]`.
    """
    values = function(w)
    left, right = w[:, :, tf.newaxis], w[:, tf.newaxis]
    gap = left - right
    highest = tf.maximum(tf.abs(left), tf.abs(right))
    is_near = tf.abs(gap) <= highest / 8
    mean = low = tf.zeros_like(gap)
    for place, weight, low_weight in _LINE:
        # Far points must not be looked at between: there may be a pole.
        node = tf.where(is_near, right + place * gap, left)
        slope = _derivative(function, node)
        mean, low = mean + weight * slope, low + low_weight * slope
    sizes = tf.abs(values)
    noise = LIMITS[w.dtype.name].eps * (sizes[:, :, tf.newaxis] + sizes[:, tf.newaxis])
    is_better = tf.logical_and(is_near, tf.abs(mean - low) * tf.abs(gap) <= noise)
    rise = values[:, :, tf.newaxis] - values[:, tf.newaxis]
    return tf.where(is_better, mean, rise / _never_0(gap))


def second(function: Function, w: tf.Tensor, table: tf.Tensor) -> tf.Tensor:
    """Returns the second divided differences of all triples of points.

    Args:
      function: Elementwise and twice differentiable.
      w: Points of shape `[batch, n]`.
      table: `first(function, w)`.

    Returns:
      Tensor of shape `[batch, n, n, n]`, the same for every order of three points.
    """
    i, j, k = w[:, :, None, None], w[:, None, :, None], w[:, None, None, :]
    rise, gap, sizes = _widest(i, j, k, table)
    highest = tf.maximum(tf.maximum(tf.abs(i), tf.abs(j)), tf.abs(k))
    is_near = tf.abs(gap) <= highest / 8
    mean = low = tf.zeros_like(gap)
    for of_i, of_j, weight, low_weight in _TRIANGLE:
        node = k + of_i * (i - k) + of_j * (j - k)
        node = tf.where(is_near, node, tf.broadcast_to(i, tf.shape(node)))
        curvature = _derivative(lambda x: _derivative(function, x), node) / 2
        mean, low = mean + weight * curvature, low + low_weight * curvature
    noise = LIMITS[w.dtype.name].eps * sizes
    is_better = tf.logical_and(is_near, tf.abs(mean - low) * tf.abs(gap) <= noise)
    return tf.where(is_better, mean, rise / _never_0(gap))


def _widest(
    i: tf.Tensor, j: tf.Tensor, k: tf.Tensor, table: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns rise and run of the quotient over the two points furthest apart."""
    ij, jk, ik = table[:, :, :, None], table[:, None], table[:, :, None]
    by_ij, by_jk, by_ik = tf.abs(i - j), tf.abs(j - k), tf.abs(i - k)
    is_ij = tf.logical_and(by_ij >= by_jk, by_ij >= by_ik)
    is_jk = by_jk >= by_ik
    gap = tf.where(is_ij, i - j, tf.where(is_jk, j - k, i - k))
    rise = tf.where(is_ij, ik - jk, tf.where(is_jk, ij - ik, ij - jk))
    return rise, gap, tf.abs(ij) + tf.abs(jk) + tf.abs(ik)


def _derivative(function: Function, x: tf.Tensor) -> tf.Tensor:
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = function(x)
    return tape.gradient(value, x, unconnected_gradients="zero")


def _never_0(gap: tf.Tensor) -> tf.Tensor:
    return tf.where(tf.equal(gap, 0), tf.ones_like(gap), gap)
