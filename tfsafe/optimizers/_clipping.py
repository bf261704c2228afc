"""Clips gradients by a norm that cannot overflow, and skips steps with outliers."""

import math
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfsafe.ops.nn import clipping
from tfsafe.optimizers import _counters, _gradient_check
from tfsafe.optimizers._counters import AddVariable


class GradientClipping:
    """Clips in place of the inner optimizer, if one of two norms is given.

    Attributes:
      is_on: Whether a norm was given. It stays so, whatever is assigned to the norms
        later: the inner optimizer never clips then, and nothing is clipped twice.
    """

    def __init__(self, clipnorm: float | None, global_clipnorm: float | None):
        self.clipnorm = clipnorm
        self.global_clipnorm = global_clipnorm
        self.is_on = clipnorm is not None or global_clipnorm is not None

    def lets_all_finite_pass(self) -> bool:
        """Returns whether no clipped gradient exceeds the default limits."""
        largest = _gradient_check.DEFAULT_LIMITS["float32"]
        norm = self._norm
        return norm is not None and norm <= largest

    def clip(
        self,
        grads: Sequence[Any],
        variables: Sequence[Any],
        scale: float | None,
        halves: Sequence[tf.Tensor | None],
        is_replaced: tf.Tensor,
    ) -> list[Any]:
        """Returns the gradients, clipped as Keras would clip them.

        Args:
          grads: `Tensor`, `IndexedSlices` or None for each variable.
          variables: The variables. Those that are overwritten are not clipped.
          scale: Factor by which the loss was scaled, and the gradients with it, or
            None. The inner optimizer divides by it after the clipping.
          halves: `half_squares` of the gradients before elements were replaced.
          is_replaced: Whether any were.
        """
        result = list(grads)
        norm = self._norm
        if norm is None:
            return result
        clipped = [
            index
            for index, variable in enumerate(variables)
            if grads[index] is not None and not _gradient_check.is_overwritten(variable)
        ]
        clip = clipping.clip_each if self.clipnorm else clipping.clip_together
        known = [_with_shape(grads[index], variables[index]) for index in clipped]
        scaled_norm = norm * (scale or 1.0)
        known_halves = [halves[index] for index in clipped]
        results = clip(known, scaled_norm, known_halves, ~is_replaced)
        for index, gradient in zip(clipped, results, strict=True):
            result[index] = gradient
        return result

    @property
    def _norm(self) -> float | None:
        return self.clipnorm or self.global_clipnorm or None


def _with_shape(gradient: Any, variable: Any) -> Any:
    if isinstance(gradient, tf.IndexedSlices) and gradient.dense_shape is None:
        shape = tf.constant(tuple(variable.shape), gradient.indices.dtype)
        return tf.IndexedSlices(gradient.values, gradient.indices, shape)
    return gradient


# A norm below this many times the usual one is not an outlier, however small the
# deviation: otherwise rounding errors of an almost constant norm would be outliers.
_LEAST_FACTOR = 2.0


