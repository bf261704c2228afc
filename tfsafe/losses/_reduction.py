"""Reduces one loss a position to the loss of a batch: masks, weights, reductions."""

from collections.abc import Callable
from typing import Any, TypeVar

import keras
import tensorflow as tf

from tfsafe import _compat
from tfsafe._report import text
from tfsafe.keras_formulas import arguments
from tfsafe.keras_formulas.arguments import align

REDUCTIONS = (
    "sum_over_batch_size",
    "mean",
    "mean_with_sample_weight",
    "sum",
    "none",
    None,
)


_Loss = TypeVar("_Loss", bound=type)
_ARGS = """\
  reduction: How the losses of the samples are reduced, as in Keras.
  name: Name of the loss.
  dtype: Dtype of the result; half precision is computed in float32.
"""
_NUMERICS = """\
  weight 0, masked  value 0, gradient 0, NaN or not
  empty batch       value 0
  NaN elsewhere     value NaN
"""


def safe(loss: _Loss) -> _Loss:
    """Registers a loss, and completes its docstring by what all losses have.

    Its `Args` end with those that all losses take. The rows on weights and NaN come
    first in its `Numerics`, unless it has its own.

    Returns:
      The class itself.
    """
    docstring = loss.__doc__ or ""
    args = "" if "  dtype: " in docstring else _ARGS
    loss.__doc__ = text.with_shared(docstring, args, _NUMERICS)
    keras.saving.register_keras_serializable(package="tfsafe")(loss)
    return loss


class Weighted(keras.losses.Loss):
    """Gives a loss of Keras safe weights, wide sums and a formula of tfsafe's.

    Mixin; the loss of Keras comes next in the MRO. Half precision is computed and
    summed in float32, and rounded once, at the end; a reduction of an empty batch is 0.

    Attributes:
      formula: Computes one loss a position from `y_true`, `y_pred` and Keras' options.
      takes_indices: Whether `y_true` holds class indices. In eager mode one that is
        not a class is refused, unless its weight is 0.
    """

    formula: Callable[..., tf.Tensor]
    takes_indices = False

    def __call__(
        self, y_true: Any, y_pred: Any, sample_weight: Any = None
    ) -> tf.Tensor:
        """Returns the reduced loss.

        Args:
          y_true: Labels of any numeric dtype, for most losses of the shape of `y_pred`,
            or without its last axis of size 1.
          y_pred: Predictions of any numeric dtype, of known rank. A Keras mask removes
            the positions that it hides; they do not count in a mean.
          sample_weight: Weights for the leading axes of the losses. A weight of 0
            removes a position, but not its count in a mean.

        Returns:
          A scalar, or with reduction `"none"` one loss for each position, of the dtype
          of the loss.

        Raises:
          TypeError: If labels or predictions are not dense, or do not hold numbers.
          ValueError: If shapes do not fit, or (in eager mode) a label is not a class.
        """
        # Keras' own method multiplies by the weights, and `0 * NaN` is NaN.
        mask = _compat.keras_mask(y_pred)
        with tf.name_scope(self.name):
            y_true, y_pred = self._tensors(y_true, y_pred)
            if mask is not None:
                mask = position_mask(mask, y_pred, self._axis())
            call = self.call
            if type(self).call is not Weighted.call:
                call = _compat.as_converted(call)
            values = call(y_true, y_pred)
            if values.shape.rank == 0 and sample_weight is not None:
                # One loss for all: Keras distributes it over the weights.
                values = tf.broadcast_to(values, tf.shape(sample_weight))
            own_mask = _compat.keras_mask(values)
            if own_mask is not None:
                mask = both(mask, own_mask)
            weight = None
            if sample_weight is not None or mask is not None:
                weight = weights(values, sample_weight, mask)
            if self.takes_indices:
                arguments.refuse_unknown_classes(y_true, weight, y_pred, self._axis())
            loss = reduce_weighted(values, weight, mask, self.reduction)
            return tf.cast(loss, self.dtype)

    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        """Returns one loss a sample, without weights, mask or reduction."""
        if not isinstance(y_pred, tf.Tensor):
            y_true, y_pred = self._tensors(y_true, y_pred)
        y_true, y_pred = arguments.same_rank(y_true, y_pred)
        return self.formula(y_true, y_pred, **_compat.loss_options(self))

    @property
    def fn(self) -> Callable[..., tf.Tensor]:
        """The formula, under the name that it has in Keras' losses of functions."""
        return self.formula

    @fn.setter
    def fn(self, function: Any) -> None:
        """Ignores the function that Keras' constructors pass."""

    def _axis(self) -> int:
        return _compat.loss_options(self).get("axis", -1)

    def _tensors(self, y_true: Any, y_pred: Any) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns tensors, the predictions in float32, or in float64 if asked for.

        Labels keep their dtype: float32 holds no class index beyond 2 ** 24.

        Raises:
          TypeError: If one of them is not dense, or does not hold numbers.
          ValueError: If the predictions have an unknown number of axes.
        """
        wide = arguments.widened(y_pred, self.dtype)
        if wide.shape.rank is None:
            raise ValueError(
                "`y_pred` must have a known number of axes. Received: y_pred.shape="
                f"{wide.shape}. Set it, for example with "
                "`tf.ensure_shape(y_pred, [None, None])`."
            )
        return arguments.labels_tensor(y_true), wide

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments for `from_config`, options and dtype included.

        Keras drops the dtype, and some options, such as the `delta` of `Huber`.
        """
        config = {**super().get_config(), **_compat.loss_options(self)}
        if self.dtype != keras.config.floatx():
            config["dtype"] = self.dtype
        return config


def given(**options: Any) -> dict[str, Any]:
    """Returns the options that are not None: Keras 3.3 does not know all of them."""
    return {name: option for name, option in options.items() if option is not None}


def position_mask(mask: Any, y_pred: tf.Tensor, axis: int) -> Any:
    """Returns the mask of the positions of predictions.

    A mask of single features, as `Softmax` attaches it, keeps a position if it keeps
    one of its features.
    """
    if len(mask.shape) < len(y_pred.shape):
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
      weights: The result of `weights` for the mask, or None.
      mask: Booleans for the leading axes of `values`, or None. Positions that it
        removes do not count in a mean.
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
    # Under `tf.distribute` the gradients of the replicas are added.
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    is_whole = replicas == 1 or not _compat.loss_is_divided_by_replicas()
    return loss if reduction == "sum" or is_whole else loss / replicas


def weights(values: tf.Tensor, sample_weight: Any, mask: Any) -> tf.Tensor | None:
    """Returns the weight of each of `values`, 0 under the mask, or None for all 1.

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
    """Joins a mask of the leading axes, or None, with one of all positions."""
    if mask is None:
        return counted
    return tf.cast(align(mask, counted, "mask"), tf.bool) & counted
