"""Computes `(f(b + d) - f(b)) / d` through `d = 0`, where it is the slope of f at b.

Each function has a form without the difference, for points that are near each other;
the first two derivatives are right there too.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from tfsafe._limits import LIMITS
from tfsafe.ops.formulas.differences.function_differences import DIFFERENCES
from tfsafe.ops.formulas.limits import removable

_Function = Callable[..., tf.Tensor]
# Up to this distance the forms keep more digits than the difference.
_NEAR = 0.5
# Powers up to this one are a sum of products.
_MOST_FACTORS = 12


class DividedDifference(NamedTuple):
    """How to compute the divided difference of one function.

    Attributes:
      is_near: Of b, d and the order; returns where to use `near`.
      near: Of the same; returns the divided difference.
      neutral: A b at which `near` is finite with a distance of 0.
    """

    is_near: _Function
    near: _Function
    neutral: float = 0.0

    def at(
        self, where: tf.Tensor, b: tf.Tensor, d: tf.Tensor, order: tf.Tensor
    ) -> tf.Tensor:
        """Computes the divided difference where it is used, elsewhere anything."""
        inside = tf.where(where, b, tf.constant(self.neutral, b.dtype))
        step = tf.where(where, d, tf.zeros([], d.dtype))
        return self.near(inside, step, tf.where(where, order, tf.ones([], order.dtype)))


def _is_close(b: tf.Tensor, d: tf.Tensor, _: tf.Tensor) -> tf.Tensor:
    return (tf.abs(d) < _NEAR) & tf.math.is_finite(b)


def _is_close_below_overflow(b: tf.Tensor, d: tf.Tensor, order: tf.Tensor) -> tf.Tensor:
    return _is_close(b, d, order) & (b < math.log(LIMITS[b.dtype.name].max) - 1)


def _is_close_in_range(b: tf.Tensor, d: tf.Tensor, order: tf.Tensor) -> tf.Tensor:
    return _is_close_below_overflow(tf.abs(b), d, order)


def _is_ratio_near_one(b: tf.Tensor, d: tf.Tensor, _: tf.Tensor) -> tf.Tensor:
    limits = LIMITS[b.dtype.name]
    # The square of its inverse, in slopes, is in range.
    is_inside = (b > math.sqrt(limits.tiny)) & (b < math.sqrt(limits.max))
    return is_inside & (tf.abs(d) < 0.25 * b)


def _is_ratio_of_any_sign(b: tf.Tensor, d: tf.Tensor, order: tf.Tensor) -> tf.Tensor:
    sign = tf.sign(b)
    return _is_ratio_near_one(sign * b, sign * d, order)


def _is_power_near_one(b: tf.Tensor, d: tf.Tensor, order: tf.Tensor) -> tf.Tensor:
    return _is_ratio_near_one(b, d, order) & (tf.abs(order * d) < 2 * b)


def _is_angle_small(b: tf.Tensor, d: tf.Tensor, _: tf.Tensor) -> tf.Tensor:
    product = b * (b + d)
    is_small = tf.abs(d) < 0.25 * (1 + tf.abs(b))
    return is_small & (product > -_NEAR) & tf.math.is_finite(product)


def _is_short(b: tf.Tensor, d: tf.Tensor, _: tf.Tensor) -> tf.Tensor:
    # The next term is below the eighth power of this.
    longest = 2 * LIMITS[d.dtype.name].eps ** 0.125
    size = tf.maximum(tf.ones([], b.dtype), tf.abs(b))
    return (tf.abs(d) * size < longest) & (size < 30)


def _log(b: tf.Tensor, d: tf.Tensor, _: tf.Tensor) -> tf.Tensor:
    return removable.log1p_over_x(d / b) / b


def _atan(b: tf.Tensor, d: tf.Tensor, _: tf.Tensor) -> tf.Tensor:
    below = 1 + b * (b + d)
    return removable.atan_over_x(d / below) / below


def _sigmoid(b: tf.Tensor, d: tf.Tensor, _: tf.Tensor) -> tf.Tensor:
    return tf.sigmoid(b + d) * tf.sigmoid(-b) * removable.expm1_over_x(-d)


def _softplus(b: tf.Tensor, d: tf.Tensor, _: tf.Tensor) -> tf.Tensor:
    probability = tf.sigmoid(b)
    inside = probability * tf.math.expm1(d)
    return removable.log1p_over_x(inside) * probability * removable.expm1_over_x(d)


def _erf(b: tf.Tensor, d: tf.Tensor, _: tf.Tensor) -> tf.Tensor:
    # The first terms of the integral about the middle, by Hermite polynomials.
    s, step = tf.square(b + 0.5 * d), tf.square(d)
    second = (2 * s - 1) / 12
    fourth = (4 * s * (s - 3) + 3) / 480
    sixth = (8 * s * (s * (s - 7.5) + 11.25) - 15) / 40320
    terms = 1 + step * (second + step * (fourth + step * sixth))
    return (2 / math.sqrt(math.pi)) * tf.exp(-s) * terms


def _power(b: tf.Tensor, d: tf.Tensor, order: tf.Tensor) -> tf.Tensor:
    exponent = order * tf.math.log1p(d / b)
    slope = order * tf.pow(b, order - 1)
    return slope * removable.log1p_over_x(d / b) * removable.expm1_over_x(exponent)


def whole_power(order: int) -> DividedDifference | None:
    """Returns the divided difference of `x ** order`; None for large orders."""
    size = abs(order)
    if not 2 <= size <= _MOST_FACTORS:
        return None

    def near(b: tf.Tensor, d: tf.Tensor, _: tf.Tensor) -> tf.Tensor:
        a, whole, power = b + d, tf.ones_like(b + d), tf.ones_like(b)
        for _ in range(size - 1):
            power *= b
            whole = whole * a + power
        return whole if order == size else -whole / (tf.pow(a, size) * power * b)

    if order < 0:
        return DividedDifference(_is_ratio_of_any_sign, near, 1.0)
    return DividedDifference(
        lambda b, d, _: tf.abs(d) < _NEAR * (_NEAR + tf.abs(b)), near
    )


def log_of_base(x: tf.Tensor) -> tf.Tensor:
    """Returns `log(x)` where x is above 0, NaN with gradient 0 elsewhere."""
    is_inside = x > 0
    log = tf.math.log(tf.where(is_inside, x, tf.ones_like(x)))
    return tf.where(is_inside, log, tf.constant(math.nan, x.dtype))


def log_of_ratio(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Returns `log(x) - log(y)`, also near each other; NaN where one is not above 0."""
    of_x, of_y = log_of_base(x), log_of_base(y)
    return DIFFERENCES["Log"].of_points(y, x - y, of_x, of_y)


