"""From one loss a position to the loss of a batch: masks, weights, reductions."""

from typing import Any

import keras
import tensorflow as tf

REDUCTIONS = (
    "sum_over_batch_size",
    "mean",
    "mean_with_sample_weight",
    "sum",
    "none",
    None,
)


def reduce_weighted(
    values: tf.Tensor,
    weights: tf.Tensor | None,
    mask: Any,
    reduction: str | None,
    mean_axis: int | None = None,
) -> tf.Tensor:
    """Weighs and reduces losses as Keras does, but with `0 * NaN = 0`.

    Args:
      values: One loss a position, in float32 or float64.
      weights: What `weights` returned for the mask, or None.
      mask: Booleans for the leading axes of `values`, or None. What it takes out does
        not count in a mean.
      reduction: One of `REDUCTIONS`.
      mean_axis: The axis whose mean is one sample's loss, or None.

    Returns:
      A scalar, or with reduction `"none"` the weighted values, without `mean_axis`.

    Raises:
      ValueError: If the mask does not fit the shape of `values`.
    """
    if weights is not None:
        values = tf.math.multiply_no_nan(values, weights)
    if reduction in (None, "none"):
        return values if mean_axis is None else tf.reduce_mean(values, mean_axis)
    if reduction == "sum":
        divisor = 1 if mean_axis is None else tf.shape(values)[mean_axis]
    elif reduction == "mean_with_sample_weight" and weights is not None:
        divisor = tf.reduce_sum(weights)
    elif mask is not None:
        divisor = tf.math.count_nonzero(align(mask, values, "mask"))
    else:
        divisor = tf.size(values)
    total = tf.reduce_sum(values)
    loss = tf.math.divide_no_nan(total, tf.cast(divisor, total.dtype))
    return loss if reduction == "sum" else _replica_share(loss)


def weights(values: tf.Tensor, sample_weight: Any, mask: Any) -> tf.Tensor | None:
    """Returns the weight of each of `values`, 0 under the mask, or None for all 1.

    Args:
      values: One loss a position.
      sample_weight: Weights for the leading axes of `values`, or None.
      mask: Booleans for the leading axes of `values`, or None.

    Raises:
      ValueError: If weights or mask do not fit the shape of `values`.
    """
    if sample_weight is None and mask is None:
        return None
    result = tf.ones_like(values)
    if sample_weight is not None:
        given = align(sample_weight, values, "sample_weight")
        result = tf.cast(given, values.dtype)
    if mask is None:
        return result
    kept = tf.cast(align(mask, values, "mask"), tf.bool)
    return tf.where(kept, result, tf.zeros_like(result))


def both(mask: Any, counted: tf.Tensor) -> tf.Tensor:
    """Joins a mask of the leading axes, or None, with one of all positions.

    Returns:
      Booleans of the shape of `counted`.

    Raises:
      ValueError: If the mask does not fit the shape of `counted`.
    """
    if mask is None:
        return counted
    return tf.cast(align(mask, counted, "mask"), tf.bool) & counted


def align(given: Any, values: tf.Tensor, name: str) -> tf.Tensor:
    """Broadcasts weights or a mask to the shape of `values`, from the batch axis on.

    Args:
      given: Tensor with the leading axes of `values`; a last axis of size 1 more is
        dropped.
      values: Tensor of known rank.
      name: The argument's name, for the error.

    Returns:
      `Tensor` with the dtype of `given`.

    Raises:
      ValueError: If the shapes do not fit.
    """
    tensor = tf.convert_to_tensor(given)
    shape, target = tensor.shape, values.shape
    if shape.rank == target.rank + 1 and shape[-1] == 1:
        tensor = tf.squeeze(tensor, -1)
    missing = -1 if shape.rank is None else target.rank - tensor.shape.rank
    if missing < 0 or any(
        size not in (other, 1, None) and other is not None
        for size, other in zip(tensor.shape, target, strict=False)
    ):
        raise ValueError(
            f"`{name}` must be a scalar or have the leading axes of the losses, whose "
            f"shape is {target}. Received: {name}.shape={shape}."
        )
    layout = tf.concat([tf.shape(tensor), tf.ones([missing], tf.int32)], 0)
    return tf.broadcast_to(tf.reshape(tensor, layout), tf.shape(values))


class _Mean(keras.losses.Loss):
    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:  # noqa: ARG002
        """Returns `y_pred` as the loss."""
        return y_pred


def _replica_share(mean: tf.Tensor) -> tf.Tensor:
    """Returns this replica's share of a mean, as Keras' own reduction takes it.

    Under `tf.distribute` the replicas' gradients are summed. Whether a loss divides by
    the number of replicas for that depends on the version of Keras.
    """
    value = tf.reshape(mean, [1])
    return _Mean(name="mean", dtype=mean.dtype.name)(value, value)
