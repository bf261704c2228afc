"""Computes means and sums of powers whose terms are out of the range of their dtype."""

from collections.abc import Callable, Sequence

import tensorflow as tf

from tfsafe import ops
from tfsafe._limits import LIMITS
from tfsafe.ops.formulas import unchanged_values
from tfsafe.ops.formulas.limits import removable
from tfsafe.ops.formulas.limits.quotients import near_or_far
from tfsafe.ops.formulas.out_of_range.weighted_exponentials import (
    shared_exponent,
    weighted_exp,
)
from tfsafe.ops.kernels import precision

# A power nearer to 0 is expanded about it.
_NEAR = 0.25


def root_of_powers(
    x: tf.Tensor,
    order: tf.Tensor,
    inverse: tf.Tensor,
    axes: Sequence[int] | None,
    keepdims: bool,
    reduce: Callable[..., tf.Tensor],
    is_mean: bool,
) -> tf.Tensor:
    """Computes `mean(x ** p) ** (1 / p)`, or that of the sum.

    Args:
      x: The numbers.
      order: The power p.
      inverse: 1 / p.
      axes: Of the mean, None for all.
      keepdims: Whether the result keeps them.
      reduce: Takes the mean or the sum, perhaps with weights.
      is_mean: Whether the weights add up to 1.

    Returns:
      The root. It is computed of x over its largest element, or its smallest for a
      negative power: these terms are 1. For p = 0, the mean is the geometric one.
    """

    def compute(x: tf.Tensor, order: tf.Tensor, inverse: tf.Tensor) -> tf.Tensor:
        size = tf.abs(tf.stop_gradient(x))
        largest = tf.reduce_max(size, axes, keepdims=True)
        smallest = tf.reduce_min(size, axes, keepdims=True)
        scale = tf.where(order > 0, largest, smallest)
        usable = tf.math.is_finite(scale) & (scale > 0)
        scale = tf.where(usable, scale, tf.ones_like(scale))
        y = x / scale
        total = reduce(ops.pow(y, order), axes, keepdims=keepdims)
        scale = tf.reshape(scale, tf.shape(total))
        root = ops.pow(total, inverse)
        if is_mean:
            is_near = tf.abs(order) < _NEAR
            p = tf.where(is_near, order, tf.zeros_like(order))
            is_near &= tf.reduce_all(y > 0, axes, keepdims=keepdims)
            logs = ops.log(tf.where(y > 0, y, tf.ones_like(y)))
            rise = logs * removable.expm1_over_x(p * logs)
            mean = reduce(rise, axes, keepdims=keepdims)
            limit = ops.exp(mean * removable.log1p_over_x(p * mean))
            root = tf.where(is_near, limit, root)
        return root * scale

    return precision.in_float32(compute, x, order, inverse)


def log_of_powers(
    x: tf.Tensor,
    order: tf.Tensor,
    weight: tf.Tensor,
    axes: Sequence[int] | None,
    keepdims: bool,
    reduce: Callable[..., tf.Tensor],
) -> tf.Tensor:
    """Computes `log(sum(w * x ** p))`, or that of the mean.

    Where the sum leaves the range, from the logarithms of its terms.

    Args:
      x: The numbers.
      order: The power p.
      weight: w.
      axes: Of the sum, None for all.
      keepdims: Whether the result keeps them.
      reduce: Takes the sum or the mean.

    Returns:
      The logarithm.
    """

    def compute(x: tf.Tensor, order: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
        limit = LIMITS[x.dtype.name]
        whole = reduce(weight * tf.pow(x, order), axes, keepdims=True)
        size = tf.abs(tf.stop_gradient(whole))
        is_out = (size < limit.tiny / limit.eps) | ~tf.math.is_finite(size)

        def near(x: tf.Tensor, order: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
            size = tf.abs(x)
            log = order * tf.math.log(tf.where(size > 0, size, tf.ones_like(size)))
            signed = weight * tf.pow(tf.sign(x), order)
            shared = shared_exponent([(signed, log)], axes)
            total = reduce(weighted_exp(signed, log - shared), axes, keepdims=True)
            return unchanged_values.log(total) + shared

        def far(x: tf.Tensor, order: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
            total = reduce(weight * ops.pow(x, order), axes, keepdims=True)
            return unchanged_values.log(total)

        made = near_or_far(is_out, near, far, x, order, weight)
        return made if keepdims else tf.squeeze(made, axes)

    return precision.in_float32(compute, x, order, weight)


def root_of_sum(
    bases: Sequence[tf.Tensor | float],
    weights: Sequence[tf.Tensor | float],
    total: tf.Tensor,
    order: tf.Tensor,
    inverse: tf.Tensor,
    is_mean: bool,
) -> tf.Tensor:
    """Computes `(a * x ** p + b * y ** p + ...) ** (1 / p)`.

    Args:
      bases: x, y, ...; 1 for a number that is added.
      weights: a, b, ...
      total: The sum, which has the shape.
      order: The power p.
      inverse: 1 / p.
      is_mean: Whether the weights add up to 1.

    Returns:
      The root, of the shape of `total`.
    """
    x, factors = (
        tf.stack([
            tf.broadcast_to(tf.cast(each, total.dtype), tf.shape(total))
            for each in numbers
        ])
        for numbers in (bases, weights)
    )

    def reduce(
        terms: tf.Tensor, axes: Sequence[int], keepdims: bool = False
    ) -> tf.Tensor:
        return tf.reduce_sum(tf.cast(factors, terms.dtype) * terms, axes, keepdims)

    return root_of_powers(x, order, inverse, [0], False, reduce, is_mean)
