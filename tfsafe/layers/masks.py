"""Fits masks of the leading axes, as Keras passes them, to tensors."""

from typing import Any

import tensorflow as tf


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
