"""Spectrogram and cosine similarity whose gradients are finite for zeros."""

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
      >>> import keras
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> if hasattr(keras.layers, "STFTSpectrogram"):
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


@keras.saving.register_keras_serializable(package="tfsafe")
class Dot(keras.layers.Dot):
    """Dot product, or cosine similarity, which is 0 for a vector of zeros.

    Arguments and shapes are those of `keras.layers.Dot`. With `normalize=True` its
    gradient at a vector of zeros is 1e7, and NaN under XLA.

    Numerics:
      With `normalize=True`:
      all 0     value 0, gradient 0 (a choice: the direction is undefined)
      inf, NaN  as `tfsafe.ops.l2_normalize`
      Vectors are scaled, so that neither the squares nor the norm leave the range.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> x = tf.constant([[3e30, 4e30], [0.0, 0.0]])
      >>> y = tf.constant([[1.0, 0.0], [1.0, 0.0]])
      >>> print(layers.Dot(axes=1, normalize=True)([x, y]).numpy())
      [[0.6]
       [0. ]]
    """

    def call(self, inputs: Any) -> tf.Tensor:
        """Returns the products along the axes."""
        if not self.normalize:
            return super().call(inputs)
        axes = [self.axes] * 2 if isinstance(self.axes, int) else self.axes
        units = [ops.l2_normalize(x, a) for x, a in zip(inputs, axes, strict=True)]
        return keras.layers.dot(units, axes=self.axes, dtype=self.dtype_policy)
