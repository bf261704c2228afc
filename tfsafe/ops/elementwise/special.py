"""Special functions of statistics, computed in float64 and rounded once."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe._gradients import (
    custom_gradient,
    custom_gradient_in,
    known,
    nan_where,
)
from tfsafe.ops.kernels.exponential import exp
from tfsafe.ops.kernels.zeros import reciprocal, times_upstream, times_where_nonzero

_Gradient = Callable[[tf.Tensor], tf.Tensor]
_Pair = tuple[tf.Tensor, tf.Tensor]

# Of Stirling's series: B(2k) / (2k (2k - 1)) for the powers 1, 3, 5, ... of 1 / z.
_STIRLING = [1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156]
# The series has all digits of float64 from here on.
_SHIFT = 10
# From the first number on the asymptotic series of erfc, with so many terms, has all
# digits: those of float64, and those of narrower types.
_FAR, _FAR_NARROW = (8.0, 16), (24.0, 6)


def _in_float64(function: Callable[..., tf.Tensor], *args: tf.Tensor) -> tf.Tensor:
    # The casts are outside of the function's own gradient, as in `in_float32`.
    wide = (tf.cast(arg, tf.float64) for arg in args)
    return tf.cast(function(*wide), args[0].dtype)


def erfinv(x: Any, *, name: str = "erfinv") -> tf.Tensor:
    """Computes the inverse of the error function elementwise.

    `tf.math.erfinv` takes a detour through `(x + 1) / 2`, which costs the digits of a
    small `x` (8.5e-7 instead of 8.9e-7 for 1e-6) and of an `x` near 1.

    Args:
      x: Floating `Tensor` of any shape, from -1 to 1.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `x`.

    Raises:
      TypeError: If `x` does not have a floating dtype.

    Numerics:
      error     <= 1 ulp; float64 <= 10 ulp, its slope <= 100 ulp near -1 and 1
      x = 1     value inf, slope 0 (a bounded choice: the true slope is infinite)
      x = -1    value -inf, slope 0 (the same choice)
      x > 1     value NaN, slope NaN
      x = NaN   value NaN, slope NaN
      A zero incoming gradient gives a zero gradient, at every x.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> print(tfsafe.ops.erfinv(tf.constant([1e-6, 0.5, 1.0])).numpy())
      [8.8623e-07 4.7694e-01        inf]
    """
    with tf.name_scope(name):
        x = _args.float_tensor(x, "x")
        start = tf.float64 if x.dtype == tf.float64 else tf.float32
        return _in_float64(lambda x: _erfinv(x, start), x)


@custom_gradient_in(1)
def _erfinv(x: tf.Tensor, start: tf.DType) -> tuple[tf.Tensor, _Gradient]:
    value = tf.sign(x) * _erfinv_value(tf.abs(x), start)

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        y = known(value, lambda x: _erfinv(x, start), x)
        density = 2 / math.sqrt(math.pi) * exp(-times_where_nonzero(y, y))
        return times_upstream(upstream, reciprocal(density))

    return value, vjp


def _erfinv_value(x: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Returns the inverse of the error function for `x >= 0`.

    Args:
      x: Tensor of float64.
      dtype: Where the step starts from. From float32 it reaches all digits of float32,
        for a fifth of the time.
    """
    start = tf.math.ndtri(tf.cast((1 - x) * 0.5, dtype))
    start = tf.cast(start, x.dtype) * -math.sqrt(0.5)
    is_inside = x < 1
    inside = tf.where(is_inside, start, tf.zeros_like(x))
    # One step of Newton's method, by the complement where `1 - x` is exact.
    excess = (1 - x) - tf.math.erfc(inside)
    if dtype == tf.float64:
        excess = tf.where(x < 0.5, tf.math.erf(inside) - x, excess)
    inverse_slope = tf.exp(tf.square(inside)) * (math.sqrt(math.pi) / 2)
    value = tf.where(is_inside, inside - excess * inverse_slope, start)
    # Near 0, where all of this cancels, two terms of the power series are the whole.
    series = x * (math.sqrt(math.pi) / 2) * (1 + math.pi / 12 * tf.square(x))
    return tf.where(x < 1e-4, series, value)


def log_erfc(x: Any, *, name: str = "log_erfc") -> tf.Tensor:
    """Computes the logarithm of the complementary error function elementwise.

    Use it for the log-probability of a tail of the normal distribution, which is
    `log_erfc(z / sqrt(2)) - log(2)` beyond `z`. The plain formula is `-inf` from 10.1
    on in float32.

    Args:
      x: Floating `Tensor` of any shape.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the shape and dtype of `x`, at most log(2).

    Raises:
      TypeError: If `x` does not have a floating dtype.

    Numerics:
      error     <= 1 ulp; float64 <= 10 ulp, its slope under XLA:CPU <= 40 ulp
      x = inf   value -inf, slope -inf
      x = -inf  value log(2), slope 0
      x = NaN   value NaN, slope NaN
      A zero incoming gradient gives a zero gradient, at every x.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> print(tfsafe.ops.log_erfc(tf.constant([1e-10, 1.0, 10.5])).numpy())
      [-1.1284e-10 -1.8496e+00 -1.1318e+02]

    References:
      Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.23.
    """
    with tf.name_scope(name):
        x = _args.float_tensor(x, "x")
        is_wide = x.dtype == tf.float64
        return _in_float64(lambda x: _log_erfc(x, is_wide), x)


