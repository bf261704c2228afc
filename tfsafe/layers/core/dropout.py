"""Dropout that may drop everything."""

from typing import Any

import keras
import tensorflow as tf

# The Keras layer stands behind it in the order of the bases.
_KerasLayer: Any = object


class _DropsAll(_KerasLayer):
    """Stands before a Keras layer that divides by `1 - rate`, at a rate of 1 too."""

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Returns the inputs with noise in training, and as they are elsewhere."""
        if training and self.rate == 1:
            return tf.zeros_like(inputs)
        return super().call(inputs, training=training)


@keras.saving.register_keras_serializable(package="tfsafe")
class GaussianDropout(_DropsAll, keras.layers.GaussianDropout):
    """`keras.layers.GaussianDropout` that takes a rate of 1.

    Keras' layer takes it too, and divides by 0 in the first training step.

    Args:
      rate: From 0 to 1; the noise has a standard deviation of
        `sqrt(rate / (1 - rate))`.
      seed: Of the noise.
      **kwargs: What every Keras layer takes: `name`, `dtype`, `trainable`.

    Call arguments:
      inputs: Floating tensor of any shape.
      training: Whether to multiply by noise.

    Output shape:
      That of the input.

    Numerics:
      rate = 1  value 0, gradient 0 in training, as of `keras.layers.Dropout` (a choice:
                noise without bound leaves nothing of the inputs)

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> print(layers.GaussianDropout(1.0)(tf.ones([3]), training=True).numpy())
      [0. 0. 0.]
    """


@keras.saving.register_keras_serializable(package="tfsafe")
class AlphaDropout(_DropsAll, keras.layers.AlphaDropout):
    """`keras.layers.AlphaDropout` that takes a rate of 1.

    Keras' layer takes it too, and divides by 0 in the first training step.

    Args:
      rate: Share of the inputs that is dropped, from 0 to 1.
      noise_shape: Shape of the mask, with 1 or None as in `keras.layers.Dropout`.
      seed: Of the mask.
      **kwargs: What every Keras layer takes: `name`, `dtype`, `trainable`.

    Call arguments:
      inputs: Floating tensor of any shape.
      training: Whether to drop.

    Output shape:
      That of the input.

    Numerics:
      rate = 1  value 0, gradient 0 in training, the limit for a rate towards 1

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> print(layers.AlphaDropout(1.0)(tf.ones([3]), training=True).numpy())
      [0. 0. 0.]
    """


@keras.saving.register_keras_serializable(package="tfsafe")
class Dropout(_DropsAll, keras.layers.Dropout):
    """`keras.layers.Dropout` that takes a rate of 1 in every version of Keras.

    Keras 3.3 takes it too, and raises an error in the first training step.

    Args:
      rate: Share of the inputs that is dropped, from 0 to 1.
      noise_shape: Shape of the mask, with None for the size of the input, and 1 where
        the mask is the same along an axis.
      seed: Of the mask.
      **kwargs: What every Keras layer takes: `name`, `dtype`, `trainable`.

    Call arguments:
      inputs: Floating tensor of any shape.
      training: Whether to drop.

    Output shape:
      That of the input.

    Numerics:
      rate = 1  value 0, gradient 0 in training

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> x = tf.ones([3])
      >>> print(float(tf.reduce_sum(layers.Dropout(1.0)(x, training=True))))
      0.0
    """


@keras.saving.register_keras_serializable(package="tfsafe")
class SpatialDropout1D(_DropsAll, keras.layers.SpatialDropout1D):
    """`keras.layers.SpatialDropout1D` that takes a rate of 1 in every version of Keras.

    Keras 3.3 takes it too, and raises an error in the first training step.

    Args:
      rate: Share of the features, each at all steps that is dropped, from 0 to 1.
      seed: Of the mask.
      **kwargs: What every Keras layer takes: `name`, `dtype`, `trainable`.

    Call arguments:
      inputs: Floating tensor of shape `(batch, steps, features)`.
      training: Whether to drop.

    Output shape:
      That of the input.

    Numerics:
      rate = 1  value 0, gradient 0 in training

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> x = tf.ones([1, 3, 2])
      >>> print(float(tf.reduce_sum(layers.SpatialDropout1D(1.0)(x, training=True))))
      0.0
    """


@keras.saving.register_keras_serializable(package="tfsafe")
class SpatialDropout2D(_DropsAll, keras.layers.SpatialDropout2D):
    """`keras.layers.SpatialDropout2D` that takes a rate of 1 in every version of Keras.

    Keras 3.3 takes it too, and raises an error in the first training step.

    Args:
      rate: Share of the channels that is dropped, from 0 to 1.
      data_format: `"channels_last"`, `"channels_first"`, or None for Keras' default.
      seed: Of the mask.
      **kwargs: What every Keras layer takes: `name`, `dtype`, `trainable`.

    Call arguments:
      inputs: Floating tensor of shape `(batch, rows, columns, channels)`.
      training: Whether to drop.

    Output shape:
      That of the input.

    Numerics:
      rate = 1  value 0, gradient 0 in training

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> x = tf.ones([1, 3, 3, 2])
      >>> print(float(tf.reduce_sum(layers.SpatialDropout2D(1.0)(x, training=True))))
      0.0
    """


@keras.saving.register_keras_serializable(package="tfsafe")
class SpatialDropout3D(_DropsAll, keras.layers.SpatialDropout3D):
    """`keras.layers.SpatialDropout3D` that takes a rate of 1 in every version of Keras.

    Keras 3.3 takes it too, and raises an error in the first training step.

    Args:
      rate: Share of the channels that is dropped, from 0 to 1.
      data_format: `"channels_last"`, `"channels_first"`, or None for Keras' default.
      seed: Of the mask.
      **kwargs: What every Keras layer takes: `name`, `dtype`, `trainable`.

    Call arguments:
      inputs: Floating tensor of shape `(batch, depth, rows, columns, channels)`.
      training: Whether to drop.

    Output shape:
      That of the input.

    Numerics:
      rate = 1  value 0, gradient 0 in training

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> x = tf.ones([1, 3, 3, 3, 2])
      >>> print(float(tf.reduce_sum(layers.SpatialDropout3D(1.0)(x, training=True))))
      0.0
    """
