"""Computes weights times exponentials and logarithms, where either may be infinite.

They are made of public operations and have the gradients of these. `tfsafe.rewriting`
puts them in the place of hand-written formulas.
"""

import math
from collections.abc import Callable, Sequence

import tensorflow as tf

from tfsafe import ops
from tfsafe._gradients import custom_gradient, custom_gradient_in, known, unbroadcast
from tfsafe._limits import LIMITS
from tfsafe.ops.formulas import unchanged_values
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.zeros import (
    quotient_no_nan,
    reciprocal,
    times_upstream,
    times_where_nonzero,
)

_Gradients = Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]

# An exponent is at most so many units, whose last places are lost when it is added.
_ROUNDINGS = 128


@precision.runs_in_float32
@custom_gradient
def exp_times(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, _Gradients]:
    """Computes `exp(x) * y`, also where the exponential alone overflows."""

    def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        in_x = times_upstream(upstream, known(value, exp_times, x, y))
        in_y = times_upstream(upstream, ops.exp(x))
        return unbroadcast(in_x, x), unbroadcast(in_y, y)

    # Where the exponential overflows, take it in two halves; an infinite x does not.
    overflows = (x > math.log(LIMITS[x.dtype.name].max)) & tf.math.is_finite(x)
    halved = overflows & tf.not_equal(y, 0)
    half = tf.exp(tf.where(halved, 0.5 * x, tf.zeros_like(x)))
    whole = tf.exp(tf.where(overflows, tf.zeros_like(x), x))
    # A selection between the products, so that no graph squares the half first.
    first = tf.where(halved, y * half, tf.zeros_like(half))
    value = tf.where(halved, first * half, whole * y)
    return value, vjp


