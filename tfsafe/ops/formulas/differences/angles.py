"""Computes angles whose cosine rounds to 1 or beyond it."""

import math
from collections.abc import Callable

import tensorflow as tf

from tfsafe import ops
from tfsafe._gradients import custom_gradient
from tfsafe._limits import LIMITS
from tfsafe.ops.formulas.limits import removable
from tfsafe.ops.formulas.limits.quotients import near_or_far
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.zeros import quotient_no_nan, times_upstream

# Vectors whose squared length differs from 1 by more are not unit vectors.
_ROUNDINGS = 16
_Axes = tuple[int, ...] | None
_Function = Callable[[tf.Tensor], tf.Tensor]


def between_units(a: tf.Tensor, b: tf.Tensor, axes: _Axes, keepdims: bool) -> tf.Tensor:
    """Computes `acos(sum(a * b))` of unit vectors, also for nearly equal ones."""

    def half_angle(difference: tf.Tensor, total: tf.Tensor) -> tf.Tensor:
        return 2 * ops.atan2(difference, total)

    return _of_units(half_angle, within_domain(ops.acos), a, b, axes, keepdims)


def between(a: tf.Tensor, b: tf.Tensor, axes: _Axes, keepdims: bool) -> tf.Tensor:
    """Computes `acos(sum(a * b))`, its value as `between_units` does.

    The gradient is that of the inverse cosine: nothing here keeps the lengths at 1.

    Returns:
      The angle, of the shape of the sum.
    """

    def compute(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
        product = tf.reduce_sum(a * b, axes, keepdims=keepdims)
        angle = between_units(a, b, axes, keepdims)
        return _with_cosine(product, tf.stop_gradient(angle))

    return precision.in_float32(compute, a, b)


def facing(a: tf.Tensor, b: tf.Tensor, axes: _Axes) -> tf.Tensor:
    """Returns b or -b, whichever is nearer to a: the lines along them are the same."""
    product = tf.reduce_sum(a * b, axes, keepdims=True)
    return tf.where(product < 0, -b, b)


@custom_gradient
def _with_cosine(
    cosine: tf.Tensor, angle: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]]:
    def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        inverse = quotient_no_nan(tf.ones_like(angle), _sine_of(cosine, angle))
        return times_upstream(upstream, -inverse), tf.zeros_like(angle)

    return tf.identity(angle), vjp


@custom_gradient
def _sine_of(
    cosine: tf.Tensor, angle: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]]:
    sine = tf.sin(angle)

    def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        slope = quotient_no_nan(-cosine, sine)
        return times_upstream(upstream, slope), tf.zeros_like(angle)

    return sine, vjp


def sine_squared(a: tf.Tensor, b: tf.Tensor, axes: _Axes, keepdims: bool) -> tf.Tensor:
    """Computes `1 - sum(a * b)^2` of unit vectors; it is never negative for them."""

    def from_lengths(difference: tf.Tensor, total: tf.Tensor) -> tf.Tensor:
        return tf.square(0.5 * difference * total)

    def from_product(product: tf.Tensor) -> tf.Tensor:
        return (1 - product) * (1 + product)

    return _of_units(from_lengths, from_product, a, b, axes, keepdims)


def one_minus_cosine(
    a: tf.Tensor, b: tf.Tensor, axes: _Axes, keepdims: bool
) -> tf.Tensor:
    """Computes `1 - sum(a * b)` of unit vectors; it is never negative for them."""

    def from_lengths(difference: tf.Tensor, total: tf.Tensor) -> tf.Tensor:
        del total
        return 0.5 * tf.square(difference)

    return _of_units(from_lengths, lambda product: 1 - product, a, b, axes, keepdims)


