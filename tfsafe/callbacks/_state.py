"""Lists the variables of a model by their role in a training step."""

from typing import Any

import keras
import tensorflow as tf

from tfsafe import _compat


def of_forward_pass(model: keras.Model) -> list[Any]:
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


def of_training(model: keras.Model) -> list[Any]:
    """Returns the variables that the next step depends on, without the metrics."""
    return [
        *model.trainable_variables,
        *of_forward_pass(model),
        *getattr(model.optimizer, "variables", ()),
    ]
