"""Differentiates an activation inside a loop, from its value where that is enough."""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

# For these the loop keeps the value; else the argument, from which it starts again.
_FROM_VALUE: dict[Any, Callable[[tf.Tensor, tf.Tensor], tf.Tensor]] = {
    keras.activations.tanh: lambda y, upstream: tf.raw_ops.TanhGrad(y=y, dy=upstream),
    keras.activations.sigmoid: lambda y, upstream: tf.raw_ops.SigmoidGrad(
        y=y, dy=upstream
    ),
    keras.activations.linear: lambda _, upstream: upstream,
}


def is_of_keras(function: Any) -> bool:
    """Returns whether a function is one of `keras.activations`."""
    return any(each is function for each in vars(keras.activations).values())


def keep(function: Any, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns `function(x)`, and what the two functions below take."""
    value = function(x)
    return value, value if function in _FROM_VALUE else x


def value_of(function: Any, kept: tf.Tensor) -> tf.Tensor:
    """Returns the value from what is kept."""
    return kept if function in _FROM_VALUE else function(kept)


def pull_back(function: Any, kept: tf.Tensor, upstream: tf.Tensor) -> tf.Tensor:
    """Returns the gradient in the argument of the activation."""
    if function in _FROM_VALUE:
        return _FROM_VALUE[function](kept, upstream)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(kept)
        value = function(kept)
    zero = tf.UnconnectedGradients.ZERO
    return tape.gradient(value, kept, upstream, unconnected_gradients=zero)