@custom_gradient_in(1)
def _log_erfc(x: tf.Tensor, is_wide: bool) -> tuple[tf.Tensor, _Gradient]:
    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        return -times_upstream(upstream, _hazard(x, is_wide))

    limit, terms = _FAR if is_wide else _FAR_NARROW
    is_far, distant, bounded = _parts(x, limit)
    # Over `exp(-x^2)` in the distance.
    far = (1 - _tail(distant, terms)) / (distant * math.sqrt(math.pi))
    value = tf.math.log(tf.where(is_far, far, tf.math.erfc(bounded)))
    value = tf.where(is_far, value - tf.square(x), value)
    if is_wide:
        near = tf.math.log1p(-tf.math.erf(tf.minimum(bounded, 1.0)))
        return tf.where(x < 0.5, near, value), vjp
    # Two terms of the power series are the whole for narrower types.
    near = -2 / math.sqrt(math.pi) * x - 2 / math.pi * tf.square(x)
    return tf.where(tf.abs(x) < 1e-4, near, value), vjp


@custom_gradient_in(1)
def _hazard(x: tf.Tensor, is_wide: bool) -> tuple[tf.Tensor, _Gradient]:
    """Returns `-d/dx log(erfc(x))`, the density of a tail over its probability."""
    limit, terms = _FAR if is_wide else _FAR_NARROW
    is_far, distant, bounded = _parts(x, limit)
    # The square in two parts, so that the exponential sees no rounding of it. In
    # float64 a narrower number has no second part.
    high = tf.cast(tf.cast(bounded, tf.float32), tf.float64) if is_wide else bounded
    density = 2 / math.sqrt(math.pi) * tf.exp(-tf.square(high))
    if is_wide:
        density *= tf.exp(-(bounded - high) * (bounded + high))
    near = density / tf.math.erfc(bounded)
    far = 2 * distant / (1 - _tail(distant, terms))

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        # The hazard times the hazard less 2x, which cancels in the distance.
        scale = 1 - _tail(distant, terms)
        distant_slope = 2 * _series(distant, terms) / tf.square(scale)
        hazard = known(near, lambda x: _hazard(x, is_wide), bounded)
        return times_upstream(
            upstream,
            tf.where(
                is_far, distant_slope, times_where_nonzero(hazard, hazard - 2 * bounded)
            ),
        )

    return tf.where(is_far, far, near), vjp


