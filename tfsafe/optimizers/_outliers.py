"""Which steps have a gradient that is much longer than it uses to be."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from tfsafe.optimizers import _gradient_check

# A norm below this many times the usual one is no outlier, however small the deviation.
_LEAST_FACTOR = 2.0


class NormStatistic:
    """A running mean and deviation of the logarithm of the gradients' global norm.

    Only steps that were taken as they were enter it, so that no bad value can spoil it.

    Args:
      threshold: How many deviations above the mean an outlier is.
      window: How many steps the mean is over. None is judged before there are as many.
      patience: This many outliers in a row are a new level, where it starts anew.
      add_variable: `add_variable` of the Keras optimizer that owns the statistic.
    """

    def __init__(
        self,
        threshold: float,
        window: int,
        patience: int,
        add_variable: Callable[..., keras.Variable],
    ):
        self._threshold = threshold
        self._window = window
        self._patience = patience
        # Mean, variance, steps in them (at most `window`), outliers in a row.
        self.variable = add_variable(
            (4,),
            "zeros",
            "float32",
            aggregation="only_first_replica",
            name="gradient_norm_statistic",
        )

    def leaves_out(self, log_norm: tf.Tensor, is_bad: tf.Tensor) -> tf.Tensor:
        """Judges a step, and takes it into the statistic unless it is an outlier.

        Args:
          log_norm: Logarithm of the norm: -infinity where there is nothing to judge.
          is_bad: Whether the gradients were bad, and were mended.

        Returns:
          Boolean scalar `Tensor`: whether to leave the step out.
        """
        mean, variance, count, streak = tf.unstack(tf.convert_to_tensor(self.variable))
        margin = tf.maximum(
            self._threshold * tf.sqrt(variance), math.log(_LEAST_FACTOR)
        )
        is_high = (count >= self._window) & (log_norm - mean > margin)
        streak = tf.where(is_bad, streak, tf.where(is_high, streak + 1.0, 0.0))
        starts_anew = ~is_bad & (streak >= self._patience)
        left_out = is_high & ~starts_anew
        enters = ~is_bad & ~left_out & tf.math.is_finite(log_norm)
        # The mean over all steps at first, and then an exponential one: no start-up
        # bias to correct.
        new_count = tf.minimum(tf.where(starts_anew, 0.0, count) + 1.0, self._window)
        weight = 1.0 / new_count
        excess = log_norm - mean
        entered = tf.stack([
            mean + weight * excess,
            (1.0 - weight) * (variance + weight * tf.square(excess)),
            new_count,
        ])
        kept = tf.stack([mean, variance, count])
        streak = tf.where(starts_anew, 0.0, streak)
        self.variable.assign(
            tf.concat([tf.where(enters, entered, kept), [streak]], axis=0)
        )
        return left_out


def log_global_norm(
    gradients: Sequence[Any], variables: Sequence[Any], scale: float | None
) -> tf.Tensor:
    """Returns the logarithm of the norm of all gradients, on all replicas together.

    It neither overflows nor underflows. Rows that come more than once in an
    `IndexedSlices` count one by one.

    Args:
      gradients: `Tensor`, `IndexedSlices` or None for each variable.
      variables: The variables.
      scale: Factor by which the loss was scaled, and the gradients with it, or None.

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
        # float64 holds the square of whatever float32 holds.
        squares = tf.exp(tf.cast(total, tf.float64))
        squares = _gradient_check.summed_over_replicas(squares)
        total = tf.cast(tf.math.log(squares), tf.float32)
    return 0.5 * total - math.log(scale or 1.0)


def _log_of_squares(gradient: Any) -> tf.Tensor:
    magnitude = tf.abs(_gradient_check.values_of(gradient))
    if magnitude.dtype.size < 4:
        magnitude = tf.cast(magnitude, tf.float32)
    # At least 0: of nothing, the largest is -infinity.
    largest = tf.maximum(tf.reduce_max(magnitude), 0)
    shares = tf.math.divide_no_nan(magnitude, largest)
    return 2 * tf.math.log(largest) + tf.math.log(tf.reduce_sum(tf.square(shares)))
