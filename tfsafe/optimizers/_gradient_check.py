"""Which elements of a gradient an optimizer can digest, and what replaces the rest."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfsafe._limits import LIMITS

# By the dtype in which the optimizer computes; `SafeOptimizer` derives these numbers.
DEFAULT_LIMITS = {"float32": 1e15, "float64": 1e150}


def is_within(
    gradient: Any, variable: Any, limit: float | None, scale: float | None
) -> tf.Tensor | None:
    """Tests `abs(gradient) <= limit` elementwise, which NaN and infinity fail.

    Args:
      gradient: `Tensor`, `IndexedSlices` or None.
      variable: Its variable. The optimizer computes in this dtype.
      limit: Largest magnitude allowed; None for the default of the dtype.
      scale: Factor by which the loss was scaled, and the gradient with it, or None.

    Returns:
      Boolean `Tensor` with the shape of the gradient's values, None without one.
    """
    if gradient is None:
        return None
    magnitude = tf.abs(values_of(gradient))
    largest = LIMITS[magnitude.dtype.name].max
    if is_overwritten(variable):
        limit = largest
    elif limit is None:
        limit = DEFAULT_LIMITS[tf.as_dtype(variable.dtype).real_dtype.name]
    # At most the largest finite number, lest infinity pass.
    bound = min(limit * (1.0 if scale is None else scale), largest)
    return magnitude <= tf.constant(bound, magnitude.dtype)


def bad_counts(
    within: Sequence[tf.Tensor | None],
    positions: Sequence[int],
    size: int,
    in_elements: bool,
) -> tf.Tensor:
    """Returns for each variable a number above 0 if it is bad on any replica.

    Args:
      within: Results of `is_within`.
      positions: The variable of each.
      size: How many variables there are.
      in_elements: Whether the number is to be that of the bad elements on all replicas.

    Returns:
      `Tensor` of shape `[size]`.
    """
    # Reductions across devices know no booleans.
    dtype = tf.int64 if in_elements else tf.float32
    counts = [tf.zeros([], dtype)] * size
    for position, ok in zip(positions, within, strict=True):
        if ok is not None and in_elements:
            # Not by `~ok`: TensorFlow's graph optimizer makes `>` of the opposite of
            # `<=`, which a NaN fails as well.
            good = tf.reduce_sum(tf.cast(ok, dtype))
            counts[position] = tf.size(ok, dtype) - good
        elif ok is not None:
            # Not by the largest magnitude: XLA's `reduce_max` drops NaN on a CPU.
            counts[position] = tf.cast(~tf.reduce_all(ok), dtype)
    total = tf.stack(counts)
    if tf.distribute.has_strategy():
        replica = tf.distribute.get_replica_context()
        total = replica.all_reduce(tf.distribute.ReduceOp.SUM, total)
    return total


def replace(gradient: Any, variable: Any, within: tf.Tensor | None) -> Any:
    """Replaces the elements that failed by what leaves the variable alone: mostly 0.

    Args:
      gradient: `Tensor`, `IndexedSlices` or None.
      variable: Its variable.
      within: Result of `is_within`, or one boolean for all elements.

    Returns:
      `Tensor`, `IndexedSlices` or None, as the gradient.
    """
    if gradient is None:
        return None
    values = values_of(gradient)
    neutral = (
        tf.convert_to_tensor(variable, values.dtype)
        if is_overwritten(variable)
        else tf.zeros_like(values)
    )
    values = tf.where(within, values, neutral)
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
    return values


def is_overwritten(variable: Any) -> bool:
    """Returns whether the "gradient" is the variable's next value (float8 scales)."""
    return getattr(variable, "overwrite_with_gradient", False)


def values_of(gradient: Any) -> tf.Tensor:
    """Returns the gradient, or the values of an `IndexedSlices`."""
    is_sparse = isinstance(gradient, tf.IndexedSlices)
    return gradient.values if is_sparse else gradient
