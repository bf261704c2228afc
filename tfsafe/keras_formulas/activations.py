"""Computes Keras' activations of the same names, for layers that are named by strings.

They are saved under their plain names, so that a file with one of them loads anywhere.
"""

from typing import Any

import keras
import tensorflow as tf

from tfsafe import _compat, ops
from tfsafe.keras_formulas.logit_recovery import attach_logits


def softmax(x: Any, axis: int = -1) -> tf.Tensor:
    """Computes the softmax; a row of `-inf` has probabilities 0, not NaN."""
    if isinstance(x, keras.KerasTensor):
        return keras.activations.softmax(x, axis)
    probabilities = ops.softmax(x, axis)
    attach_logits(probabilities, x, axis)
    # As Keras' own does, for Keras' losses.
    _compat.set_keras_logits(probabilities, x)
    return probabilities


def log_softmax(x: Any, axis: int = -1) -> tf.Tensor:
    """Computes the logarithm of the softmax; `-inf` in a row of `-inf`, not NaN."""
    if isinstance(x, keras.KerasTensor):
        return keras.activations.log_softmax(x, axis)
    return ops.log_softmax(x, axis)


def log_sigmoid(x: Any) -> tf.Tensor:
    """Computes the logarithm of the sigmoid."""
    if isinstance(x, keras.KerasTensor):
        return keras.activations.log_sigmoid(x)
    return ops.log_sigmoid(x)
