"""Continues a function to a point where its formula has no value or no digits."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfsafe.ops.formulas.unchanged_values import divide

NODES = 10
# The last coefficients of a smooth function, as a part of the largest.
SMALL = 1e-7
# How far the nodes are at least from the point, where they are on both sides.
_GAP = 0.3


@functools.cache
def nodes(one_sided: bool = False) -> np.ndarray:
    """Returns where between -1 and 1, or between 0 and 2, a function is computed."""
    if one_sided:
        return 1 + np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES)
    half = np.cos(np.pi * (2 * np.arange(NODES // 2) + 1) / NODES)
    squares = (1 + _GAP**2) / 2 + (1 - _GAP**2) / 2 * half
    return np.concatenate([-np.sqrt(squares), np.sqrt(squares[::-1])])


@functools.cache
def coefficients(one_sided: bool = False) -> np.ndarray:
    """Returns the matrix that makes Chebyshev coefficients of values at the nodes."""
    places = nodes(one_sided) - one_sided
    return np.linalg.inv(np.polynomial.chebyshev.chebvander(places, NODES - 1))


def polynomial(coefficients: Sequence[Any], place: Any) -> Any:
    """Computes a Chebyshev series between -1 and 1, by Clenshaw's recurrence."""
    b, after = 0.0 * place, 0.0 * place
    for each in range(NODES - 1, 0, -1):
        b, after = 2 * place * b - after + coefficients[each], b
    return place * b - after + coefficients[0]


def is_near(
    x: tf.Tensor, point: tf.Tensor, width: tf.Tensor, one_sided: bool
) -> tf.Tensor:
    """Returns where the polynomial around a point reaches; nowhere without a width."""
    shift = width if one_sided else tf.zeros_like(width)
    return (tf.abs(x - point - shift) <= width) & (width > 0)


def continued(
    around: Callable[[tf.Tensor], tf.Tensor],
    away: Callable[[tf.Tensor], tf.Tensor],
    x: tf.Tensor,
    point: tf.Tensor,
    width: tf.Tensor,
    near: tf.Tensor,
    order: int,
    one_sided: bool,
) -> tf.Tensor:
    """Computes a function, near a point by a polynomial through values around it.

    Where the function is not smooth around the point, `away` computes it.

    Args:
      around: An elementwise function of float64; called with another axis in front.
      away: The same function, for arguments that are not near the point.
      x: Its argument, in float64, with the rank of the result.
      point: Where the function has no value; any other where `x` is not near.
      width: How far from there the polynomial reaches.
      near: Where `is_near` of these.
      order: Order of the zero that the function has at the point.
      one_sided: Whether the function has values on one side only.

    Returns:
      The function of `x`, in float64.
    """
    shift = 1.0 if one_sided else 0.0
    places = tf.constant(nodes(one_sided), tf.float64)
    places = tf.reshape(places, [NODES] + [1] * x.shape.rank)
    offsets = places * width
    values = around(point + offsets)
    for _ in range(order):
        values = divide(values, offsets)
    step = tf.where(near, x - point, tf.zeros_like(x))
    place = step / width - shift
    series = tf.tensordot(tf.constant(coefficients(one_sided), tf.float64), values, 1)
    sizes = tf.abs(series)
    is_smooth = sizes[-1] + sizes[-2] <= SMALL * tf.reduce_max(sizes, 0)
    use = tf.logical_and(is_smooth, near)
    series = tf.where(use, series, tf.zeros_like(series))
    inside = polynomial(tf.unstack(series), tf.where(use, place, tf.zeros_like(place)))
    for _ in range(order):
        inside *= tf.where(use, step, tf.zeros_like(x))
    return tf.where(use, inside, away(tf.where(use, point + width, x)))
