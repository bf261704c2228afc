"""Differences of nearly equal numbers, computed without the loss of their digits."""

import math
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfsafe._gradients import custom_gradient, known, unbroadcast
from tfsafe._limits import LIMITS
from tfsafe.ops.formulas import unchanged_values
from tfsafe.ops.formulas.unchanged_values import elementwise
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.activation import sigmoid, tanh
from tfsafe.ops.kernels.exponential import expm1
from tfsafe.ops.kernels.lengths import hypot
from tfsafe.ops.kernels.power import sqrt
from tfsafe.ops.kernels.zeros import (
    quotient_no_nan,
    square,
    times_upstream,
    times_where_nonzero,
    with_slope,
)

_Gradient = Callable[[tf.Tensor], tf.Tensor]
_Gradients = Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]

# With more numbers than this, the differences of all pairs are not materialized.
MOST_DIFFERENCES = 1 << 24


@precision.runs_in_float32
@with_slope(lambda x: elementwise(tf.sin)(x))
def one_minus_cos(x: tf.Tensor) -> tf.Tensor:
    """Computes `1 - cos(x)` as `2 sin(x / 2)^2`."""
    return 2 * tf.square(tf.sin(0.5 * x))


@precision.runs_in_float32
@with_slope(lambda x: -elementwise(tf.sin)(x))
def one_plus_cos(x: tf.Tensor) -> tf.Tensor:
    """Computes `1 + cos(x)` as `2 cos(x / 2)^2`."""
    return 2 * tf.square(tf.cos(0.5 * x))


@precision.runs_in_float32
@with_slope(lambda x: -elementwise(tf.cos)(x))
def one_minus_sin(x: tf.Tensor) -> tf.Tensor:
    """Computes `1 - sin(x)` as `cos(x)^2 / (1 + sin(x))` where the sine is positive."""
    sine = tf.sin(x)
    known = tf.maximum(sine, 0)
    return tf.where(sine > 0, tf.square(tf.cos(x)) / (1 + known), 1 - sine)


