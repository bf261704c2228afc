"""Normalizes by the statistics of a batch."""

from typing import Any

import keras
import tensorflow as tf

from tfsafe.ops.kernels.precision import wide
from tfsafe.ops.kernels.statistics.standardization import (
    standardize_batch,
    standardize_by,
)


@keras.saving.register_keras_serializable(package="tfsafe")
class BatchNormalization(keras.layers.BatchNormalization):
    """Batch normalization whose moving statistics stay finite.

    With `keras.layers.BatchNormalization` one NaN in one training batch stays in the
    moving statistics for ever, even if the optimizer skipped that step; a batch that
    is masked as a whole draws them towards 0; and `x * inv - mean * inv` cancels where
    the mean is far above the deviation.

    Arguments, shapes and weights are those of `keras.layers.BatchNormalization`.

    Call arguments:
      inputs: Floating tensor.
      training: Whether to normalize by the statistics of the batch, and to move the
        moving ones towards them.
      mask: Booleans of the shape of `inputs` without its last axis, True where a
        position counts.

    Numerics:
      error          <= 8 ulp of the largest result in the channel, however large the
                     mean; without training, that of the moving mean
      inf, NaN       value NaN in the whole channel; in training no moving statistic of
                     the layer is touched, where one would be NaN or infinite
      masked         does not count, NaN included; is normalized like the others
      nothing        counts in a channel: normalized by the moving statistics, which
                     stay unchanged
      A channel without incoming gradient gives zero gradients, whatever its values.
      Computed in float32 under `mixed_float16` and `mixed_bfloat16`, and rounded once.
      With `synchronized=True` the sums run over all replicas.
      With `renorm=True` the value is Keras' own; the statistics are protected as well.

    Examples:
      >>> import numpy as np
      >>> from tfsafe import layers
      >>> layer = layers.BatchNormalization(momentum=0.5)
      >>> _ = layer(np.array([[1.0], [3.0]]), training=True)
      >>> _ = layer(np.array([[1.0], [float("nan")]]), training=True)
      >>> print(layer.moving_mean.numpy(), layer.moving_variance.numpy())
      [1.] [1.]

    References:
      Ioffe and Szegedy, "Batch Normalization", arXiv:1502.03167, 2015.
    """

    def call(
        self, inputs: tf.Tensor, training: bool | None = None, mask: Any = None
    ) -> tf.Tensor:
        """Returns the normalized inputs; in training it moves the statistics."""
        if mask is not None and len(mask.shape) != len(inputs.shape) - 1:
            raise ValueError(
                "`mask` must have one axis less than `inputs`, the last one. Received: "
                f"mask.shape={mask.shape}, inputs.shape={inputs.shape}. Sum up or drop "
                "the last axis of the mask, for example with `tf.reduce_all(mask, -1)`."
            )
        if not (training and self.trainable):
            return self._by_moving_statistics(inputs)
        if getattr(self, "renorm", False):
            return self._renormalized(inputs, mask)
        return self._by_batch_statistics(inputs, mask)

    def _by_moving_statistics(self, inputs: tf.Tensor) -> tf.Tensor:
        x, gain, shift, moving = self._prepared(inputs)
        outputs = standardize_by(x, gain, shift, *moving, epsilon=self.epsilon)
        return tf.cast(outputs, self.compute_dtype)

    def _by_batch_statistics(self, inputs: tf.Tensor, mask: Any) -> tf.Tensor:
        x, gain, shift, moving = self._prepared(inputs)
        axis = self.axis % x.shape.rank
        if mask is not None:
            mask = tf.cast(mask, tf.bool)[..., tf.newaxis]
            mask = tf.broadcast_to(mask, tf.shape(x))
        outputs, mean, variance, count = standardize_batch(
            x,
            gain,
            shift,
            axis=[each for each in range(x.shape.rank) if each != axis],
            epsilon=self.epsilon,
            mask=mask,
            otherwise=moving,
            across=_sum_over_replicas if self.synchronized else tf.identity,
        )
        is_usable = tf.reduce_all(tf.math.is_finite(mean) & tf.math.is_finite(variance))
        pairs = (self.moving_mean, mean), (self.moving_variance, variance)
        for (variable, new), old in zip(pairs, moving, strict=True):
            moved = old * self.momentum + new * (1 - self.momentum)
            moved = tf.where(is_usable & (count > 0), moved, old)
            variable.assign(tf.reshape(moved, [-1]))
        return tf.cast(outputs, self.compute_dtype)

    def _renormalized(self, inputs: tf.Tensor, mask: Any) -> tf.Tensor:
        variables = self.non_trainable_variables
        before = [tf.convert_to_tensor(variable) for variable in variables]
        outputs = super().call(inputs, training=True, mask=mask)
        is_usable = tf.size(inputs if mask is None else mask) > 0
        if mask is not None:
            is_usable &= tf.reduce_any(tf.cast(mask, tf.bool))
        after = [tf.convert_to_tensor(variable) for variable in variables]
        for new in after:
            is_usable &= tf.reduce_all(tf.math.is_finite(new))
        for variable, old, new in zip(variables, before, after, strict=True):
            variable.assign(tf.where(is_usable, new, old))
        return outputs

    def _prepared(self, inputs: tf.Tensor) -> tuple[Any, ...]:
        """Returns inputs, gain, shift and moving statistics, wide and broadcastable."""
        x = wide(inputs)
        shape = [1] * x.shape.rank
        shape[self.axis] = -1

        def along(name: str, default: float) -> tf.Tensor:
            # Keras 3.3 sets no attribute for what it leaves out.
            weight = getattr(self, name, None)
            weight = [default] if weight is None else weight
            return tf.reshape(tf.cast(weight, x.dtype), shape)

        moving = along("moving_mean", 0.0), along("moving_variance", 1.0)
        return x, along("gamma", 1.0), along("beta", 0.0), moving


def _sum_over_replicas(x: tf.Tensor) -> tf.Tensor:
    replicas = tf.distribute.get_replica_context()
    if replicas is None or replicas.num_replicas_in_sync == 1:
        return x
    return replicas.all_reduce(tf.distribute.ReduceOp.SUM, x)
