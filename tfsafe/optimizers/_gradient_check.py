"""Finds the elements of a gradient that an optimizer cannot use, and replaces them."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tensorflow as tf

from tfsafe import _compat
from tfsafe._limits import LIMITS
from tfsafe.ops.nn import clipping

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
    # Use at most the largest finite number, so that infinity does not pass.
    largest = LIMITS[magnitude.dtype.name].max
    bound = min(_scaled_limit(variable, limit, scale), largest)
    return magnitude <= tf.constant(bound, magnitude.dtype)


def _scaled_limit(variable: Any, limit: float | None, scale: float | None) -> float:
    if is_overwritten(variable):
        return math.inf
    if limit is None:
        limit = DEFAULT_LIMITS[tf.as_dtype(variable.dtype).real_dtype.name]
    return limit if scale is None else limit * scale


def half_squares(gradients: Sequence[Any]) -> list[tf.Tensor | None]:
    """Returns `half_of_squares` of each gradient."""
    return [
        None if each is None else clipping.half_of_squares(values_of(each))
        for each in gradients
    ]


def is_short(
    halves: Sequence[tf.Tensor | None],
    variables: Sequence[Any],
    limit: float | None,
    scale: float | None,
) -> tf.Tensor:
    """Returns whether the squares alone show that all elements are within the limit.

    If not, each element must be tested: the square of a number within it can overflow.

    Args:
      halves: Results of `half_squares`.
      variables: The variables.
      limit: As in `is_within`.
      scale: As in `is_within`.

    Returns:
      Boolean scalar `Tensor`.
    """
    pairs = zip(halves, variables, strict=True)
    known = [(half, variable) for half, variable in pairs if half is not None]
    has_float64 = any(half.dtype == tf.float64 for half, _ in known)
    dtype = tf.float64 if has_float64 else tf.float32
    bound = min(_scaled_limit(variable, limit, scale) for _, variable in known)
    # One element above the bound gives a sum of twice this, so rounding cannot hide it.
    most = min(bound * bound / 4, LIMITS[dtype.name].max)
    if most < LIMITS["float32"].tiny:
        # Its square may have become 0.
        return tf.constant(False)
    return tf.add_n([tf.cast(half, dtype) for half, _ in known]) <= most


def nonfinite_counts(
    is_known_short: tf.Tensor,
    within: Callable[[], Sequence[tf.Tensor | None]],
    positions: Sequence[int],
    size: int,
    in_elements: bool,
) -> tf.Tensor:
    """Returns for each variable a number above 0 if it failed on any replica.

    Args:
      is_known_short: Result of `is_short`. Only if it is False, elements are tested.
      within: Returns the results of `is_within`.
      positions: Position of the variable of each.
      size: How many variables there are.
      in_elements: Whether to return the number of failed elements on all replicas.

    Returns:
      `Tensor` of shape `[size]`.
    """
    dtype = tf.int64 if in_elements else tf.float32

    def counted() -> tf.Tensor:
        counts = [tf.zeros([], dtype)] * size
        for position, ok in zip(positions, within(), strict=True):
            if ok is not None and in_elements:
                # Do not use `~ok`: TensorFlow's graph optimizer turns the negation of
                # `<=` into `>`, which a NaN fails as well.
                passed = tf.reduce_sum(tf.cast(ok, dtype))
                counts[position] = tf.size(ok, dtype) - passed
            elif ok is not None:
                # Do not use the largest magnitude: XLA's `reduce_max` drops NaN on a
                # CPU.
                counts[position] = tf.cast(~tf.reduce_all(ok), dtype)
        return tf.stack(counts)

    # The sum stays out of the branch: replicas must not meet within one.
    counts = tf.cond(is_known_short, lambda: tf.zeros([size], dtype), counted)
    return summed_over_replicas(counts)


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

    Args:
      is_nonfinite: Whether any element failed, the same on all replicas.
      pairs: Gradients with their variables.
      within: Returns the third argument of `replace` for each.

    Returns:
      `Tensor`, `IndexedSlices` or None for each gradient.
    """

    def in_branch() -> list[tf.Tensor]:
        triples = zip(pairs, within(), strict=True)
        return values_of_all(replace(*pair, ok) for pair, ok in triples)

    def values_of_all(gradients: Iterable[Any]) -> list[tf.Tensor]:
        return [values_of(each) for each in gradients if each is not None]

    gradients = [gradient for gradient, _ in pairs]
    if _compat.is_traced_for_xla():
        values = in_branch()
    else:
        values = tf.cond(is_nonfinite, in_branch, lambda: values_of_all(gradients))
    rest = iter(values)
    return [None if g is None else _with_values(g, next(rest)) for g in gradients]


def nothing_left(
    is_nonfinite: tf.Tensor,
    pairs: Sequence[tuple[Any, Any]],
    within: Callable[[], Sequence[tf.Tensor | None]],
) -> tf.Tensor:
    """Returns whether elements failed and all others are 0, on all replicas.

    Args:
      is_nonfinite: As in `replaced`.
      pairs: As in `replaced`.
      within: As in `replaced`.
    """

    def left() -> tf.Tensor:
        flags = [
            tf.reduce_any(ok & tf.not_equal(values_of(gradient), 0))
            for (gradient, variable), ok in zip(pairs, within(), strict=True)
            if gradient is not None and not is_overwritten(variable)
        ]
        return tf.cast(tf.reduce_any([False, *flags]), tf.float32)

    # The sum stays out of the branch: replicas must not meet within one.
    some = tf.cond(is_nonfinite, left, lambda: tf.ones([]))
    return tf.equal(summed_over_replicas(some), 0)


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
    # Of `zeros_like`, the graph optimizer makes a constant that stays in memory.
    neutral = (
        tf.convert_to_tensor(variable, values.dtype)
        if is_overwritten(variable)
        else tf.zeros([], values.dtype)
    )
    return _with_values(gradient, tf.where(within, values, neutral))


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