class OutlierFilter:
    """Compares the logarithm of the gradients' global norm with its running mean.

    Norms are products of many factors, so that their logarithm is nearly normal, and
    one norm that is ten times too long shifts the mean over n steps by log(10) / n
    only. The mean includes only steps that were taken unchanged: no non-finite value,
    no outlier and no zero.

    Args:
      threshold: How many deviations above the mean an outlier is.
      window: How many steps the mean is over. No step is an outlier before there are
        as many.
      patience: After this many outliers in a row, the statistic starts over.
      add_variable: `add_variable` of the Keras optimizer that owns the variables.

    Attributes:
      counter: How many steps were outliers.
      statistic: Mean, variance, steps in them (at most `window`), outliers in a row.
    """

    def __init__(
        self,
        threshold: float,
        window: int,
        patience: int,
        add_variable: AddVariable,
    ):
        self._threshold = threshold
        self._window = window
        self._patience = patience
        self.counter = _counters.new_counter(add_variable, "outlier_steps")
        self.statistic = add_variable(
            (4,),
            "zeros",
            "float32",
            aggregation="only_first_replica",
            name="gradient_norm_statistic",
        )

    def skips(self, log_norm: tf.Tensor, is_nonfinite: tf.Tensor) -> tf.Tensor:
        """Returns whether a step is an outlier; counts it, or updates the statistic.

        Args:
          log_norm: Logarithm of the norm; -infinity for a step that is skipped anyway.
          is_nonfinite: Whether the gradients were non-finite, and were replaced.
        """
        is_outlier = self._update(log_norm, is_nonfinite)
        self.counter.assign_add(tf.cast(is_outlier, tf.int64))
        return is_outlier

    def _update(self, log_norm: tf.Tensor, is_nonfinite: tf.Tensor) -> tf.Tensor:
        mean, variance, count, streak = tf.unstack(tf.convert_to_tensor(self.statistic))
        margin = tf.maximum(
            self._threshold * tf.sqrt(variance), math.log(_LEAST_FACTOR)
        )
        is_high = (count >= self._window) & (log_norm - mean > margin)
        streak = tf.where(is_nonfinite, streak, tf.where(is_high, streak + 1.0, 0.0))
        starts_over = ~is_nonfinite & (streak >= self._patience)
        is_outlier = is_high & ~starts_over
        enters = ~is_nonfinite & ~is_outlier & tf.math.is_finite(log_norm)
        # The mean over all steps at first, and then an exponential one: no start-up
        # bias to correct.
        new_count = tf.minimum(tf.where(starts_over, 0.0, count) + 1.0, self._window)
        weight = 1.0 / new_count
        excess = log_norm - mean
        entered = tf.stack([
            mean + weight * excess,
            (1.0 - weight) * (variance + weight * tf.square(excess)),
            new_count,
        ])
        kept = tf.stack([mean, variance, count])
        streak = tf.where(starts_over, 0.0, streak)
        self.statistic.assign(
            tf.concat([tf.where(enters, entered, kept), [streak]], axis=0)
        )
        return is_outlier


def outlier_filter(
    threshold: float | None, window: int, patience: int, add_variable: AddVariable
) -> OutlierFilter | None:
    """Returns a filter, or None without a threshold."""
    if threshold is None:
        return None
    return OutlierFilter(threshold, window, patience, add_variable)


def log_global_norm(
    gradients: Sequence[Any], variables: Sequence[Any], scale: float | None
) -> tf.Tensor:
    """Returns the logarithm of the norm of all gradients, on all replicas together.

    It neither overflows nor underflows. Rows that come more than once in an
    `IndexedSlices` count one by one.

    Returns:
      float32 scalar `Tensor`; -infinity if all are 0, NaN if one is not finite.
    """
    log_squares = [
        tf.cast(_log_of_squares(gradient), tf.float32)
        for gradient, variable in zip(gradients, variables, strict=True)
        if gradient is not None and not _gradient_check.is_overwritten(variable)
    ]
    nothing = tf.constant(-math.inf)
    total = tf.reduce_logsumexp(tf.stack([nothing, *log_squares]))
    if tf.distribute.has_strategy():
        # float64 can hold the square of any float32 number.
        squares = tf.exp(tf.cast(total, tf.float64))
        squares = _gradient_check.summed_over_replicas(squares)
        total = tf.cast(tf.math.log(squares), tf.float32)
    return 0.5 * total - math.log(scale or 1.0)


def _log_of_squares(gradient: Any) -> tf.Tensor:
    magnitude = tf.abs(_gradient_check.values_of(gradient))
    if magnitude.dtype.size < 4:
        magnitude = tf.cast(magnitude, tf.float32)
    # The maximum of an empty tensor is -infinity.
    largest = tf.maximum(tf.reduce_max(magnitude), 0)
    fractions = tf.math.divide_no_nan(magnitude, largest)
    return 2 * tf.math.log(largest) + tf.math.log(tf.reduce_sum(tf.square(fractions)))
