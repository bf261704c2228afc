"""Restricts the mean that Keras shows as `loss` to batches whose loss is finite."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf


class FiniteMean:
    """Replaces the `update_state` of one `keras.metrics.Mean`.

    While it is active, a value of a training step that is not finite gets weight 0.
    The switch is a variable, so that it also affects a step that is already traced.
    """

    def __init__(self, update_state: Any):
        self._update_state = update_state
        self.active = tf.Variable(False, trainable=False)
        # How many training steps are on the stack: one for each replica.
        self.steps = 0

    def __call__(self, values: Any, sample_weight: Any = None) -> Any:
        """Updates the mean, with the arguments of `keras.metrics.Mean`."""
        if not self.steps:
            return self._update_state(values, sample_weight)
        values = tf.convert_to_tensor(values)
        weight = tf.cast(1 if sample_weight is None else sample_weight, values.dtype)
        left_out = tf.logical_and(self.active, ~tf.math.is_finite(values))
        # Replace value and weight: 0 * NaN is still NaN in the weighted sum.
        return self._update_state(
            tf.where(left_out, tf.zeros_like(values), values),
            tf.where(left_out, tf.zeros_like(weight), weight),
        )


@contextlib.contextmanager
def within_step(means: Sequence[FiniteMean]) -> Iterator[None]:
    """Marks the values that the means receive as those of a training step.

    They take all other values unchanged, above all those of a validation, even if an
    interrupt left them active.
    """
    for mean in means:
        mean.steps += 1
    try:
        yield
    finally:
        for mean in means:
            mean.steps -= 1


def of_losses(model: keras.Model) -> list[FiniteMean]:
    """Puts a `FiniteMean` before each running loss of a compiled model, once.

    Args:
      model: Compiled. A training step that was traced before the first call is built
        again, because it holds the plain mean.

    Returns:
      The replacements, old and new, inactive unless they were active before.
    """
    trackers = [
        metric
        for metric in model.metrics
        if type(metric) is keras.metrics.Mean and metric.name.endswith("loss")
    ]
    plain = [t for t in trackers if not isinstance(t.update_state, FiniteMean)]
    for tracker in plain:
        tracker.update_state = FiniteMean(tracker.update_state)
    if plain and model.train_function is not None:
        model.make_train_function(force=True)
    return [tracker.update_state for tracker in trackers]
