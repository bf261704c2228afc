"""Clipping by the Euclidean norm, where the squares would overflow as well."""

from collections.abc import Sequence
from typing import TypeAlias

import tensorflow as tf

from tfsafe.ops import _precision

Gradient: TypeAlias = tf.Tensor | tf.IndexedSlices


def clip_by_norm(gradients: Sequence[Gradient], clip_norm: float) -> list[Gradient]:
    """Scales each gradient whose norm is above `clip_norm` down to that norm.

    Keras squares first: a gradient of 3e19 becomes 0, in float16 one of 300.

    Args:
      gradients: Floating `Tensor`s and `IndexedSlices`.
      clip_norm: Largest norm, positive.

    Returns:
      The gradients. One whose norm is not above `clip_norm` is returned bit for bit.

    Numerics:
      error          <= 3 ulp where clipped; half precision is rounded once
      all 0          0
      NaN, infinity  NaN somewhere in the result: they must be dealt with before
      `IndexedSlices`
                     stay sparse; rows that come more than once count as their sum
    """
    return [_clipped([gradient], clip_norm)[0] for gradient in gradients]


def clip_by_global_norm(
    gradients: Sequence[Gradient], clip_norm: float
) -> list[Gradient]:
    """Scales all gradients by one factor if their common norm is above `clip_norm`.

    Keras squares first: a gradient of 3e19 makes everything NaN.

    Args:
      gradients: Floating `Tensor`s and `IndexedSlices`.
      clip_norm: Largest norm, positive.

    Returns:
      The gradients, with the `Numerics` of `clip_by_norm`.
    """
    return _clipped(gradients, clip_norm) if gradients else []


def global_norm(gradients: Sequence[Gradient]) -> tuple[tf.Tensor, tf.Tensor]:
    """Computes the norm of all gradients together in a form that cannot overflow.

    Args:
      gradients: At least one floating `Tensor` or `IndexedSlices`.

    Returns:
      A length from 1 to 4 times the root of the number of elements, 0 if they are all
      0, and a power of 2. The norm is their product. Their dtype is float64 if a
      gradient's is, else float32.
    """
    dtype = _wide(gradients)
    powers, lengths = zip(
        *(_norm(gradient, dtype) for gradient in gradients), strict=True
    )
    length = tf.stack(lengths)
    # A gradient of zeros has the power 1, which must not outweigh a tiny one.
    power = tf.where(length > 0, tf.stack(powers), tf.zeros_like(length))
    shares, power, _ = _precision.scaled(power, None)
    return tf.norm(shares * length), tf.squeeze(power)


def _clipped(gradients: Sequence[Gradient], clip_norm: float) -> list[Gradient]:
    length, power = global_norm(gradients)
    is_above = length * power > clip_norm
    factor = clip_norm / tf.where(is_above, length, tf.ones_like(length))

    def clip(values: tf.Tensor) -> tf.Tensor:
        # In this order: the norm itself may be above the largest number. And no product
        # of three factors, which TensorFlow's graph optimizer would reorder.
        scaled = tf.cast(values, length.dtype) / power * factor
        return tf.where(is_above, tf.cast(scaled, values.dtype), values)

    return [
        tf.IndexedSlices(clip(gradient.values), gradient.indices, gradient.dense_shape)
        if isinstance(gradient, tf.IndexedSlices)
        else clip(gradient)
        for gradient in gradients
    ]


def _norm(gradient: Gradient, dtype: tf.DType) -> tuple[tf.Tensor, tf.Tensor]:
    is_sparse = isinstance(gradient, tf.IndexedSlices)
    values = tf.cast(gradient.values if is_sparse else gradient, dtype)
    scaled, power, _ = _precision.scaled(values, None)
    if is_sparse:
        # After the scaling, so that a sum of equal rows does not overflow either.
        scaled = tf.math.unsorted_segment_sum(
            scaled, gradient.indices, gradient.dense_shape[0]
        )
    return tf.squeeze(power), tf.norm(scaled)


def _wide(gradients: Sequence[Gradient]) -> tf.DType:
    has_float64 = any(gradient.dtype == tf.float64 for gradient in gradients)
    return tf.float64 if has_float64 else tf.float32