def _parts(x: tf.Tensor, limit: float) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns where `x` is far out, and `x` with replacements where it is not or is."""
    is_far = x > limit
    distant = tf.where(is_far, x, tf.constant(limit, x.dtype))
    # Below the lower bound the density is 0, and `erfc` is 2.
    bounded = tf.where(x < -27, tf.constant(-27.0, x.dtype), x)
    return is_far, distant, tf.where(is_far, tf.zeros_like(x), bounded)


def _tail(x: tf.Tensor, terms: int) -> tf.Tensor:
    """Returns `1 - sqrt(pi) * x * exp(x^2) * erfc(x)` for a large `x`."""
    return 0.5 * tf.square(1 / x) * _series(x, terms)


def _series(x: tf.Tensor, terms: int) -> tf.Tensor:
    """Returns the tail times `2 x^2`."""
    z = 0.5 * tf.square(1 / x)
    coefficients = [1.0]
    for k in range(1, terms):
        coefficients.append(-(2 * k + 1) * coefficients[-1])
    value = coefficients.pop() + tf.zeros_like(x)
    for coefficient in reversed(coefficients):
        value = coefficient + z * value
    return value


def log_pochhammer(x: Any, y: Any, *, name: str = "log_pochhammer") -> tf.Tensor:
    """Computes `lgamma(x + y) - lgamma(x)` elementwise, for `x > 0` and `x + y > 0`.

    This is the logarithm of the rising factorial, x (x + 1) ... (x + y - 1) for a whole
    `y`. Use it for the likelihoods of the negative binomial, beta and Dirichlet
    distributions. The plain difference loses every digit where `x` is large: 0 instead
    of 55.26 for x = 1e8 and y = 3 in float32.

    Args:
      x: Floating `Tensor`.
      y: Floating `Tensor` of the dtype of `x`, of a shape that broadcasts with it.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the dtype of `x` and the broadcast shape.

    Raises:
      TypeError: If `x` or `y` is not floating, or if their dtypes differ.
      ValueError: If the shapes do not broadcast.

    Numerics:
      error            <= 1 ulp; float64 <= 60 ulp; more where the value or a slope
                       crosses 0
      x > 0, y = 0     value 0, slopes 0 and digamma(x)
      x = 0, y > 0     value -inf, slopes 0 (a bounded choice) and digamma(y)
      x > 0, y = -x    value inf, slopes 0 (a bounded choice: they are infinite)
      x < 0, y > -x    value NaN, slopes NaN and digamma(x + y)
      x > 0, y < -x    value NaN, slopes NaN
      x = NaN, y > 0   value NaN, slopes NaN
      A zero incoming gradient gives zero gradients, at every x and y.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> print(tfsafe.ops.log_pochhammer(tf.constant(1e8), 3.0).numpy())
      55.262043

    References:
      Abramowitz and Stegun, Handbook of Mathematical Functions, 6.1.16 and 6.1.40.
    """
    with tf.name_scope(name):
        x, y = _args.float_tensors(x=x, y=y)
        _args.check_broadcast(x=x, y=y)
        shape = tf.broadcast_dynamic_shape(tf.shape(x), tf.shape(y))
        x, y = tf.broadcast_to(x, shape), tf.broadcast_to(y, shape)
        return _in_float64(_log_pochhammer, x, y)


@custom_gradient
def _log_pochhammer(
    x: tf.Tensor, y: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], _Pair]]:
    def vjp(upstream: tf.Tensor) -> _Pair:
        in_x = times_upstream(upstream, _digamma_difference(x, y))
        in_y = times_upstream(upstream, _digamma(x + y))
        return in_x, in_y

    # From the smaller of the two where they are far apart: a rising factorial.
    is_falling = -y > 0.5 * x
    value = _rising(tf.where(is_falling, x + y, x), tf.where(is_falling, -y, y))
    value = tf.where(is_falling, -value, value)
    return value + nan_where(_is_outside(x, y), x.dtype), vjp


def _rising(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Returns `lgamma(x + y) - lgamma(x)`, `-y` being less than x by far."""
    # Stirling's series beyond the shift, and the recurrence down to x.
    z = x + _SHIFT
    value = (z - 0.5) * tf.math.log1p(y / z) + y * (tf.math.log(z + y) - 1)
    for power, difference in _differences_of_powers(z, y):
        if power % 2:
            value += _STIRLING[power // 2] * difference
    for start in (0, _SHIFT // 2):
        # The product of a few factors, less 1: its logarithm is taken once.
        excess = tf.math.xdivy(y, x + start)
        for k in range(start + 1, start + _SHIFT // 2):
            factor = tf.math.xdivy(y, x + k)
            excess += factor + excess * factor
        value -= tf.math.log1p(excess)
    return value


def _differences_of_powers(
    z: tf.Tensor, y: tf.Tensor
) -> Iterator[tuple[int, tf.Tensor]]:
    """Yields n and `(z + y)^-n - z^-n`, without cancellation, for n = 1, 2, ..."""
    far, near = 1 / (z + y), 1 / z
    common, power_of_near = -y * far * near, near
    # The sum of far^i near^(n - 1 - i), which is the difference over `far - near`.
    series = tf.ones_like(z)
    for n in range(1, 2 * len(_STIRLING) + 1):
        yield n, common * series
        series = far * series + power_of_near
        power_of_near *= near


def _is_outside(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    return tf.logical_or(x < 0, x + y < 0)


@custom_gradient
def _digamma_difference(
    x: tf.Tensor, y: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], _Pair]]:
    """Returns `digamma(x + y) - digamma(x)`, and 0 where one of them is infinite."""

    def vjp(upstream: tf.Tensor) -> _Pair:
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = _digamma_difference_value(x, y)
        in_x = times_upstream(upstream, tape.gradient(value, x))
        at_pole = tf.logical_or(tf.equal(x, 0), tf.equal(x + y, 0))
        trigamma = tf.math.polygamma(tf.ones_like(x), _or_one(at_pole, x + y))
        return in_x, times_upstream(upstream, _or_zero(at_pole, trigamma))

    return _digamma_difference_value(x, y), vjp


def _digamma_difference_value(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    at_pole = tf.logical_or(tf.equal(x, 0), tf.equal(x + y, 0))
    x, y = _or_one(at_pole, x), _or_zero(at_pole, y)
    z = x + _SHIFT
    value = tf.math.log1p(y / z) + 0.5 * y / (z * (z + y))
    for power, difference in _differences_of_powers(z, y):
        if power % 2 == 0:
            value -= (power - 1) * _STIRLING[power // 2 - 1] * difference
    for k in range(_SHIFT):
        value += y / ((x + k) * (x + y + k))
    return value + nan_where(_is_outside(x, y), x.dtype)


@custom_gradient
def _digamma(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    """Returns the digamma function for `x > 0`, 0 at 0 and NaN below."""
    at_pole = tf.equal(x, 0)
    inside = _or_one(x <= 0, x)

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        trigamma = tf.math.polygamma(tf.ones_like(x), inside)
        return times_upstream(upstream, _or_zero(at_pole, trigamma))

    value = tf.math.digamma(inside) + nan_where(x < 0, x.dtype)
    return _or_zero(at_pole, value), vjp


def _or_one(condition: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    return tf.where(condition, tf.ones_like(x), x)


def _or_zero(condition: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    return tf.where(condition, tf.zeros_like(x), x)