@precision.runs_in_float32
@custom_gradient
def sech_squared(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    """Computes `1 - tanh(x)^2` as `1 / cosh(x)^2`."""
    shrinking = tf.exp(-2 * tf.abs(x))
    value = 4 * shrinking / tf.square(1 + shrinking)

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        again = known(value, sech_squared, x)
        return times_where_nonzero(times_upstream(upstream, again), -2 * tanh(x))

    return value, vjp


@precision.runs_in_float32
def one_plus_tanh(x: tf.Tensor) -> tf.Tensor:
    """Computes `1 + tanh(x)` as `2 sigmoid(2 x)`."""
    return 2 * sigmoid(2 * x)


@precision.runs_in_float32
@with_slope(lambda x: elementwise(tf.sinh)(x))
def cosh_minus_one(x: tf.Tensor) -> tf.Tensor:
    """Computes `cosh(x) - 1` as `2 sinh(x / 2)^2`."""
    half = tf.sinh(0.5 * x)
    return 2 * half * half


@precision.runs_in_float32
@with_slope(lambda x: -sigmoid(-x))
def softplus_minus(x: tf.Tensor) -> tf.Tensor:
    """Computes `softplus(x) - x` as `softplus(-x)`, and NaN where x is infinite."""
    infinite = tf.constant(math.inf, x.dtype)
    return tf.where(tf.equal(x, infinite), x - x, tf.nn.softplus(-x))


@precision.runs_in_float32
@custom_gradient
def root_minus(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
    """Computes `sqrt(x^2 + y) - x`, by the conjugate where x is positive."""
    root = _root(x, y)
    vjp = _root_minus_vjp(root_minus, _root, root, tf.constant(0.5, x.dtype), x, y)
    return _by_conjugate(root, x, quotient_no_nan(y, root + x)), vjp


@precision.runs_in_float32
def root_minus_over(
    x: tf.Tensor, y: tf.Tensor, divisor: tf.Tensor, ratio: tf.Tensor
) -> tf.Tensor:
    """Computes `(sqrt(x^2 + y) - x) / divisor`, from the ratio of y and the divisor."""
    inside = tf.square(x) + y
    is_near = (x > 0) & (inside > 0) & tf.math.is_finite(inside)
    one = tf.ones([], x.dtype)
    kept, less, part = (
        tf.where(is_near, each, one)
        for each in (x, tf.where(is_near, y, one), tf.where(is_near, ratio, one))
    )
    near = part / (tf.sqrt(tf.square(kept) + less) + kept)
    far = unchanged_values.divide(
        root_minus(x, tf.where(is_near, tf.zeros_like(y), y)),
        tf.where(is_near, one, divisor),
    )
    return tf.where(is_near, near, far)


@precision.runs_in_float32
@custom_gradient
def hypot_minus(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
    """Computes `sqrt(x^2 + y^2) - x`, by the conjugate where x is positive."""
    root = hypot(x, y)
    vjp = _root_minus_vjp(hypot_minus, hypot, root, y, x, y)
    return _by_conjugate(root, x, y * quotient_no_nan(y, root + x)), vjp


@precision.runs_in_float32
def less_root(x: tf.Tensor, root: tf.Tensor, *rest: tf.Tensor) -> tf.Tensor:
    """Computes `x - root` of `root = sqrt(x^2 + y)`, y being the product of rest."""
    limits = LIMITS[x.dtype.name]
    is_near = (x > 0) & tf.math.is_finite(root)
    for each in rest:
        size = tf.abs(each)
        is_near &= (size >= limits.tiny / limits.eps) & tf.math.is_finite(size)
    kept = [tf.where(is_near, each, tf.ones([], x.dtype)) for each in (x, root, *rest)]
    near = -kept[2] / (kept[1] + kept[0])
    for each in kept[3:]:
        near *= each
    return tf.where(is_near, near, x - root)


def _by_conjugate(root: tf.Tensor, x: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
    return tf.where((x > 0) & tf.math.is_finite(root), value, root - x)


def _root(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    square_of_x = tf.square(x)
    # Where the square overflows, y is below its digits.
    overflows = tf.math.is_inf(square_of_x) & tf.math.is_finite(x + y)
    inside = tf.where(overflows, tf.ones_like(x), square_of_x) + y
    return tf.where(overflows, tf.abs(x), sqrt(inside))


def _root_minus_vjp(
    function: Callable[..., tf.Tensor],
    root_of: Callable[..., tf.Tensor],
    root: tf.Tensor,
    half_slope: tf.Tensor,
    x: tf.Tensor,
    y: tf.Tensor,
) -> _Gradients:
    """Returns the gradient of a root less x; it is 0 where the root is 0."""

    def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        length = known(root, root_of, x, y)
        in_x = -quotient_no_nan(function(x, y), length)
        in_x = tf.where(tf.math.is_inf(length), x / length - 1, in_x)
        in_y = quotient_no_nan(half_slope, length)
        return (
            unbroadcast(times_upstream(upstream, in_x), x),
            unbroadcast(times_upstream(upstream, in_y), y),
        )

    return vjp


@custom_gradient
def hypot1pm1(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    """Computes `sqrt(1 + x * x) - 1`, also where the square overflows."""
    is_finite = tf.math.is_finite(x)
    near = tf.where(is_finite, x, tf.zeros_like(x))
    length = hypot(near, tf.ones_like(x))

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        slope = tf.where(is_finite, near / length, tf.sign(x))
        return times_upstream(upstream, slope)

    return tf.where(is_finite, near * (near / (length + 1)), tf.abs(x)), vjp


@precision.runs_in_float32
@custom_gradient
def sqrt1pm1(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    """Computes `sqrt(1 + x) - 1` as `x / (sqrt(1 + x) + 1)`, with slope 0 at -1."""
    root = tf.sqrt(1 + x)

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        half = tf.constant(0.5, x.dtype)
        return times_upstream(
            upstream, quotient_no_nan(half, known(root, lambda x: sqrt(1 + x), x))
        )

    # Where x is infinite, so is the result.
    return tf.where(tf.math.is_inf(root), root, x / (root + 1)), vjp


@precision.runs_in_float32
def twice_less_square(x: tf.Tensor) -> tf.Tensor:
    """Computes `1 - (1 - x)^2` as `x (2 - x)`."""
    return x * (2 - x)


@precision.runs_in_float32
def twice_plus_square(x: tf.Tensor) -> tf.Tensor:
    """Computes `(1 + x)^2 - 1` as `x (2 + x)`."""
    return x * (2 + x)


@precision.runs_in_float32
@custom_gradient
def difference_of_squares(a: tf.Tensor, b: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
    """Computes `a^2 - b^2` as `(a - b) (a + b)`."""

    def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return (
            unbroadcast(times_where_nonzero(upstream, 2 * a), a),
            -unbroadcast(times_where_nonzero(upstream, 2 * b), b),
        )

    return (a - b) * (a + b), vjp


def squared_distances(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Computes the squared distance of each vector in `a` from each in `b`.

    The differences are formed where there are not too many of them. Otherwise it is
    `|a|^2 + |b|^2 - 2 a b` in float64: to the last digits of float32, unless the
    distance is below the rounding of the vectors themselves.

    Args:
      a: Floating tensor of shape `[..., m, d]`.
      b: Tensor of the same dtype, of shape `[..., n, d]`.

    Returns:
      Tensor of shape `[..., m, n]`.
    """
    size = count_differences(a, b)
    if (size is not None and size <= MOST_DIFFERENCES) or a.dtype == tf.float64:
        return precision.in_float32(_from_differences, a, b)
    return tf.cast(_from_products(a, b), a.dtype)


def count_differences(a: Any, b: Any) -> int | None:
    """Returns how many numbers the differences of all pairs are, None if unknown."""
    rows, columns = a.shape[:-1].num_elements(), b.shape[-2:].num_elements()
    return None if None in (rows, columns) else rows * columns


def _from_differences(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    difference = tf.expand_dims(a, -2) - tf.expand_dims(b, -3)
    return tf.reduce_sum(square(difference), -1)


def _from_products(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    wide_a = tf.cast(a, tf.float64)
    wide_b = wide_a if a is b else tf.cast(b, tf.float64)
    value = _gram_distances(wide_a, wide_b)
    if a is b:
        # A vector's distance from itself is not left to rounding.
        value = tf.linalg.set_diag(value, tf.zeros(tf.shape(a)[:-1], tf.float64))
    return value


@custom_gradient
def _gram_distances(a: tf.Tensor, b: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
    rows = tf.reduce_sum(tf.square(a), -1)[..., :, tf.newaxis]
    columns = tf.reduce_sum(tf.square(b), -1)[..., tf.newaxis, :]
    value = rows + columns - 2 * tf.matmul(a, b, transpose_b=True)

    def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        in_a = tf.reduce_sum(upstream, -1)[..., tf.newaxis] * a
        in_b = tf.reduce_sum(upstream, -2)[..., tf.newaxis] * b
        in_a -= tf.matmul(upstream, b)
        in_b -= tf.matmul(upstream, a, transpose_a=True)
        return unbroadcast(2 * in_a, a), unbroadcast(2 * in_b, b)

    negative = value < 0
    return tf.where(negative, tf.zeros_like(value), value), vjp


# Nearer to 1 a value has fewer digits than its difference from 1.
_NEAR = 0.5


def _is_near(x: tf.Tensor) -> tf.Tensor:
    return tf.abs(x - 1) < _NEAR


def _inside(condition: tf.Tensor, x: tf.Tensor, other: float = 0.0) -> tf.Tensor:
    return tf.where(condition, x, tf.constant(other, x.dtype))


@precision.runs_in_float32
def quotient_minus_one(
    quotient: tf.Tensor, difference: tf.Tensor, divisor: tf.Tensor
) -> tf.Tensor:
    """Computes `a / b - 1` from `a / b`, `a - b` and b; at 0 / 0, from its limit."""
    near = _is_near(quotient) & tf.not_equal(divisor, 0)
    made = _inside(near, difference) / _inside(near, divisor, 1)
    return tf.where(near, made, quotient - 1)


@precision.runs_in_float32
def product_minus_one(product: tf.Tensor, a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Computes `(1 + a) * (1 + b) - 1` from the product, a and b."""
    near = _is_near(product) & (tf.abs(a) < _NEAR) & (tf.abs(b) < _NEAR)
    a, b = _inside(near, a), _inside(near, b)
    return tf.where(near, a + b + a * b, product - 1)


@precision.runs_in_float32
def root_minus_one(root: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """Computes `sqrt(1 + x) - 1` from the root and x."""
    near = _is_near(root)
    return tf.where(near, _inside(near, x) / (1 + _inside(near, root, 1)), root - 1)


@precision.runs_in_float32
def sqrt_minus_one(x: tf.Tensor) -> tf.Tensor:
    """Computes `sqrt(x) - 1`."""
    return root_minus_one(sqrt(x), x - 1)


@precision.runs_in_float32
def inverse_root_minus_one(inverse: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """Computes `1 / sqrt(1 + x) - 1` from the inverse root and x."""
    near = _is_near(inverse)
    kept = _inside(near, inverse, 1)
    made = -_inside(near, x) * kept * kept / (1 + kept)
    return tf.where(near, made, inverse - 1)


@precision.runs_in_float32
def square_minus_one(square: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """Computes `(1 + x) ** 2 - 1` from the square and x."""
    near = _is_near(square) & (tf.abs(x) < _NEAR)
    x = _inside(near, x)
    return tf.where(near, x * (2 + x), square - 1)


@precision.runs_in_float32
def power_minus_one(power: tf.Tensor, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Computes `(1 + x) ** y - 1` from the power, x and y."""
    near = _is_near(power) & (tf.abs(x) < _NEAR)
    log = tf.math.log1p(_inside(near, x))
    return tf.where(near, expm1(_inside(near, y * tf.ones_like(log)) * log), power - 1)


@precision.runs_in_float32
def log_near_one(x: tf.Tensor, less_one: tf.Tensor, log: tf.Tensor) -> tf.Tensor:
    """Computes `log(x)` from x, `x - 1` and the written logarithm."""
    near = _is_near(x)
    return tf.where(near, unchanged_values.log1p(_inside(near, less_one)), log)


def log_abs_one_plus(x: tf.Tensor) -> tf.Tensor:
    """Computes `log(abs(1 + x))`."""
    is_above = x > -1
    none = tf.zeros_like(x)
    above = unchanged_values.log1p(tf.where(is_above, x, none))
    below = unchanged_values.log(tf.abs(1 + tf.where(is_above, none, x)))
    return tf.where(is_above, above, below)
