"""Computes what is left of a tensor less a fraction of it, where nearly all goes."""

from collections.abc import Callable, Sequence

import tensorflow as tf

from tfsafe import ops
from tfsafe.ops.kernels import precision


def one_minus_fraction(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Computes `1 - x / (x + y)`, which is `y / (x + y)`; 1 where both are 0."""
    return less_part_of_sum(tf.ones([], x.dtype), x, y)


def one_minus_weighted_sum(
    y: tf.Tensor, p: tf.Tensor, total: tf.Tensor, axes: Sequence[int], keepdims: bool
) -> tf.Tensor:
    """Computes `1 - total`, the sum of `y * p` over axes along which p sums to 1."""

    def weigh(y: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(y * p, axes, keepdims=keepdims)

    return one_minus_weighted(y, total, weigh)


def one_minus_weighted(
    y: tf.Tensor, total: tf.Tensor, weigh: Callable[[tf.Tensor], tf.Tensor]
) -> tf.Tensor:
    """Computes `1 - total`, where that is `weigh(y)` by weights that sum to 1."""
    return tf.where(total > 0.5, weigh(1 - y), 1 - total)


def less_part_of_sum(whole: tf.Tensor, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Computes `whole - whole * (x / (x + y))`."""
    return _less_part(lambda whole, x, total: whole * ops.xdivy(x, total), whole, x, y)


def less_product_over_sum(whole: tf.Tensor, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Computes `whole - whole * x / (x + y)`."""
    return _less_part(lambda whole, x, total: ops.xdivy(whole * x, total), whole, x, y)


def _less_part(
    part: Callable[[tf.Tensor, tf.Tensor, tf.Tensor], tf.Tensor],
    whole: tf.Tensor,
    x: tf.Tensor,
    y: tf.Tensor,
) -> tf.Tensor:
    def compute(whole: tf.Tensor, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        total = x + y
        one = tf.ones_like(total)
        # Otherwise the two terms of a slope would cancel.
        is_near = tf.not_equal(total, 0) & (tf.abs(y) <= tf.abs(x))
        is_near &= tf.math.is_finite(total)
        near = tf.where(is_near, y, one) / tf.where(is_near, total, one)
        far = part(*(tf.where(is_near, one, each) for each in (whole, x, total)))
        return tf.where(is_near, whole * near, whole - far)

    return precision.in_float32(compute, whole, x, y)
