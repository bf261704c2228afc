"""Computes quotients whose sides overflow, underflow or vanish together.

The written quotient is used where both sides are ordinary numbers, so that these keep
their digits; the other form is computed only where a side is out of range.
"""

from collections.abc import Callable, Sequence

import tensorflow as tf

from tfsafe import ops
from tfsafe._gradients import custom_gradient, custom_gradient_in, unbroadcast
from tfsafe._limits import LIMITS
from tfsafe.ops.formulas import unchanged_values
from tfsafe.ops.formulas.out_of_range.weighted_exponentials import (
    exp_of_sum,
    finite_or_zero,
)
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.power import constant_power
from tfsafe.ops.kernels.zeros import (
    one_where_zero,
    quotient_no_nan,
    times_upstream,
    times_where_nonzero,
    zero_unless,
)

# A function of one tensor.
Function = Callable[[tf.Tensor], tf.Tensor]
_Gradients = Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]


def _is_lost(total: tf.Tensor) -> tf.Tensor:
    """Returns where a sum of nonnegative terms has underflowed, or lost digits so."""
    limit = LIMITS[total.dtype.name]
    return (total >= 0) & (total < tf.constant(limit.tiny / limit.eps, total.dtype))


def _is_out_of_range(size: tf.Tensor) -> tf.Tensor:
    """Returns where the square of a nonnegative number is, as a slope may be."""
    largest = tf.constant(LIMITS[size.dtype.name].tiny ** -0.5, size.dtype)
    return ((size >= 0) & (size < 1 / largest)) | ~(size <= largest)


