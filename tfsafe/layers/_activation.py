"""Activations."""

from typing import Any

import keras
import tensorflow as tf

from tfsafe import ops


@keras.saving.register_keras_serializable(package="tfsafe")
class LogSigmoid(keras.layers.Layer):
    """Log-probability of a binary outcome, `log(sigmoid(x))`, right in both tails.

    Use it in the place of `Dense(..., activation="sigmoid")` and a logarithm.

    Args:
      **kwargs: What every Keras layer takes: `name`, `dtype`, `trainable`.

    Call arguments:
      inputs: Floating tensor of any shape.

    Input shape:
      Any.

    Output shape:
      That of the input.

    Numerics:
      x = inf   value 0, slope 0
      x = -inf  value -inf, slope 1
      x = NaN   value NaN, slope NaN
      Computed in float32 under `mixed_float16` and `mixed_bfloat16`, and rounded once.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> print(layers.LogSigmoid()(tf.constant([-200.0, 0.0, 50.0])).numpy())
      [-2.0000000e+02 -6.9314718e-01 -1.9287499e-22]

    References:
      Maechler, "Accurately Computing log(1 - exp(-|a|))", Rmpfr vignette, 2012,
      for `log(1 + exp(x))`.
    """

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self.supports_masking = True

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns the logarithm of the sigmoid, elementwise."""
        return ops.log_sigmoid(inputs)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Returns the input shape."""
        return input_shape
