"""Computes logarithms and powers of products that are out of the range of their dtype.

A product in range is computed as written, so that ordinary values keep their
digits; elsewhere the logarithms of the factors are added.
"""

from collections.abc import Callable, Sequence

import tensorflow as tf

from tfsafe._gradients import custom_gradient, unbroadcast
from tfsafe._limits import LIMITS
from tfsafe.ops.formulas.limits.quotients import near_or_far
from tfsafe.ops.formulas.unchanged_values import divide, log1mexp
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.exponential import exp
from tfsafe.ops.kernels.logarithm import log
from tfsafe.ops.kernels.power import constant_power, pow
from tfsafe.ops.kernels.zeros import reciprocal, times_upstream

# A factor, and the power in which it is in the product.
Power = tuple[tf.Tensor, float | tf.Tensor]


def log_of_product(powers: Sequence[Power], factor: float) -> tf.Tensor:
    """Computes `log(factor * product of x ** k)`.

    Args:
      powers: Each x with its k.
      factor: Positive.

    Returns:
      The logarithm; NaN where the product is negative.
    """
    bases = [x for x, _ in powers]
    exponents = [k for _, k in powers]
    tensors = [k for k in exponents if isinstance(k, tf.Tensor)]

    # The slopes are of each factor alone: those of a product may be out of range.
    @custom_gradient
    def compute(*args: tf.Tensor) -> tuple[tf.Tensor, Callable[..., list[tf.Tensor]]]:
        given = iter(args[len(bases) :])
        each = [next(given) if isinstance(k, tf.Tensor) else k for k in exponents]
        powers = list(zip(args[: len(bases)], each, strict=True))
        value = _log(powers, factor)

        def vjp(upstream: tf.Tensor) -> list[tf.Tensor]:
            upstream = tf.where(tf.math.is_inf(value), tf.zeros_like(value), upstream)
            rates = [(x, k * reciprocal(x)) for x, k in powers]
            rates += [
                (k, log(tf.abs(x))) for x, k in powers if isinstance(k, tf.Tensor)
            ]
            return [unbroadcast(times_upstream(upstream, r), x) for x, r in rates]

        return value, vjp

    return precision.in_float32(compute, *bases, *tensors)


def log_unless_out(product: tf.Tensor, size: tf.Tensor, sign: tf.Tensor) -> tf.Tensor:
    """Computes the logarithm of a product that may be out of range.

    Args:
      product: The product.
      size: The logarithm of its magnitude, for where it is out of range.
      sign: Its sign there.

    Returns:
      The logarithm; NaN where the product is negative.
    """
    limits = LIMITS[product.dtype.name]
    magnitude = tf.abs(product)
    is_in = (magnitude >= limits.tiny) & (magnitude <= limits.max)
    plain = log(_one(tf.logical_not(is_in), product))
    nan = tf.constant(float("nan"), product.dtype)
    return tf.where(is_in, plain, tf.where(sign < 0, nan, size))


def log_one_minus_exp_of_rate(rate: tf.Tensor, log: tf.Tensor) -> tf.Tensor:
    """Computes `log(1 - exp(-rate))`; of a rate that underflows, it is its `log`."""
    tiny = tf.constant(LIMITS[rate.dtype.name].tiny, rate.dtype)
    is_lost = tf.abs(rate) < tiny
    return tf.where(is_lost, log, log1mexp(-tf.where(is_lost, tiny, rate)))


def _log(powers: Sequence[Power], factor: float) -> tf.Tensor:
    dtype = powers[0][0].dtype
    is_out = _is_out(powers, factor)
    for x, k in powers:
        usable = tf.math.is_finite(x) & tf.not_equal(x, 0)
        if isinstance(k, tf.Tensor) or k % 1:
            usable &= x > 0
        is_out &= usable
    plain = log(_product([(_one(is_out, x), k) for x, k in powers], factor))
    is_in = tf.logical_not(is_out)
    total = tf.math.log(tf.constant(factor, dtype))
    sign = tf.ones([], dtype)
    for x, k in powers:
        kept = _one(is_in, x)
        total += k * tf.math.log(tf.abs(kept))
        if not isinstance(k, tf.Tensor) and k % 2:
            sign *= tf.sign(kept)
    total = tf.where(sign < 0, tf.constant(float("nan"), dtype), total)
    return tf.where(is_out, total, plain)


def _is_out(powers: Sequence[Power], factor: float) -> tf.Tensor:
    """Returns where the product, or that of its first factors, is out of range."""
    made = tf.constant(factor, powers[0][0].dtype)
    limits = LIMITS[made.dtype.name]
    is_out = tf.constant(False)
    for x, k in powers:
        made *= _power(x, k)
        size = tf.abs(made)
        is_out |= tf.logical_not((size >= limits.tiny) & (size <= limits.max))
    return is_out


