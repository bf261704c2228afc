"""Computes means and sums of powers whose terms are out of the range of their dtype."""

from collections.abc import Callable, Sequence

import tensorflow as tf

from tfsafe import ops
from tfsafe.ops.formulas import removable
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
) -> tf.Tensor:
    """Computes `mean(x ** p) ** (1 / p)`, or that of the sum.

    Args:
      x: The numbers.
      order: The power p.
      inverse: 1 / p.
      axes: Of the mean, None for all.
      keepdims: Whether the result keeps them.
      reduce: `tf.reduce_mean` or `tf.reduce_sum`.

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
        if reduce is tf.reduce_mean:
            is_near = tf.abs(order) < _NEAR
            p = tf.where(is_near, order, tf.zeros_like(order))
            is_near &= tf.reduce_all(y > 0, axes, keepdims=keepdims)
            logs = ops.log(tf.where(y > 0, y, tf.ones_like(y)))
            rise = logs * removable.expm1_over_x(p * logs)
            mean = tf.reduce_mean(rise, axes, keepdims=keepdims)
            limit = ops.exp(mean * removable.log1p_over_x(p * mean))
            root = tf.where(is_near, limit, root)
        return root * scale

    return precision.in_float32(compute, x, order, inverse)
