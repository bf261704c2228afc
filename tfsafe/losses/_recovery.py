"""The logits behind probabilities."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

# Far above what rounding to bfloat16 does to a probability, and far below the
# difference between a softmax and a sigmoid, or a softmax along another axis.
_TOLERANCE = 0.02


def with_logits(
    loss: Callable[[tf.Tensor, bool], tf.Tensor],
    probs: tf.Tensor,
    logits: Any,
    axis: int | None,
) -> tf.Tensor:
    """Computes a loss of probabilities, from their logits wherever those fit.

    Attached logits may add digits, and never change the answer: where they are not
    those of a softmax along `axis`, or with `axis=None` of a sigmoid, the
    probabilities count.

    Args:
      loss: Takes predictions and whether they are logits.
      probs: Probabilities, in float32 or float64.
      logits: What Keras attached to them, or None.
      axis: The class axis of a softmax, or None for a sigmoid.

    Returns:
      The losses.
    """
    value = loss(probs, False)
    if logits is None:
        return value
    logits = tf.cast(logits, probs.dtype)
    if axis is None:
        distance = tf.abs(tf.sigmoid(logits) - probs)
    else:
        distance = tf.reduce_max(tf.abs(tf.nn.softmax(logits, axis) - probs), axis)
    # NaN is no disagreement: it is in the logits as well.
    disagree = distance > _TOLERANCE
    return tf.where(disagree, value, loss(logits, True))