POWER = DividedDifference(_is_power_near_one, _power, 1.0)
_EXP = DividedDifference(
    _is_close_below_overflow, lambda b, d, _: tf.exp(b) * removable.expm1_over_x(d)
)


def of_power(order: float | None) -> DividedDifference:
    """Returns the divided difference of `x ** order`, None being no fixed number."""
    is_whole = order is not None and order == int(order)
    return (whole_power(int(order)) if is_whole and order else None) or POWER


DIVIDED_DIFFERENCES = {
    "Atan": DividedDifference(_is_angle_small, _atan),
    "Cos": DividedDifference(
        _is_close, lambda b, d, _: -tf.sin(b + d / 2) * removable.sin_over_x(d / 2)
    ),
    "Cosh": DividedDifference(
        _is_close_in_range,
        lambda b, d, _: tf.sinh(b + d / 2) * removable.sinh_over_x(d / 2),
    ),
    "Erf": DividedDifference(_is_short, _erf),
    "Exp": _EXP,
    "Expm1": _EXP,
    "Log": DividedDifference(_is_ratio_near_one, _log, 1.0),
    "Log1p": DividedDifference(
        lambda b, d, order: _is_ratio_near_one(1 + b, d, order),
        lambda b, d, order: _log(1 + b, d, order),
    ),
    "Reciprocal": DividedDifference(
        _is_ratio_of_any_sign, lambda b, d, _: -1 / (b + d) / b, 1.0
    ),
    "Sigmoid": DividedDifference(_is_close, _sigmoid),
    "Sin": DividedDifference(
        _is_close, lambda b, d, _: tf.cos(b + d / 2) * removable.sin_over_x(d / 2)
    ),
    "Sinh": DividedDifference(
        _is_close_in_range,
        lambda b, d, _: tf.cosh(b + d / 2) * removable.sinh_over_x(d / 2),
    ),
    "Softplus": DividedDifference(
        lambda b, d, _: (tf.abs(d) < 0.25) & tf.math.is_finite(b), _softplus
    ),
    "Sqrt": DividedDifference(
        _is_ratio_near_one, lambda b, d, _: 1 / (tf.sqrt(b + d) + tf.sqrt(b)), 1.0
    ),
    "Square": DividedDifference(
        lambda b, d, _: tf.abs(d) < _NEAR * (_NEAR + tf.abs(b)),
        lambda b, d, _: 2 * b + d,
    ),
    "Tan": DividedDifference(
        _is_close,
        lambda b, d, _: removable.sin_over_x(d) / (tf.cos(b) * tf.cos(b + d)),
    ),
    "Tanh": DividedDifference(
        _is_close, lambda b, d, order: 4 * _sigmoid(2 * b, 2 * d, order)
    ),
}
