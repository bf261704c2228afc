"""Dot product and cosine similarity of two inputs."""

from typing import Any

import keras
import tensorflow as tf

from tfsafe import ops


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
