"""Converts Keras' loose arguments, and registers the formulas that take them."""

from collections.abc import Callable
from typing import Any, TypeVar

import keras
import tensorflow as tf

from tfsafe import _args, _compat
from tfsafe.keras_formulas import labels
from tfsafe.ops.kernels import precision

_Formula = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]
_Gradient = Callable[[tf.Tensor], tf.Tensor]
_Gradients = Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]
_Function = TypeVar("_Function", bound=Callable[..., tf.Tensor])


def saved(function: _Function) -> _Function:
    """Registers a function, so that models that use it by name can be saved.

    Losses and metrics use the same function, and the name under which it is saved.

    Returns:
      The function itself.
    """
    keras.saving.register_keras_serializable(package="tfsafe")(function)
    return function


def compute(formula: _Formula, y_true: Any, y_pred: Any, name: str) -> tf.Tensor:
    """Converts labels and predictions, and computes in float32 or float64.

    Args:
      formula: Takes two tensors of one dtype, float32 or float64.
      y_true: Targets of any numeric dtype.
      y_pred: Predictions. The result has their dtype, float32 for integers.
      name: Name scope of the operations created.

    Returns:
      What `formula` returns.

    Raises:
      TypeError: If one of them is not dense, or does not hold numbers.
      ValueError: If their shapes do not broadcast.
    """
    with tf.name_scope(name):
        y_pred = predictions(y_pred)
        y_true = tf.cast(labels.tensor(y_true), y_pred.dtype)
        y_true, y_pred = same_rank(y_true, y_pred)
        if y_true.shape != y_pred.shape:
            _args.check_broadcast(y_true=y_true, y_pred=y_pred)
        return precision.in_float32(formula, y_true, y_pred)


def predictions(y_pred: Any) -> tf.Tensor:
    """Converts predictions to a floating tensor.

    Returns:
      `Tensor` of the dtype of `y_pred`, float32 for integers and lists.

    Raises:
      TypeError: If they are not dense.
    """
    if isinstance(y_pred, tf.Tensor) and y_pred.dtype in _args.FLOATS:
        return y_pred
    dtype = getattr(y_pred, "dtype", None)
    if dtype is not None and not tf.as_dtype(dtype).is_floating:
        y_pred = tf.cast(y_pred, tf.float32)
    return _args.float_tensor(y_pred, "y_pred", tf.float32)


def widened(y_pred: Any, dtype: str) -> tf.Tensor:
    """Casts predictions to float32, or to float64 if that is the `dtype`.

    Returns:
      `Tensor` that has the Keras logits of `y_pred`.
    """
    wide = tf.cast(predictions(y_pred), "float64" if dtype == "float64" else "float32")
    if wide is not y_pred:
        _compat.carry_keras_logits(y_pred, wide)
    return wide


def same_rank(y_true: tf.Tensor, y_pred: tf.Tensor) -> list[tf.Tensor]:
    """Drops or adds a last axis of size 1 if one of the pair has one more."""
    pair = [y_true, y_pred]
    ranks = [x.shape.rank for x in pair]
    if None in ranks or abs(ranks[0] - ranks[1]) != 1:
        return pair
    larger = ranks.index(max(ranks))
    if pair[larger].shape[-1] != 1:
        return pair
    # Against one number a sample the axis stays: the mean runs along it.
    if min(ranks) == 1:
        pair[1 - larger] = tf.expand_dims(pair[1 - larger], -1)
    else:
        pair[larger] = tf.squeeze(pair[larger], -1)
    return pair


def mean(formula: _Formula, y_true: Any, y_pred: Any, name: str) -> tf.Tensor:
    """Returns the mean of an elementwise formula along the last axis, see `compute`.

    Raises:
      TypeError: If one of the pair is not dense.
    """
    return compute(lambda y, p: tf.reduce_mean(formula(y, p), -1), y_true, y_pred, name)


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