def _one(condition: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """Returns `x`, and 1 where a condition holds."""
    return tf.where(condition, tf.ones([], x.dtype), x)


def _product(powers: Sequence[Power], factor: float) -> tf.Tensor:
    made = tf.constant(factor, powers[0][0].dtype)
    for x, k in powers:
        made *= _power(x, k)
    return made


def _power(x: tf.Tensor, k: float | tf.Tensor) -> tf.Tensor:
    if not isinstance(k, tf.Tensor) and k in {1.0, 2.0}:
        return x if k == 1 else x * x
    if isinstance(k, tf.Tensor):
        return pow(x, k)
    return constant_power(x, k)


def log_one_plus_power(x: tf.Tensor, k: tf.Tensor) -> tf.Tensor:
    """Computes `log(1 + x ** k)`, also where the power overflows."""

    def compute(x: tf.Tensor, k: tf.Tensor) -> tf.Tensor:
        size = tf.where(tf.equal(x, 0), tf.ones_like(x), tf.abs(x))
        exponent = tf.stop_gradient(k * tf.math.log(size))
        is_positive = tf.pow(tf.sign(x), k) > 0
        return near_or_far(
            is_positive & (exponent > 40) & tf.math.is_finite(x),
            lambda x, k: k * tf.math.log(tf.abs(x)),
            lambda x, k: tf.math.log1p(pow(x, k)),
            x,
            k,
        )

    return precision.in_float32(compute, x, k)


def log_one_plus_power_of_quotient(
    x: tf.Tensor, y: tf.Tensor, k: tf.Tensor
) -> tf.Tensor:
    """Computes `log(1 + (x / y) ** k)`; no slope has a square of a small y."""

    def compute(x: tf.Tensor, y: tf.Tensor, k: tf.Tensor) -> tf.Tensor:
        logs = [
            tf.math.log(tf.where(tf.equal(each, 0), tf.ones_like(each), tf.abs(each)))
            for each in (x, y)
        ]
        exponent = tf.stop_gradient(k * (logs[0] - logs[1]))
        is_positive = tf.pow(tf.sign(x) * tf.sign(y), k) > 0
        is_finite = tf.math.is_finite(x) & tf.math.is_finite(y)
        return near_or_far(
            is_positive & (exponent > 40) & is_finite,
            lambda x, y, k: k * (tf.math.log(tf.abs(x)) - tf.math.log(tf.abs(y))),
            lambda x, y, k: tf.math.log1p(pow(divide(x, y), k)),
            x,
            y,
            k,
        )

    return precision.in_float32(compute, x, y, k)


def power_of_product(
    x: tf.Tensor, k: tf.Tensor, axes: tuple[int, ...], keepdims: bool
) -> tf.Tensor:
    """Computes `prod(x) ** k`, also where the product is out of range."""

    def compute(x: tf.Tensor, k: tf.Tensor) -> tf.Tensor:
        whole = tf.reduce_prod(tf.stop_gradient(x), axes, keepdims=True)
        limits = LIMITS[x.dtype.name]
        is_out = tf.logical_not((whole >= limits.tiny) & (whole <= limits.max))
        usable = tf.reduce_all((x > 0) & tf.math.is_finite(x), axes, keepdims=True)
        is_out &= usable
        is_in = tf.logical_not(is_out)
        plain = pow(tf.reduce_prod(_one(is_out, x), axes, keepdims), k)
        total = tf.reduce_sum(tf.math.log(_one(is_in, x)), axes, keepdims=keepdims)
        shape = tf.shape(tf.reduce_sum(x, axes, keepdims=keepdims))
        return tf.where(tf.reshape(is_out, shape), exp(k * total), plain)

    return precision.in_float32(compute, x, k)


def power_of_one_minus(base: tf.Tensor, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Computes `base ** y` of `base = 1 - x`; near 0 no digit of x is lost."""

    def compute(base: tf.Tensor, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        return near_or_far(
            # 1 to the power of infinity is 1.
            (tf.abs(x) < 2**-6) & tf.not_equal(x, 0),
            lambda _, x, y: exp(y * tf.math.log1p(-x)),
            lambda base, _, y: pow(base, y),
            base,
            x,
            y,
        )

    return precision.in_float32(compute, base, x, y)


def power_of_fraction(
    base: tf.Tensor, a: tf.Tensor, b: tf.Tensor, y: tf.Tensor
) -> tf.Tensor:
    """Computes `base ** y` of `base = a / (a + b)`; a small b loses no digit."""

    def compute(base: tf.Tensor, a: tf.Tensor, b: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        return near_or_far(
            (tf.abs(b) < 2**-6 * tf.abs(a)) & tf.math.is_finite(a) & tf.not_equal(b, 0),
            lambda _, a, b, y: exp(-y * tf.math.log1p(b / a)),
            lambda base, _a, _b, y: pow(base, y),
            base,
            a,
            b,
            y,
        )

    return precision.in_float32(compute, base, a, b, y)
