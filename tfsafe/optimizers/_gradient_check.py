"""Which elements of a gradient an optimizer can digest, and what replaces the rest."""

from typing import Any

import tensorflow as tf

from tfsafe._limits import LIMITS

# `SafeOptimizer` derives these numbers.
DEFAULT_LIMITS = {
    "float16": LIMITS["float16"].max,
    "bfloat16": 1e15,
    "float32": 1e15,
    "float64": 1e150,
}


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
    if limit is None:
        limit = DEFAULT_LIMITS[tf.as_dtype(variable.dtype).real_dtype.name]
    magnitude = tf.abs(_values(gradient))
    largest = LIMITS[magnitude.dtype.name].max
    if is_overwritten(variable):
        limit = largest
    # At most the largest finite number, lest infinity pass.
    bound = min(limit * (1.0 if scale is None else scale), largest)
    return magnitude <= tf.constant(bound, magnitude.dtype)


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
    values = _values(gradient)
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


def _values(gradient: Any) -> tf.Tensor:
    is_sparse = isinstance(gradient, tf.IndexedSlices)
    return gradient.values if is_sparse else gradient
