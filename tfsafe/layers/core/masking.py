"""Masks the steps that a value marks as missing, and fits masks to tensors."""

import math
from typing import Any

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable(package="tfsafe")
class Masking(keras.layers.Masking):
    """`keras.layers.Masking` that also finds the steps marked by NaN.

    NaN differs from itself, so that Keras' layer with `mask_value=nan` masks no step,
    and lets every NaN pass.

    Args:
      mask_value: A step is masked if all of its features are equal to it, or all are
        NaN where it is NaN.
      **kwargs: What every Keras layer takes: `name`, `dtype`, `trainable`.

    Call arguments:
      inputs: Tensor of shape `(batch, steps, ..., features)`.

    Output shape:
      That of the input.

    Numerics:
      all features mask_value  value 0, gradient 0, and masked for later layers
      some features NaN        the step is unchanged, and counts

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> nan = float("nan")
      >>> x = tf.constant([[[1.0, 2.0], [nan, nan]]])
      >>> print(layers.Masking(nan)(x).numpy())
      [[[1. 2.]
        [0. 0.]]]
    """

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Returns which steps have a feature that is not the mask's value."""
        if not self._marks_nan:
            return super().compute_mask(inputs, mask)
        return keras.ops.any(keras.ops.logical_not(keras.ops.isnan(inputs)), axis=-1)

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns the inputs with 0 in the masked steps."""
        if not self._marks_nan:
            return super().call(inputs)
        mask = self.compute_mask(inputs)[..., tf.newaxis]
        return tf.where(mask, inputs, tf.zeros([], inputs.dtype))

    @property
    def _marks_nan(self) -> bool:
        return isinstance(self.mask_value, float) and math.isnan(self.mask_value)


def with_features(mask: Any, rank: int) -> tf.Tensor:
    """Appends axes of size 1 to a mask, up to this rank."""
    mask = tf.convert_to_tensor(mask)
    missing = rank - mask.shape.rank
    return tf.reshape(mask, tf.concat([tf.shape(mask), [1] * missing], 0))


def hide(x: tf.Tensor, mask: Any) -> tf.Tensor:
    """Sets `x` to 0 where a mask of the leading axes is False, so that NaN is gone."""
    if mask is None:
        return x
    mask = with_features(tf.cast(mask, tf.bool), x.shape.rank)
    return tf.where(mask, x, tf.zeros([], x.dtype))
