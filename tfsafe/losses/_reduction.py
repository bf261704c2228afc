"""From one loss a position to the loss of a batch: masks, weights, reductions."""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from tfsafe import _compat
from tfsafe.keras_formulas import arguments, labels
from tfsafe.keras_formulas.arguments import align

REDUCTIONS = (
    "sum_over_batch_size",
    "mean",
    "mean_with_sample_weight",
    "sum",
    "none",
    None,
)


class Weighted(keras.losses.Loss):
    """The part that the losses of tfsafe share: `0 * NaN = 0`, and wide sums.

    To stand before a loss of Keras among the bases of a class. Half precision is
    computed and summed in float32, and rounded once, at the end; a reduction of an
    empty batch is 0.

    Attributes:
      formula: Takes the place of Keras' function of `y_true` and `y_pred`, with the
        same options. None in a class that overrides `call`.
    """

    formula: Callable[..., tf.Tensor] | None = None

    def __call__(
        self, y_true: Any, y_pred: Any, sample_weight: Any = None
    ) -> tf.Tensor:
        """Returns the reduced loss.

        Args:
          y_true: Labels of any numeric dtype, for most losses of the shape of `y_pred`,
            or without its last axis of size 1.
          y_pred: Predictions of any numeric dtype, of known rank. A Keras mask takes
            out the positions that it hides; they do not count in a mean.
          sample_weight: Weights for the leading axes of the losses. A weight of 0 takes
            out a position, but not its count in a mean.

        Returns:
          A scalar, or with reduction `"none"` one loss for each position, of the dtype
          of the loss.

        Raises:
          TypeError: If labels or predictions are not dense, or not of numbers.
          ValueError: If shapes do not fit.
        """
        # Not Keras' own method, which multiplies by the weights: `0 * NaN` is NaN.
        mask = position_mask(y_pred, _compat.loss_options(self).get("axis", -1))
        with tf.name_scope(self.name):
            values = self.call(*self._widened(y_true, y_pred))
            if values.shape.rank == 0 and sample_weight is not None:
                # One loss for all: Keras shares it out to the weights.
                values = tf.broadcast_to(values, tf.shape(sample_weight))
            own_mask = _compat.keras_mask(values)
            if own_mask is not None:
                mask = both(mask, own_mask)
            loss = reduce_weighted(
                values, weights(values, sample_weight, mask), mask, self.reduction
            )
            return tf.cast(loss, self.dtype)

    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        """Returns one loss a sample, without weights, mask or reduction."""
        if self.formula is not None:
            # Keras' `call` fits the ranks, and passes the options on.
            self.fn = self.formula
        return super().call(y_true, y_pred)

    def _widened(self, y_true: Any, y_pred: Any) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns tensors, the predictions in float32, or in float64 where asked for.

        Labels keep their dtype: float32 holds no class index beyond 2 ** 24.

        Raises:
          TypeError: If one of them is not dense, or not of numbers.
          ValueError: If the predictions have an unknown number of axes.
        """
        wide = arguments.widened(y_pred, self.dtype)
        if wide.shape.rank is None:
            raise ValueError(
                "`y_pred` must have a known number of axes. Received: y_pred.shape="
                f"{wide.shape}. Set it, for example with "
                "`tf.ensure_shape(y_pred, [None, None])`."
            )
        return labels.tensor(y_true), wide

    def get_config(self) -> dict[str, Any]:
        """Returns what `from_config` needs, options and dtype included.

        Keras drops the dtype, and some options, such as the `delta` of `Huber`.
        """
        config = {**super().get_config(), **_compat.loss_options(self)}
        if self.dtype != keras.config.floatx():
            config["dtype"] = self.dtype
        return config


def given(**options: Any) -> dict[str, Any]:
    """Returns the options that are not None: Keras 3.3 does not know all of them."""
    return {name: option for name, option in options.items() if option is not None}


def position_mask(y_pred: Any, axis: int) -> Any:
    """Returns the Keras mask of the positions of predictions, or None.

    A mask of single features, as `Softmax` attaches it, leaves a position in where it
    leaves one of its features in.

    Args:
      y_pred: Predictions.
      axis: The axis of the features.
    """
    mask = _compat.keras_mask(y_pred)
    if mask is None or len(mask.shape) < len(y_pred.shape):
        return mask
    return tf.reduce_any(tf.cast(mask, tf.bool), axis)


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
