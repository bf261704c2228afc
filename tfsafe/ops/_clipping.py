"""Clipping by the Euclidean norm, where the squares would overflow as well."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import tensorflow as tf

from tfsafe._limits import LIMITS
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
      error          <= 3 ulp where clipped, and half the relative error of
                     TensorFlow's sum of the squares; half precision is rounded once
      all 0          0
      NaN, infinity  the result is not finite: they must be dealt with before
      `IndexedSlices`
                     stay sparse; rows that come more than once count as their sum
    """
    return _clipped([[gradient] for gradient in gradients], clip_norm)


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
    return _clipped([gradients], clip_norm) if gradients else []


def _clipped(groups: Sequence[Sequence[Gradient]], clip_norm: float) -> list[Gradient]:
    """Clips each group of gradients by its common norm."""
    gradients = [gradient for group in groups for gradient in group]
    if not gradients:
        return []
    has_float64 = any(gradient.dtype == tf.float64 for gradient in gradients)
    dtype = tf.float64 if has_float64 else tf.float32
    squares = tf.stack([
        tf.add_n([_sum_of_squares(_wide(gradient, dtype)) for gradient in group])
        for group in groups
    ])
    # The scaled way takes more passes over the gradients, and hardly ever a step.
    values = tf.cond(
        _are_in_range(squares, clip_norm),
        lambda: _clip_plainly(groups, tf.unstack(squares), clip_norm),
        lambda: _clip_scaled(groups, dtype, clip_norm),
    )
    return [
        _with_values(gradient, value)
        for gradient, value in zip(gradients, values, strict=True)
    ]


def _are_in_range(squares: tf.Tensor, clip_norm: float) -> tf.Tensor:
    limits = LIMITS[squares.dtype.name]
    # Below this, a square may have lost digits to underflow. It does not matter where
    # the norm is far below the one to clip to.
    lowest = limits.tiny / limits.eps
    least = 0.0 if clip_norm**2 >= lowest else lowest
    return tf.reduce_all((squares >= least) & (squares <= limits.max))


def _clip_plainly(
    groups: Sequence[Sequence[Gradient]], squares: Sequence[Any], clip_norm: float
) -> list[tf.Tensor]:
    result = []
    for group, square in zip(groups, squares, strict=True):
        factor = clip_norm / tf.maximum(tf.sqrt(square), clip_norm)
        for gradient in group:
            # A factor of 1 changes no bit.
            clipped = tf.cast(_values(gradient), factor.dtype) * factor
            result.append(tf.cast(clipped, gradient.dtype))
    return result


def _clip_scaled(
    groups: Sequence[Sequence[Gradient]], dtype: tf.DType, clip_norm: float
) -> list[tf.Tensor]:
    result = []
    for group in groups:
        length, power = _length(group, dtype)
        is_above = length * power > clip_norm
        factor = clip_norm / tf.where(is_above, length, tf.ones_like(length))
        for gradient in group:
            values = _values(gradient)
            # In this order: the norm itself may be above the largest number. And no
            # product of three, which TensorFlow's graph optimizer would reorder.
            clipped = tf.cast(values, dtype) / power * factor
            result.append(tf.where(is_above, tf.cast(clipped, values.dtype), values))
    return result


def _length(group: Sequence[Gradient], dtype: tf.DType) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the common norm as a number that cannot overflow, and a power of 2."""
    powers, lengths = [], []
    for gradient in group:
        scaled, power, _ = _precision.scaled(tf.cast(_values(gradient), dtype), None)
        # A sum of equal rows does not overflow after the scaling.
        length = tf.sqrt(_sum_of_squares(_with_values(gradient, scaled)))
        # A gradient of zeros has the power 1, which must not outweigh a tiny one.
        powers.append(tf.where(length > 0, tf.squeeze(power), tf.zeros_like(length)))
        lengths.append(length)
    shares, power, _ = _precision.scaled(tf.stack(powers), None)
    return tf.norm(shares * tf.stack(lengths)), tf.squeeze(power)


def _sum_of_squares(gradient: Gradient) -> tf.Tensor:
    if isinstance(gradient, tf.IndexedSlices):
        gradient = tf.math.unsorted_segment_sum(
            gradient.values, gradient.indices, gradient.dense_shape[0]
        )
    return tf.reduce_sum(tf.square(gradient))


def _wide(gradient: Gradient, dtype: tf.DType) -> Gradient:
    return _with_values(gradient, tf.cast(_values(gradient), dtype))


def _values(gradient: Gradient) -> tf.Tensor:
    is_sparse = isinstance(gradient, tf.IndexedSlices)
    return gradient.values if is_sparse else gradient


def _with_values(gradient: Gradient, values: tf.Tensor) -> Gradient:
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
    return values
