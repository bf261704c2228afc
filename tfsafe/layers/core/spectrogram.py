"""Spectrogram whose gradient is finite for zeros."""

from typing import Any

import keras
import tensorflow as tf

from tfsafe import _compat, ops

_STFTSpectrogram: Any = _compat.keras_class("layers", "STFTSpectrogram")


@keras.saving.register_keras_serializable(package="tfsafe")
class STFTSpectrogram(_STFTSpectrogram):
    """Short-time spectrogram, whose angle has a gradient of 0 in silence, not NaN.

    Arguments, shapes and weights are those of `keras.layers.STFTSpectrogram`. Needs
    Keras 3.9.

    Numerics:
      silence  under `mode="angle"` value 0, gradient 0 (the angle is undefined)
      The other modes are Keras' own.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> if hasattr(layers, "STFTSpectrogram"):
      ...     layer = layers.STFTSpectrogram("angle", frame_length=4, frame_step=4)
      ...     silence = tf.Variable(tf.zeros((1, 8, 1)))
      ...     with tf.GradientTape() as tape:
      ...         angle = layer(silence)
      ...     assert tf.reduce_all(tape.gradient(angle, silence) == 0)
    """

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns the spectrogram."""
        if self.mode != "angle":
            return super().call(inputs)
        real, imaginary = _compat.spectrogram_parts(self, inputs)
        return ops.atan2(imaginary, real)
