"""Makes Keras' dropout layers safe at a rate of 1."""

from typing import Any

import keras
import tensorflow as tf

from tfsafe.layers.options import member_of_family

# Mixin; the Keras layer comes next in the MRO.
_KerasLayer: Any = object

_SHARED = """
    Call arguments:
      inputs: Floating tensor.
      training: Whether to drop.

    Output shape:
      That of the input.

    Numerics:
      rate = 1  value 0, gradient 0 in training
    """


class _DropsAll(_KerasLayer):
    """Returns 0 at a rate of 1, where a Keras layer divides by `1 - rate`."""

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Returns the inputs, with noise in training."""
        if training and self.rate == 1:
            return tf.zeros_like(inputs)
        return super().call(inputs, training=training)


@member_of_family(_SHARED)
class GaussianDropout(_DropsAll, keras.layers.GaussianDropout):
    """`keras.layers.GaussianDropout` that takes a rate of 1.

    Keras' layer takes it too, and divides by 0 in the first training step.

    Args:
      rate: From 0 to 1; the noise has a standard deviation of
        `sqrt(rate / (1 - rate))`. The result for a rate of 1 is a choice.
      seed: Of the noise.
      **kwargs: What every Keras layer takes: `name`, `dtype`, `trainable`.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> print(layers.GaussianDropout(1.0)(tf.ones([3]), training=True).numpy())
      [0. 0. 0.]
    """


@member_of_family(_SHARED)
class AlphaDropout(_DropsAll, keras.layers.AlphaDropout):
    """`keras.layers.AlphaDropout` that takes a rate of 1.

    Keras' layer takes it too, and divides by 0 in the first training step.

    Args:
      rate: Fraction of the inputs to drop, from 0 to 1.
      noise_shape: Shape of the mask, with 1 or None as in `keras.layers.Dropout`.
      seed: Of the mask.
      **kwargs: What every Keras layer takes: `name`, `dtype`, `trainable`.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> print(layers.AlphaDropout(1.0)(tf.ones([3]), training=True).numpy())
      [0. 0. 0.]
    """


@member_of_family(_SHARED)
class Dropout(_DropsAll, keras.layers.Dropout):
    """`keras.layers.Dropout` that takes a rate of 1 in every version of Keras.

    Keras 3.3 takes it too, and raises an error in the first training step.

    Args:
      rate: Fraction of the inputs to drop, from 0 to 1.
      noise_shape: Shape of the mask, with None for the size of the input, and 1 where
        the mask is the same along an axis.
      seed: Of the mask.
      **kwargs: What every Keras layer takes: `name`, `dtype`, `trainable`.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> x = tf.ones([3])
      >>> print(float(tf.reduce_sum(layers.Dropout(1.0)(x, training=True))))
      0.0
    """


@member_of_family(_SHARED)
class SpatialDropout1D(_DropsAll, keras.layers.SpatialDropout1D):
    """`keras.layers.SpatialDropout1D` that takes a rate of 1 in every version of Keras.

    Keras 3.3 takes it too, and raises an error in the first training step.

    Args:
      rate: Fraction of the features to drop, each at all steps, from 0 to 1.
      seed: Of the mask.
      **kwargs: What every Keras layer takes: `name`, `dtype`, `trainable`.

    Input shape:
      `(batch, steps, features)`.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> x = tf.ones([1, 3, 2])
      >>> print(float(tf.reduce_sum(layers.SpatialDropout1D(1.0)(x, training=True))))
      0.0
    """


@member_of_family(_SHARED)
class SpatialDropout2D(_DropsAll, keras.layers.SpatialDropout2D):
    """`keras.layers.SpatialDropout2D` that takes a rate of 1 in every version of Keras.

    Keras 3.3 takes it too, and raises an error in the first training step.

    Args:
      rate: Fraction of the channels to drop, from 0 to 1.
      data_format: `"channels_last"`, `"channels_first"`, or None for Keras' default.
      seed: Of the mask.
      **kwargs: What every Keras layer takes: `name`, `dtype`, `trainable`.

    Input shape:
      `(batch, rows, columns, channels)`.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> x = tf.ones([1, 3, 3, 2])
      >>> print(float(tf.reduce_sum(layers.SpatialDropout2D(1.0)(x, training=True))))
      0.0
    """


@member_of_family(_SHARED)
class SpatialDropout3D(_DropsAll, keras.layers.SpatialDropout3D):
    """`keras.layers.SpatialDropout3D` that takes a rate of 1 in every version of Keras.

    Keras 3.3 takes it too, and raises an error in the first training step.

    Args:
      rate: Fraction of the channels to drop, from 0 to 1.
      data_format: `"channels_last"`, `"channels_first"`, or None for Keras' default.
      seed: Of the mask.
      **kwargs: What every Keras layer takes: `name`, `dtype`, `trainable`.

    Input shape:
      `(batch, depth, rows, columns, channels)`.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> x = tf.ones([1, 3, 3, 3, 2])
      >>> print(float(tf.reduce_sum(layers.SpatialDropout3D(1.0)(x, training=True))))
      0.0
    """