def _of_units(
    of_lengths: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    of_product: _Function,
    a: tf.Tensor,
    b: tf.Tensor,
    axes: _Axes,
    keepdims: bool,
) -> tf.Tensor:
    def length(x: tf.Tensor) -> tf.Tensor:
        return ops.norm(x, axis=axes, keepdims=keepdims)

    # Of other vectors, such as zero vectors, the product is taken.
    def is_unit(x: tf.Tensor) -> tf.Tensor:
        square = tf.reduce_sum(tf.square(x), axes, keepdims=keepdims)
        return tf.abs(square - 1) <= slack

    # The vectors are as exact as their own dtype.
    slack = _ROUNDINGS * LIMITS[a.dtype.name].eps

    def function(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
        are_units = is_unit(a) & is_unit(b)
        product = tf.reduce_sum(a * b, axes, keepdims=keepdims)
        other = of_product(tf.where(are_units, tf.zeros_like(product), product))
        return tf.where(are_units, of_lengths(length(a - b), length(a + b)), other)

    return precision.in_float32(function, a, b)


def within_domain(function: _Function) -> _Function:
    """Returns `function` for arguments from -1 to 1 that round beyond them."""

    def of_rounded(x: tf.Tensor) -> tf.Tensor:
        slack = _ROUNDINGS * LIMITS[x.dtype.name].eps
        size = tf.abs(x)
        is_rounded = (size > 1) & (size <= 1 + slack)
        return function(tf.where(is_rounded, tf.sign(x), x))

    return of_rounded


def above(function: _Function, lowest: float, scale: float) -> _Function:
    """Returns `function` for arguments that round below the lowest of its domain.

    Args:
      function: The function.
      lowest: The end of its domain.
      scale: The size of the numbers that were added to make the argument.
    """

    def of_rounded(x: tf.Tensor) -> tf.Tensor:
        slack = _ROUNDINGS * LIMITS[x.dtype.name].eps * scale
        is_rounded = (x < lowest) & (x >= lowest - slack)
        return function(tf.where(is_rounded, tf.cast(lowest, x.dtype), x))

    return of_rounded


@precision.runs_in_float32
def acos_of_one_minus(x: tf.Tensor) -> tf.Tensor:
    """Computes `acos(1 - x)`, with slope 0 at 0; 0 where x rounds to slightly less."""
    known = above(tf.identity, 0.0, 1.0)(x)
    return near_or_far(
        (known >= 0) & (known < 0.5),
        lambda x: 2 * tf.asin(ops.sqrt(0.5 * x)),
        lambda x: within_domain(ops.acos)(1 - x),
        known,
    )


def acos_of_fraction(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Computes `acos(x / (x + y))`."""
    return acos_of_one_minus(ops.xdivy(y, x + y))


@precision.runs_in_float32
def atanh_of_one_minus(x: tf.Tensor) -> tf.Tensor:
    """Computes `atanh(1 - x)`, by logarithms where x is near 0 or near 2."""
    return near_or_far(
        tf.abs(x - 1) <= 0.5,
        lambda x: ops.atanh(1 - x),
        lambda x: 0.5 * (ops.log(2 - x) - ops.log(x)),
        x,
    )


def atanh_of_tangents(x: tf.Tensor, axes: _Axes, keepdims: bool) -> tf.Tensor:
    """Computes `atanh(product of tanh(x))`, whose tangents may all round to 1.

    With `s = -log(product)`, a sum of `2 * atanh(exp(-2 * abs(x)))`, it is
    `-log(tanh(s / 2)) / 2` (R. G. Gallager, Low-Density Parity-Check Codes, MIT Press,
    1963, chapter 4); its logarithms are added where the product is near 1.

    Returns:
      The inverse of the product along the axes.
    """

    def near(x: tf.Tensor) -> tf.Tensor:
        return ops.atanh(tf.reduce_prod(ops.tanh(x), axes, keepdims=True))

    def far(x: tf.Tensor) -> tf.Tensor:
        size = tf.abs(x)
        halves = ops.log(removable.atanh_over_x(tf.exp(-2 * size))) - 2 * size
        log_half = ops.logsumexp(halves, axis=axes, keepdims=True)
        log_tanh = log_half + ops.log(removable.tanh_over_x(tf.exp(log_half)))
        return -0.5 * tf.reduce_prod(tf.sign(x), axes, keepdims=True) * log_tanh

    product = tf.reduce_prod(tf.tanh(x), axes, keepdims=True)
    angle = near_or_far(tf.abs(product) < 0.5, near, far, x)
    return angle if keepdims else tf.squeeze(angle, axes)


def acosh1p(x: tf.Tensor) -> tf.Tensor:
    """Computes `acosh(1 + x)`, with slope 0 at 0."""
    return precision.in_float32(lambda x: 2 * tf.asinh(ops.sqrt(0.5 * x)), x)


def acosh_of_sum(total: tf.Tensor, size: tf.Tensor, eps: float) -> tf.Tensor:
    """Computes `acosh(total)` in float64; 0 where the total rounds to less than 1.

    Args:
      total: A sum of terms.
      size: The sum of their magnitudes.
      eps: How exact the terms are.

    Returns:
      The inverse, with slope 0 at 1.
    """
    excess = total - 1
    slack = _ROUNDINGS * eps * tf.stop_gradient(tf.maximum(size, 1))
    is_rounded = (excess < 0) & (excess >= -slack)
    return acosh1p(tf.where(is_rounded, tf.zeros_like(excess), excess))


@precision.runs_in_float32
def great_circle(a: tf.Tensor, b: tf.Tensor, longitude: tf.Tensor) -> tf.Tensor:
    """Computes `acos(sin(a) sin(b) + cos(a) cos(b) cos(longitude))`."""
    across = tf.cos(a) * tf.cos(b)
    near = across * tf.square(tf.sin(0.5 * longitude))
    far = across * tf.square(tf.cos(0.5 * longitude))
    half = tf.square(tf.sin(0.5 * (a - b))) + near
    # The square of the cosine of half the angle; both are sums, without a difference.
    other = tf.square(tf.sin(0.5 * (a + b))) + far
    largest = tf.constant(math.pi, a.dtype)
    return tf.minimum(2 * ops.atan2(ops.sqrt(half), ops.sqrt(other)), largest)


def mercator(x: tf.Tensor) -> tf.Tensor:
    """Computes `log(tan(pi / 4 + x))`."""

    def compute(x: tf.Tensor) -> tf.Tensor:
        # Beyond a quarter of a turn the tangent by hand is negative.
        is_inside = tf.abs(x) <= math.pi / 4
        near = tf.where(is_inside, x, tf.zeros_like(x))
        far = tf.where(is_inside, tf.zeros_like(x), x)
        plain = tf.math.log(tf.tan(math.pi / 4 + far))
        return tf.where(is_inside, tf.asinh(tf.tan(2 * near)), plain)

    return precision.in_float32(compute, x)


@precision.runs_in_float32
def atan_less_eighth(x: tf.Tensor, less_one: tf.Tensor) -> tf.Tensor:
    """Computes `atan(x) - pi / 4` from x and `x - 1`."""
    return near_or_far(
        (x > 0.1) & (x < 10),
        lambda _, less_one: tf.atan(less_one / (less_one + 2)),
        lambda x, _: tf.atan(x) - math.pi / 4,
        x,
        less_one,
    )
