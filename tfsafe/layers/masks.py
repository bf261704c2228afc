"""Masks of the leading axes, as Keras hands them on."""

from typing import Any

import tensorflow as tf


def with_features(mask: Any, rank: int) -> tf.Tensor:
    """Puts axes of size 1 behind those of a mask, up to this rank."""
    mask = tf.convert_to_tensor(mask)
    missing = rank - mask.shape.rank
    return tf.reshape(mask, tf.concat([tf.shape(mask), [1] * missing], 0))


def hide(x: tf.Tensor, mask: Any) -> tf.Tensor:
    """Puts 0 where a mask of the leading axes is False; NaN would reach gradients."""
    if mask is None:
        return x
    mask = with_features(tf.cast(mask, tf.bool), x.shape.rank)
    return tf.where(mask, x, tf.zeros([], x.dtype))
