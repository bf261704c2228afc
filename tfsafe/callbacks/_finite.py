"""Finds what is not finite in a training, and keeps it out of running losses."""

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfsafe import _args

# Keras' logs of a batch or an epoch.
Logs = dict[str, Any] | None
SUGGESTION = (
    "To see which line makes the first non-finite value, train once with "
    "`tfsafe.checked(model)`."
)


class FiniteCheck:
    """Finds the variables that hold NaN or infinity, in one compiled call if none does.

    Args:
      variables: Returns the variables. Called at the first check, when Keras has built
        what it builds late. Those without a floating dtype always pass.
    """

    def __init__(self, variables: Callable[[], Iterable[Any]]):
        self._variables = variables
        self._checked: list[Any] = []
        self._all_pass: Any = None

    def broken(self) -> list[str]:
        """Returns the paths of the variables that are not finite."""
        if self._all_pass is None:
            self._checked = [v for v in self._variables() if _is_float(v)]
            self._all_pass = tf.function(
                lambda: _sums_are_finite(self._checked), autograph=False
            )
        if self._all_pass():
            return []
        paths = [
            getattr(variable, "path", variable.name)
            for variable in self._checked
            if not tf.reduce_all(tf.math.is_finite(variable))
        ]
        # The float32 copy of a variable has the same path.
        return list(dict.fromkeys(paths))


def nonfinite_losses(logs: Logs) -> list[str]:
    """Returns which losses in Keras' logs are NaN or infinite, as `val_loss is nan`."""
    return [
        f"{name} is {float(value)}"
        for name, value in (logs or {}).items()
        if (name == "loss" or name.endswith("_loss")) and not is_finite(value)
    ]


def is_finite(value: Any) -> bool:
    """Returns whether a number of Keras' logs is finite."""
    return math.isfinite(float(value))


def is_monitored(monitor: str, logs: Logs) -> bool:
    """Returns whether a monitored value can be compared: finite, missing or no scalar.

    Keras warns of the latter two.
    """
    value = (logs or {}).get(monitor)
    return value is None or np.ndim(value) > 0 or is_finite(value)


def _is_float(variable: Any) -> bool:
    # Keras takes models whose `weights` are any objects.
    dtype = getattr(variable, "dtype", None)
    return dtype is not None and tf.as_dtype(dtype) in _args.FLOATS


def _sums_are_finite(variables: list[Any]) -> tf.Tensor:
    # A sum costs half as much as a test of each element, and is never finite if an
    # element is not. A sum that overflows only costs the exact test that follows.
    sums = [tf.reduce_sum(tf.convert_to_tensor(v)) for v in variables]
    as_float32 = [tf.cast(each, tf.float32) for each in sums]
    return tf.reduce_all(tf.math.is_finite(tf.stack([tf.constant(0.0), *as_float32])))


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
