"""Finds the elements of a gradient that an optimizer cannot use, and replaces them."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tensorflow as tf

from tfsafe import _compat
from tfsafe._limits import LIMITS

# By the dtype in which the optimizer computes. It squares a gradient, and a clipping
# norm sums the squares of N elements, so that the limit must stay below sqrt(max / N):
# 1e15 allows N = 3.4e8 in float32, 1e150 allows 1.8e8 in float64. Gradients of a model
# that learns are many orders of magnitude smaller; every finite float16 one passes.
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
    # Use at most the largest finite number, so that infinity does not pass.
    bound = min(limit * (1.0 if scale is None else scale), largest)
    return magnitude <= tf.constant(bound, magnitude.dtype)


def nonfinite_counts(
    within: Sequence[tf.Tensor | None],
    positions: Sequence[int],
    size: int,
    in_elements: bool,
) -> tf.Tensor:
    """Returns for each variable a number above 0 if it failed on any replica.

    Args:
      within: Results of `is_within`.
      positions: Position of the variable of each.
      size: How many variables there are.
      in_elements: Whether to return the number of failed elements on all replicas.

    Returns:
      `Tensor` of shape `[size]`.
    """
    dtype = tf.int64 if in_elements else tf.float32
    counts = [tf.zeros([], dtype)] * size
    for position, ok in zip(positions, within, strict=True):
        if ok is not None and in_elements:
            # Do not use `~ok`: TensorFlow's graph optimizer turns the negation of `<=`
            # into `>`, which a NaN fails as well.
            passed = tf.reduce_sum(tf.cast(ok, dtype))
            counts[position] = tf.size(ok, dtype) - passed
        elif ok is not None:
            # Do not use the largest magnitude: XLA's `reduce_max` drops NaN on a CPU.
            counts[position] = tf.cast(~tf.reduce_all(ok), dtype)
    return summed_over_replicas(tf.stack(counts))


def all_within(
    gradients: Sequence[Any],
    variables: Sequence[Any],
    limit: float | None,
    scale: float | None,
) -> list[tf.Tensor | None]:
    """Returns `is_within` of each gradient."""
    pairs = zip(gradients, variables, strict=True)
    return [is_within(*pair, limit, scale) for pair in pairs]


def whole(flags: tf.Tensor, positions: Sequence[int]) -> list[tf.Tensor]:
    """Returns for each gradient whether none of its elements failed."""
    return [~flags[position] for position in positions]


def replaced(
    is_nonfinite: tf.Tensor,
    pairs: Sequence[tuple[Any, Any]],
    within: Callable[[], Sequence[tf.Tensor | None]],
) -> list[Any]:
    """Replaces the failed elements of all gradients, if there are any.

    In a branch, so that a finite step holds no second copy of them. XLA holds none
    without a branch, and copies what goes through one.

    Returns:
      `Tensor`, `IndexedSlices` or None, as the gradients.
    """

    def in_branch() -> list[tf.Tensor]:
        triples = zip(pairs, within(), strict=True)
        return present(replace(*pair, ok) for pair, ok in triples)

    def present(gradients: Iterable[Any]) -> list[tf.Tensor]:
        return [values_of(each) for each in gradients if each is not None]

    gradients = [gradient for gradient, _ in pairs]
    if _compat.is_traced_for_xla():
        values = iter(in_branch())
    else:
        values = iter(tf.cond(is_nonfinite, in_branch, lambda: present(gradients)))
    return [None if g is None else _with_values(g, next(values)) for g in gradients]


def _with_values(gradient: Any, values: tf.Tensor) -> Any:
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
    return values


def replace(gradient: Any, variable: Any, within: tf.Tensor | None) -> Any:
    """Replaces the failed elements by a value that keeps the variable, mostly 0.

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
    return _with_values(gradient, tf.where(within, values, neutral))


def all_zero(
    is_nonfinite: tf.Tensor, grads: Sequence[Any], variables: Sequence[Any]
) -> tf.Tensor:
    """Returns whether all elements are 0 after the failed ones were replaced.

    Args:
      is_nonfinite: Whether any element failed, the same on all replicas. The
        gradients of a finite step are not read.
      grads: Results of `replace`.
      variables: The variables.

    Returns:
      Boolean scalar `Tensor`, the same on all replicas; False for a finite step.
    """

    def holds_any() -> tf.Tensor:
        flags = [
            tf.reduce_any(tf.not_equal(values_of(gradient), 0))
            for gradient, variable in zip(grads, variables, strict=True)
            if gradient is not None and not is_overwritten(variable)
        ]
        return tf.cast(tf.reduce_any([False, *flags]), tf.float32)

    # The sum stays out of the branch: replicas must not meet within one.
    left = tf.cond(is_nonfinite, holds_any, lambda: tf.ones([]))
    return tf.equal(summed_over_replicas(left), 0)


def summed_over_replicas(value: tf.Tensor) -> tf.Tensor:
    """Returns the sum of numbers over the replicas, which cannot reduce booleans."""
    if not tf.distribute.has_strategy():
        return value
    replica = tf.distribute.get_replica_context()
    return replica.all_reduce(tf.distribute.ReduceOp.SUM, value)


def is_overwritten(variable: Any) -> bool:
    """Returns whether the "gradient" is the variable's next value (float8 scales)."""
    return getattr(variable, "overwrite_with_gradient", False)


def values_of(gradient: Any) -> tf.Tensor:
    """Returns the gradient, or the values of an `IndexedSlices`."""
    is_sparse = isinstance(gradient, tf.IndexedSlices)
    return gradient.values if is_sparse else gradient