def _select(condition: tf.Tensor, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Returns `tf.where` of three tensors of one shape, with 3 operations of gradient.

    That of `tf.where` has 14 where the shape is not known: it sums over the axes along
    which a tensor may have been broadcast.
    """
    return tf.raw_ops.Select(condition=condition, x=x, y=y)


@custom_gradient_in(2)
def _replaced(
    x: tf.Tensor, condition: tf.Tensor, number: float
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, None]]]:
    """Returns `x`, and a number where a condition holds."""

    def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, None]:
        return unbroadcast(zero_unless(~condition, upstream), x), None

    return tf.where(condition, tf.constant(number, x.dtype), x), vjp


def renormalised(
    part: tf.Tensor,
    total: tf.Tensor,
    log: tf.Tensor,
    axis: Sequence[int],
    mask: tf.Tensor | None,
) -> tf.Tensor:
    """Computes `part / total`, the sum of `part` along axes.

    Args:
      part: Numbers that are not negative.
      total: Their sum.
      log: Their logarithms, whose softmax is taken where the sum underflows.
      axis: The axes of the sum.
      mask: Numbers that are 0 where `part` is 0 whatever the logarithm is.

    Returns:
      The quotient; 0 where all parts are exactly 0.
    """
    is_lost = tf.broadcast_to(_is_lost(total), tf.shape(part))
    possible = tf.math.is_finite(log)
    if mask is not None:
        possible &= tf.not_equal(mask, 0)
    is_some = tf.reduce_any(possible, axis, keepdims=True)
    usual = part / tf.where(_is_lost(total), tf.ones_like(total), total)
    logits = tf.where(is_lost & possible, log, tf.zeros_like(log))
    other = ops.softmax(logits, axis, mask=possible | tf.logical_not(is_some))
    other = tf.where(is_some, other, tf.zeros_like(other))
    return tf.where(is_lost, other, usual)


def powers_over_sum(
    x: tf.Tensor, exponent: tf.Tensor, total: tf.Tensor, axis: Sequence[int]
) -> tf.Tensor:
    """Computes `x ** exponent / total`, the sum of the powers along axes.

    Args:
      x: Bases.
      exponent: The same for all elements along the axes.
      total: The sum.
      axis: The axes.

    Returns:
      The quotient. Where the sum underflows or overflows the bases are divided by one
      of them, which does not change it. 0 where all powers are 0.
    """
    size = tf.abs(tf.stop_gradient(x))
    largest = tf.reduce_max(size, axis, keepdims=True)
    smallest = tf.reduce_min(size, axis, keepdims=True)
    scale = tf.where(exponent < 0, smallest, largest)
    total = tf.reshape(total, tf.shape(largest))
    is_lost = _is_lost(tf.abs(total)) | tf.math.is_inf(total)
    is_lost &= (scale > 0) & tf.math.is_finite(scale)
    base = x / tf.where(is_lost, scale, tf.ones_like(scale))
    powers = unchanged_values.pow(base, exponent)
    return ops.xdivy(powers, tf.reduce_sum(powers, axis, keepdims=True))


def _without_poles(weights: tf.Tensor, axes: Sequence[int]) -> tf.Tensor:
    """Returns weights; 1 and 0 along axes where one of them is infinite."""
    is_pole = tf.math.is_inf(weights)
    found = tf.reduce_any(is_pole, axes, keepdims=True)
    return tf.where(found, tf.cast(is_pole, weights.dtype), weights)


def over_sum_of_poles(
    sides: tuple[tf.Tensor, tf.Tensor],
    weights: tf.Tensor,
    axes: Sequence[int],
    keepdims: bool,
) -> tf.Tensor:
    """Computes weights over their sum, given both; from float64 for infinite ones."""
    kept = _without_poles(weights, axes)
    return quotient_in_range(*sides, kept, tf.reduce_sum(kept, axes, keepdims))


def weighted_sum(
    weights: tf.Tensor, x: tf.Tensor, axes: Sequence[int], keepdims: bool
) -> tf.Tensor:
    """Computes `sum(weights * x)`, with slopes 0 for a zero incoming gradient."""
    return tf.reduce_sum(unchanged_values.multiply(weights, x), axes, keepdims)


def mean_with_poles(
    sums: tuple[tf.Tensor, tf.Tensor],
    weights: tf.Tensor,
    x: tf.Tensor,
    factor: float,
    axes: Sequence[int],
    keepdims: bool,
) -> tf.Tensor:
    """Computes `sum(weights * x) / sum(weights)`, from float64 for infinite weights.

    Args:
      sums: The two sums.
      weights: The weights in float64.
      x: What is averaged, times `factor`.
      factor: A number.
      axes: The axes of the sums.
      keepdims: Whether these keep size 1.

    Returns:
      The mean. An infinite weight counts alone.
    """
    kept = _without_poles(weights, axes)
    above = tf.reduce_sum(kept * tf.cast(x, kept.dtype) / factor, axes, keepdims)
    return quotient_in_range(*sums, above, tf.reduce_sum(kept, axes, keepdims))


def quotient_or_exp(
    a: tf.Tensor,
    b: tf.Tensor,
    log_a: tf.Tensor,
    log_b: tf.Tensor,
    weight: tf.Tensor | None,
    below: tf.Tensor | None = None,
) -> tf.Tensor:
    """Computes `a / b`, from logarithms where `b` underflows.

    Args:
      a: Dividend.
      b: Divisor, which is not negative.
      log_a: The logarithm of `a` without its weight.
      log_b: The logarithm of `b` without its weight.
      weight: The factor of `a` that is not an exponential.
      below: The factor of `b` that is not an exponential.

    Returns:
      The quotient.
    """
    known = _is_lost(b) & tf.math.is_finite(log_b)
    if below is not None:
        known &= below > 0
        inverse = 1 / tf.where(known, below, tf.ones_like(below))
        weight = inverse if weight is None else weight * inverse
    second = tf.where(known, log_b, tf.zeros_like(log_b))
    first = tf.where(known, log_a, tf.zeros_like(log_a))
    usual = ops.xdivy(a, tf.where(known, tf.ones_like(b), b))
    return tf.where(known, exp_of_sum(first, -second, weight), usual)


def quotient_in_range(
    a: tf.Tensor,
    b: tf.Tensor,
    wide_a: tf.Tensor,
    wide_b: tf.Tensor,
    divide: Callable[[tf.Tensor, tf.Tensor], tf.Tensor] = ops.xdivy,
    *,
    squares: bool = False,
) -> tf.Tensor:
    """Computes `a / b`, from numbers of a wider dtype where a side is out of range.

    Args:
      a: Dividend.
      b: Divisor.
      wide_a: The same dividend in a wider dtype.
      wide_b: The same divisor in a wider dtype.
      divide: Computes a quotient; by default 0 for 0 / 0.
      squares: Whether a divisor is out of range where its square is, which the slope
        divides by.

    Returns:
      The quotient, in the dtype of `a`.
    """
    wide = tf.cast(divide(wide_a, wide_b), a.dtype)
    is_lost = _is_lost(tf.abs(b)) | ~tf.math.is_finite(a)
    is_lost |= ~tf.math.is_finite(tf.square(b) if squares else b)
    # A dividend of 0 may be meant, where it is made of what a mask leaves out.
    is_lost |= _is_lost(tf.abs(a)) & tf.math.is_finite(wide)
    # Where only `wide` is NaN, a side is the 0 that another formula has for 0 / 0.
    is_lost &= ~tf.math.is_nan(wide)
    usual = divide(_replaced(a, is_lost, 0.0), _replaced(b, is_lost, 1.0))
    return _select(is_lost, wide, usual)


def product_in_range(
    a: tf.Tensor, b: tf.Tensor, wide_a: tf.Tensor, wide_b: tf.Tensor
) -> tf.Tensor:
    """Computes `a * b`, from a wider dtype where a factor is out of range."""
    is_lost = _is_out_of_range(tf.abs(a)) | _is_out_of_range(tf.abs(b))
    wide = tf.cast(unchanged_values.multiply(wide_a, wide_b), a.dtype)
    # Where only `wide` is NaN, a factor is the 0 that another formula has for 0 / 0.
    is_lost &= ~tf.math.is_nan(wide)
    kept = (_replaced(each, is_lost, 0.0) for each in (a, b))
    return _select(is_lost, wide, unchanged_values.multiply(*kept))


def in_range(function: Function, x: tf.Tensor, wide: tf.Tensor) -> tf.Tensor:
    """Computes a function of nonnegative `x`, of `wide` where `x` is out of range."""
    # Where only `wide` is NaN, `x` is the 0 that another formula has for 0 / 0.
    is_lost = _is_out_of_range(x) & ~tf.math.is_nan(wide)
    usual = function(_select(is_lost, tf.ones_like(x), x))
    return _select(is_lost, tf.cast(function(wide), x.dtype), usual)


def normal_or_exp(function: Function, x: tf.Tensor, log: tf.Tensor) -> tf.Tensor:
    """Computes a power of `x` from its logarithm where `x` has lost digits.

    The gradient is that of the exponential everywhere: the slope of a power may be
    infinite where `x` is small.

    Args:
      function: Takes the power.
      x: Number that is not negative.
      log: Logarithm of the power.

    Returns:
      The power.
    """
    is_lost = x < tf.constant(LIMITS[x.dtype.name].tiny, x.dtype)
    value = tf.stop_gradient(tf.where(is_lost, ops.exp(log), function(x)))
    return value * ops.exp(log - finite_or_zero(log))


def one_minus_quotient(
    difference: tf.Tensor, p: tf.Tensor, log_p: tf.Tensor, log_q: tf.Tensor
) -> tf.Tensor:
    """Computes `(p - q) / p` of numbers that are not negative, and have logarithms."""
    is_lost = _is_lost(p) & tf.math.is_finite(log_p)
    nothing = tf.zeros_like(p)
    step = tf.where(is_lost, log_q, nothing) - tf.where(is_lost, log_p, nothing)
    below = tf.where(is_lost, tf.ones_like(p), p)
    usual = unchanged_values.divide(tf.where(is_lost, nothing, difference), below)
    return tf.where(is_lost, -ops.expm1(step), usual)


@precision.runs_in_float32
@custom_gradient
def part_of_sum(x: tf.Tensor, rest: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
    """Computes `x / (x + rest)`; 1 where `x` overflowed, 0 where both are 0."""
    total = x + rest
    is_whole, is_none = (
        tf.math.is_inf(a) & tf.math.is_finite(b) for a, b in ((x, rest), (rest, x))
    )

    def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        # Not `1 / total - x / total ** 2`, whose terms cancel where `x` is large.
        is_nothing = tf.equal(total, 0) | tf.equal(upstream, 0) | is_whole | is_none
        nothing, below = (
            tf.zeros_like(total),
            tf.where(is_nothing, tf.ones_like(total), total),
        )
        rate = tf.where(is_nothing, nothing, upstream / below)
        of_rest, of_x = (
            tf.where(is_nothing, nothing, each) / below for each in (rest, x)
        )
        return unbroadcast(rate * of_rest, x), unbroadcast(-rate * of_x, rest)

    part = ops.xdivy(zero_unless(~is_whole, x), total)
    return part + tf.cast(is_whole, x.dtype), vjp


def projection(
    a: tf.Tensor, b: tf.Tensor, axes: Sequence[int] | None, keepdims: bool
) -> tf.Tensor:
    """Computes `sum(a * b) / sum(b * b)`, whose sums stay in range; 0 where b is 0."""

    def compute(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
        every = range(a.shape.rank) if axes is None else axes
        _, _, down = precision.scaled(tf.stop_gradient(b), list(every))
        _, large, small = precision.scaled(tf.stop_gradient(a), list(every))
        y = b * down
        top = tf.reduce_sum((a * small) * y, axes, keepdims=True)
        bottom = tf.reduce_sum(tf.square(y), axes, keepdims=True)
        # Not one power: the quotient of the two may be out of range.
        made = ops.xdivy(top, bottom) * large * down
        return made if keepdims else tf.squeeze(made, list(every))

    return precision.in_float32(compute, a, b)


@precision.runs_in_float32
@custom_gradient
def angle_of_quotient(y: tf.Tensor, x: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
    """Computes `atan(y / x)`, with its slopes at `x = 0`; 0 where both are 0."""
    is_origin = tf.equal(x, 0) & tf.equal(y, 0)
    size = tf.maximum(tf.abs(x), tf.abs(y))

    def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        largest = tf.where(is_origin, tf.ones_like(size), size)
        a, b = y / largest, x / largest
        is_nothing = is_origin | tf.equal(upstream, 0)
        one = tf.ones_like(size)
        below = tf.where(is_nothing, one, tf.square(a) + tf.square(b))
        rate = upstream / below / tf.where(is_nothing, one, largest)
        rate = tf.where(is_nothing, tf.zeros_like(size), rate)
        return unbroadcast(rate * b, y), unbroadcast(-rate * a, x)

    return tf.atan(tf.where(is_origin, tf.zeros_like(size), y / x)), vjp


def odd(function: Function) -> Function:
    """Returns `sign(x) * function(abs(x))`, with the slope of the function at 0."""

    def compute(x: tf.Tensor) -> tf.Tensor:
        is_negative = x < 0
        made = function(tf.where(is_negative, -x, x))
        return tf.where(is_negative, -made, made)

    return compute


def with_slope_at_zero(made: tf.Tensor, x: tf.Tensor, slope: float) -> tf.Tensor:
    """Returns a function of `x` that is 0 at 0, with its slope there."""
    return made + slope * tf.where(tf.equal(x, 0), x, tf.zeros_like(x))


def power_of_quotient(a: tf.Tensor, b: tf.Tensor, power: float) -> tf.Tensor:
    """Computes `a ** power / b ** power`, for a whole number of 2 and more."""
    return precision.in_float32(lambda a, b: _power_of_quotient(a, b, power), a, b)


@custom_gradient_in(2)
def _power_of_quotient(
    a: tf.Tensor, b: tf.Tensor, power: float
) -> tuple[tf.Tensor, _Gradients]:
    def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        # The quotient without NaN selects: XLA makes `a / b ** 2` of `a / b / b`.
        ratio = quotient_no_nan(a, b)
        slope = power * constant_power(ratio, power - 2) * quotient_no_nan(ratio, b)
        in_a = times_upstream(upstream, slope)
        in_b = -times_where_nonzero(in_a, ratio)
        return unbroadcast(in_a, a), unbroadcast(in_b, b)

    return constant_power(a / b, power), vjp


def square_of_quotient(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Computes `a ** 2 / b ** 2` of two norms, and 0 for 0 / 0."""
    return power_of_quotient(a, b + one_where_zero(a + b), 2.0)