@precision.runs_in_float32
def expm1_times(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Computes `(exp(x) - 1) * y`, also where the exponential alone overflows."""
    # There, 1 is less than half a unit of its last place.
    is_large = x > 2 - math.log(LIMITS[x.dtype.name].eps)
    zero = tf.zeros([], x.dtype)
    large = exp_times(tf.where(is_large, x, zero), tf.where(is_large, y, zero))
    small = ops.expm1(tf.where(is_large, zero, x))
    return tf.where(is_large, large, unchanged_values.multiply(small, y))


def shared_exponent(
    pairs: Sequence[tuple[tf.Tensor, tf.Tensor]], axes: Sequence[int] | None = ()
) -> tf.Tensor:
    """Computes the largest exponent whose weight is not 0; 0 if there is none.

    The gradient takes it for a constant: what is taken out of a sum becomes a factor in
    front of it.

    Returns:
      The exponent that is shared.
    """
    largest: tf.Tensor | None = None
    for weight, exponent in pairs:
        found = counted(weight, exponent)
        if axes != ():
            found = tf.reduce_max(found, axes, keepdims=True)
        largest = found if largest is None else tf.maximum(largest, found)
    return finite_or_zero(largest)


def raised(
    exponent: tf.Tensor, least: tf.Tensor, axes: Sequence[int] = ()
) -> tf.Tensor:
    """Returns the larger of a shared exponent and another, which may lack axes.

    What is divided by a sum of exponentials has the exponent of that sum at least: then
    a weight of exactly 0, which is not counted, has its slope.
    """
    for axis in sorted(axes) if least.shape.rank else ():
        least = tf.expand_dims(least, axis)
    return tf.maximum(exponent, tf.stop_gradient(least))


def counted(weight: tf.Tensor, exponent: tf.Tensor) -> tf.Tensor:
    """Returns the exponents, -inf for those whose weight is 0."""
    never = tf.constant(-math.inf, exponent.dtype)
    return tf.where(tf.equal(weight, 0), never, exponent)


def weighted_exp(weight: tf.Tensor, exponent: tf.Tensor) -> tf.Tensor:
    """Computes `weight * exp(exponent)`; 0 for a weight of 0 and a finite exponent."""
    exponential = ops.exp(exponent)
    is_nothing = (
        tf.equal(weight, 0) & tf.math.is_inf(exponential) & tf.math.is_finite(exponent)
    )
    kept = tf.where(is_nothing, tf.zeros_like(exponential), exponential)
    return unchanged_values.multiply(weight, kept)


def log_one_plus(weight: tf.Tensor, exponent: tf.Tensor, log: tf.Tensor) -> tf.Tensor:
    """Computes `log(1 + weight * exp(exponent))`, which is `log` where not near 0."""
    is_near = tf.abs(tf.stop_gradient(weighted_exp(weight, exponent))) < 0.5
    w, e = (tf.where(is_near, each, tf.zeros_like(each)) for each in (weight, exponent))
    return tf.where(is_near, ops.log1p(weighted_exp(w, e)), log)


def log_near_one(x: tf.Tensor, log: tf.Tensor) -> tf.Tensor:
    """Returns the logarithm of x; near 1 with the value of `log(x)` and its own slopes.

    An exponent that was taken out of x and is added again costs digits where their sum
    is near 0. A larger difference of the two logarithms is that of terms which cancel.
    """
    x = tf.stop_gradient(x)
    is_near = tf.abs(x - 1) < 0.5
    change = tf.math.log(tf.where(is_near, x, tf.ones_like(x))) - tf.stop_gradient(log)
    is_near &= tf.abs(change) < _ROUNDINGS * LIMITS[x.dtype.name].eps
    return log + tf.where(is_near, change, tf.zeros_like(x))


def exp_of_sum(
    a: tf.Tensor, b: tf.Tensor, weight: tf.Tensor | None = None
) -> tf.Tensor:
    """Computes `weight * exp(a + b)` with the rounding error of the sum put right."""
    # Knuth's two-sum: `total + rest` is `a + b` exactly.
    total = a + b
    second = total - a
    rest = (a - (total - second)) + (b - second)
    rest = tf.where(tf.math.is_finite(rest), rest, tf.zeros_like(rest))
    factor = 1 + tf.stop_gradient(rest)
    if weight is None:
        return ops.exp(total) * factor
    return weighted_exp(weight * factor, total)


@custom_gradient_in(2)
def quotient_of_weights(
    x: tf.Tensor, y: tf.Tensor, divide: Callable[..., tf.Tensor]
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]]:
    """Computes `x / y`, which an exponential is multiplied by.

    Args:
      x: Weight of the dividend.
      y: Weight of the divisor.
      divide: Computes the quotient.

    Returns:
      The quotient. Its incoming gradient has the exponential as a factor, and comes
      first in the slopes: `1 / y ** 2` overflows where the product does not.
    """
    value = divide(x, y)

    def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        in_x = times_upstream(upstream, reciprocal(y))
        in_y = -times_where_nonzero(in_x, quotient_no_nan(x, y))
        return unbroadcast(in_x, x), unbroadcast(in_y, y)

    return value, vjp


def weighted_log(weight: tf.Tensor, log: tf.Tensor) -> tf.Tensor:
    """Computes `weight * log`; 0 for a weight of 0 and an infinite logarithm."""
    return weight * zero_where_weightless(log, weight)


def zero_where_weightless(log: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
    """Returns a logarithm, replaced by 0 where it is infinite and the weight is 0."""
    is_nothing = tf.equal(weight, 0) & tf.math.is_inf(log)
    return tf.where(is_nothing, tf.zeros_like(log), log)


def weighted_logs(
    weight: tf.Tensor,
    log: tf.Tensor,
    contract: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
) -> tf.Tensor:
    """Adds up `weight * log` by a product of matrices, 0 for a weight of 0.

    Args:
      weight: The weights.
      log: Logarithms, which may be infinite.
      contract: Multiplies and adds up two tensors of their shapes.

    Returns:
      The sum, with a gradient of 0 in the weight of an infinite logarithm.
    """
    is_infinite = tf.math.is_inf(log)
    known = contract(weight, tf.where(is_infinite, tf.zeros_like(log), log))
    weight = tf.stop_gradient(weight)
    sign = tf.where(is_infinite, tf.stop_gradient(tf.sign(log)), tf.zeros_like(log))
    is_lost = contract(tf.abs(weight), tf.abs(sign)) > 0
    return tf.where(is_lost, contract(weight, sign) * math.inf, known)


def floored_log(log: tf.Tensor, floor: float | None) -> tf.Tensor:
    """Returns a logarithm, replaced by that of `floor` where it is `-inf`."""
    if floor is None:
        return log
    lowest = tf.constant(math.log(floor), log.dtype)
    return tf.where(tf.math.is_inf(log) & (log < 0), lowest, log)


def softmax_at_temperature(logits: tf.Tensor, temperature: tf.Tensor) -> tf.Tensor:
    """Computes `softmax(logits / temperature)`; one-hot for a temperature of 0."""
    # Shifted logits have the same softmax, and the quotient of the largest is 0.
    shift = finite_or_zero(tf.reduce_max(logits, -1, keepdims=True))
    return tf.nn.softmax(ops.xdivy(logits - shift, temperature))


def log_sum_at_temperature(
    x: tf.Tensor,
    temperature: tf.Tensor,
    axes: Sequence[int],
    keepdims: bool,
    reduce: Callable[..., tf.Tensor],
) -> tf.Tensor:
    """Computes `t * log(sum(exp(x / t)))` of a temperature t; the largest for 0.

    Args:
      x: Floating tensor.
      temperature: Tensor of the same dtype, one number for all elements of a sum.
      axes: Of the sum.
      keepdims: Whether these are kept.
      reduce: `tf.reduce_sum`, or `tf.reduce_mean` for a mean.

    Returns:
      The smooth maximum of `x`, the minimum for a negative temperature.
    """

    def compute(x: tf.Tensor, temperature: tf.Tensor) -> tf.Tensor:
        largest = tf.reduce_max(x, axes, keepdims=True)
        least = tf.reduce_min(x, axes, keepdims=True)
        shift = finite_or_zero(tf.where(temperature < 0, least, largest))
        is_zero = tf.equal(temperature, 0)
        known = tf.where(is_zero, tf.ones_like(temperature), temperature)
        quotients = unchanged_values.divide(x - shift, known)
        total = reduce(ops.exp(quotients), axes, keepdims=True)
        made = shift + known * unchanged_values.log(total)
        # Of a small temperature only those count that are as large as the largest.
        ties = reduce(tf.cast(tf.equal(x, largest), x.dtype), axes, keepdims=True)
        limit = largest + temperature * tf.math.log(ties)
        made = tf.where(is_zero, limit, made)
        return made if keepdims else tf.squeeze(made, axes)

    return precision.in_float32(compute, x, temperature)


def finite_or_zero(x: tf.Tensor) -> tf.Tensor:
    """Returns `x`, 0 where it is not finite; the gradient takes it for a constant."""
    return tf.stop_gradient(tf.where(tf.math.is_finite(x), x, tf.zeros_like(x)))


def product_or_exp(
    a: tf.Tensor,
    b: tf.Tensor,
    weight: tf.Tensor,
    exponent: tf.Tensor,
    *,
    by_factors: bool = False,
) -> tf.Tensor:
    """Computes `a * b`, as `weight * exp(exponent)` where a factor is out of range.

    The gradient is that of the exponential: the factors may be infinite.

    Args:
      a: A factor.
      b: The other.
      weight: The weight of their product.
      exponent: Its exponent.
      by_factors: Whether the gradient is that of the factors where their squares are in
        range, or the exponential is not.

    Returns:
      The product.
    """
    limit = LIMITS[a.dtype.name]
    least = tf.constant(limit.tiny / limit.eps, a.dtype)
    made = weighted_exp(weight, exponent)
    usual = a * b
    is_usual = tf.math.is_finite(usual) & tf.math.is_finite(made)
    is_near = tf.ones_like(is_usual)
    for size in map(tf.abs, (a, b)):
        is_usual &= (size >= least) & (size <= limit.max)
        is_near &= (size >= limit.tiny**0.5) & (size <= limit.tiny**-0.5)
    rest = tf.stop_gradient(usual - made)
    made += tf.where(is_usual, rest, tf.zeros_like(rest))
    if not by_factors:
        return made
    is_kept = is_usual & (is_near | (tf.abs(exponent) > -math.log(limit.tiny)))
    nothing = tf.zeros_like(usual)
    kept = (tf.where(is_kept, factor, nothing) for factor in (a, b))
    return tf.where(is_kept, unchanged_values.multiply(*kept), made)


def running_weights(
    weight: tf.Tensor, exponent: tf.Tensor, axis: int, is_reversed: bool
) -> tuple[tf.Tensor, tf.Tensor]:
    """Computes running sums of `weight * exp(exponent)` along an axis of known length.

    Sums of 2, 4, 8 and more terms are made of pairs of the sums before.

    Returns:
      The weights of the sums, and their exponents: the largest so far. The gradient
      takes these for constants.
    """
    length = exponent.shape[axis]
    axis %= exponent.shape.rank
    largest = finite_or_zero(exponent)
    sums = weighted_exp(weight, exponent - largest)
    largest = tf.stop_gradient(
        tf.where(tf.math.is_inf(exponent) & (exponent < 0), exponent, largest)
    )

    def moved(x: tf.Tensor, step: int, beyond: float) -> tf.Tensor:
        begin, size = [0] * x.shape.rank, [-1] * x.shape.rank
        begin[axis], size[axis] = (step, -1) if is_reversed else (0, length - step)
        kept = tf.slice(x, begin, size)
        paddings = [[0, 0] for _ in range(x.shape.rank)]
        paddings[axis] = [0, step] if is_reversed else [step, 0]
        return tf.pad(kept, paddings, constant_values=beyond)

    step = 1
    while step < length:
        before = moved(largest, step, -math.inf)
        higher = tf.maximum(largest, before)
        shared = finite_or_zero(higher)
        sums = sums * tf.exp(largest - shared) + moved(sums, step, 0.0) * tf.exp(
            before - shared
        )
        largest, step = higher, 2 * step
    return sums, finite_or_zero(largest)
