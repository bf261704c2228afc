"""Looks at a training: its `SafeOptimizer`, its variables by role, the user's line."""

import sys
import types
import warnings
from typing import Any

import keras
import tensorflow as tf

from tfsafe import _compat
from tfsafe.graph import is_user_file
from tfsafe.optimizers import SafeOptimizer


class OwnCallback(keras.callbacks.Callback):
    """A callback that says so when `fit` gets its class in place of an instance."""

    def set_model(self, model: Any = None) -> None:
        """Begins with a model, as Keras asks for first.

        Raises:
          TypeError: If it is called on the class.
        """
        if model is None:
            raise TypeError(
                "`callbacks` must be a list of instances. Received: a class of tfsafe. "
                "Call it, as in `callbacks=[tfsafe.NumericsMonitor()]`."
            )
        super().set_model(model)


def safe_optimizer(optimizer: Any) -> SafeOptimizer | None:
    """Returns the `SafeOptimizer` that an optimizer is or wraps, or None."""
    while not (optimizer is None or isinstance(optimizer, SafeOptimizer)):
        optimizer = getattr(optimizer, "inner_optimizer", None)
    return optimizer


def state_of_forward_pass(model: keras.Model) -> list[Any]:
    """Returns the variables that the forward pass of a training step may write to.

    Moving statistics, seed generators and the states of `stateful` recurrent layers,
    which Keras lists nowhere; frozen weights are among them, metrics are not.
    """
    states = {
        id(state): state
        for layer in _compat.all_layers(model)
        if getattr(layer, "stateful", False)
        for state in tf.nest.flatten(getattr(layer, "states", None))
        # None if the layer is not built.
        if state is not None
    }
    return [*model.non_trainable_variables, *states.values()]


def state_of_training(model: keras.Model) -> list[Any]:
    """Returns the variables that the next step depends on, without the metrics."""
    return [
        *model.trainable_variables,
        *state_of_forward_pass(model),
        *getattr(model.optimizer, "variables", ()),
    ]


def warn(message: str) -> None:
    """Warns with `RuntimeWarning`, past the frames of Keras and tfsafe."""
    level = 1
    outer: types.FrameType | None = sys._getframe()
    while outer is not None and not is_user_file(outer.f_code.co_filename):
        level, outer = level + 1, outer.f_back
    warnings.warn(message, RuntimeWarning, stacklevel=level if outer else 1)


class Count(int):
    """A number of steps, which the progress bar of Keras shows as a whole number."""

    def mean(self, *_: Any, **__: Any) -> float:
        """Returns what NumPy's `mean` gives, which the progress bar asks for."""
        return _Shown(self)


class _Shown(float):
    def __truediv__(self, other: Any) -> "_Shown":
        return _Shown(super().__truediv__(other))

    def __format__(self, spec: str) -> str:
        return f"{int(self)}"
