"""Converts Keras' loose arguments, and registers the formulas that take them."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import keras
import tensorflow as tf

from tfsafe import _args, _compat
from tfsafe.ops.kernels import precision

_Function = TypeVar("_Function", bound=Callable[..., tf.Tensor])
KINDS = ("auto", "sparse", "dense", "binary")


def saved(function: _Function) -> _Function:
    """Registers a function, so that models that use it by name can be saved.

    Losses and metrics use the same function, and the name under which it is saved.

    Returns:
      The function itself.
    """
    keras.saving.register_keras_serializable(package="tfsafe")(function)
    return function


def formula(function: _Function) -> _Function:
    """Registers a formula of tensors, and gives it Keras' arguments, see `compute`.

    Returns:
      A function of labels and predictions in any form, and of the same options.
    """

    @functools.wraps(function)
    def call(y_true: Any, y_pred: Any, *args: Any, **options: Any) -> tf.Tensor:
        return compute(
            lambda y, p: function(y, p, *args, **options),
            y_true,
            y_pred,
            function.__name__,
        )

    return cast(_Function, saved(call))


def compute(
    function: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    y_true: Any,
    y_pred: Any,
    name: str,
) -> tf.Tensor:
    """Converts labels and predictions, and computes in float32 or float64.

    Args:
      function: Takes two tensors of one dtype, float32 or float64.
      y_true: Targets of any numeric dtype.
      y_pred: Predictions. The result has their dtype, float32 for integers.
      name: Name scope of the operations created.

    Returns:
      What `function` returns.

    Raises:
      TypeError: If one of them is not dense, or does not hold numbers.
      ValueError: If their shapes do not broadcast.
    """
    with tf.name_scope(name):
        y_pred = predictions(y_pred)
        y_true = tf.cast(labels_tensor(y_true), y_pred.dtype)
        y_true, y_pred = same_rank(y_true, y_pred)
        if y_true.shape != y_pred.shape:
            _args.check_broadcast(y_true=y_true, y_pred=y_pred)
        return precision.in_float32(function, y_true, y_pred)


def predictions(y_pred: Any) -> tf.Tensor:
    """Converts predictions to a floating tensor.

    Returns:
      `Tensor` of the dtype of `y_pred`, float32 for integers and lists.

    Raises:
      TypeError: If they are not dense.
    """
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
    ranks = [y_true.shape.rank, y_pred.shape.rank]
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


def kind_of_labels(
    labels: str, y_true: tf.TensorShape, y_pred: tf.TensorShape, axis: int
) -> str:
    """Returns "sparse", "dense" or "binary".

    Args:
      labels: One of `KINDS`; anything but "auto" is returned unchanged.
      y_true: Static shape of the labels.
      y_pred: Static shape of the predictions; its rank is known.
      axis: The class axis in `y_pred`, not negative.

    Raises:
      ValueError: If the shapes do not tell, or fit no kind.
    """
    if labels != "auto":
        return labels
    kept = y_true.rank == y_pred.rank
    if not kept and y_true.rank != y_pred.rank - 1:
        raise ValueError(
            "`y_true` must have the axes of `y_pred`, or all of them but the class "
            f"axis. Received: {_shapes(y_true, y_pred, axis)}."
        )
    classes, columns = y_pred[axis], y_true[axis] if kept else 1
    unclear = ""
    if kept and y_pred.rank == 1:
        unclear = "one row ('dense') or a binary target for each sample ('binary')"
    elif classes is None and columns in (None, 1):
        unclear = "class indices ('sparse'), rows ('dense') or targets ('binary')"
    elif classes != 1 and columns is None:
        unclear = "class indices ('sparse') or rows ('dense')"
    if unclear:
        raise ValueError(
            f"labels='auto' cannot tell whether `y_true` holds {unclear}. Received: "
            f"{_shapes(y_true, y_pred, axis)}. Set `labels` to the word in brackets."
        )
    if classes == 1:
        return "binary"
    return "sparse" if columns == 1 else "dense"


def lay_out(y_true: tf.Tensor, y_pred: tf.TensorShape, axis: int, kind: str) -> Any:
    """Gives labels the axes that their kind has, adding or dropping one of size 1.

    Returns:
      `y_true`, for "sparse" without the class axis, otherwise with the rank of
      `y_pred`.

    Raises:
      ValueError: If the shapes do not fit.
    """
    expected = y_pred
    if kind == "sparse":
        expected = y_pred[:axis].concatenate(y_pred[axis + 1 :])
    given = y_true
    if y_true.shape.rank == expected.rank + 1:
        at = axis if kind == "sparse" else -1
        if y_true.shape[at] == 1:
            given = tf.squeeze(y_true, at)
    elif (
        kind == "binary" and y_true.shape.rank == y_pred.rank - 1 and y_pred[axis] == 1
    ):
        given = tf.expand_dims(y_true, axis)
    if not given.shape.is_compatible_with(expected) or given.shape.rank is None:
        raise ValueError(
            f"`y_true` must have the shape {expected} for labels={kind!r}. Received: "
            f"{_shapes(y_true.shape, y_pred, axis)}."
        )
    return given


def labels_tensor(y_true: Any) -> tf.Tensor:
    """Converts labels to a tensor, integers to int64."""
    if isinstance(y_true, tf.SparseTensor | tf.RaggedTensor | tf.IndexedSlices):
        raise TypeError(
            f"`y_true` must be a dense tensor. Received: {type(y_true).__name__}. "
            "Convert it first, with `tf.sparse.to_dense(y_true)` or "
            "`y_true.to_tensor()`, and give padding a `sample_weight` of 0."
        )
    if y_true is None:
        raise TypeError(
            "`y_true` must be a tensor. Received: y_true=None. Give `fit` the labels, "
            "or a dataset of pairs `(x, y)`."
        )
    labels = tf.convert_to_tensor(y_true)
    if labels.dtype.is_floating:
        return labels
    if labels.dtype.is_integer or labels.dtype.is_bool:
        return tf.cast(labels, tf.int64)
    raise TypeError(
        "`y_true` must hold numbers: targets, class indices or rows of labels. "
        f"Received: dtype={labels.dtype.name}, shape={labels.shape}. Encode it first, "
        "for example with `keras.layers.StringLookup`."
    )


def class_indices(labels: tf.Tensor, classes: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns labels as int64, 0 for all that are not a class, and which are one."""
    known = _is_class(labels, classes)
    return tf.cast(tf.where(known, labels, tf.zeros_like(labels)), tf.int64), known


def nan_unless_class(
    labels: tf.Tensor, known: tf.Tensor, classes: tf.Tensor, losses: tf.Tensor
) -> tf.Tensor:
    """Returns losses, NaN for labels that are not a class, with gradient 0 there.

    The NaN is the remainder of a division of these labels by 0, and not a constant, so
    that a numeric check finds an operation whose input shows them. The remainder by the
    number of classes is the label itself for the others.
    """
    with tf.name_scope("label_outside_the_classes"):
        divisor = tf.where(known, tf.cast(classes, losses.dtype), 0)
        dividend = tf.stop_gradient(tf.cast(labels, losses.dtype))
        remainder = tf.math.floormod(dividend, divisor)
    return tf.where(known, losses, remainder)


def refuse_unknown_classes(
    labels: tf.Tensor, weights: tf.Tensor | None, y_pred: tf.Tensor, axis: int
) -> None:
    """Refuses labels that are not a class, if their values are known.

    A traced function cannot raise; there such a label makes the loss NaN. NaN is not
    refused: it is a missing label, and makes the loss NaN in every mode.

    Args:
      labels: Integer or floating class indices, with or without an axis of size 1.
      weights: Weights of the shape of the losses, or a mask; one of 0 ignores a label.
      y_pred: The predictions.
      axis: The axis of the classes.

    Raises:
      ValueError: If there is one, outside of a traced function.
    """
    if not tf.executing_eagerly():
        return
    axis %= len(y_pred.shape)
    classes = y_pred.shape[axis]
    labels = lay_out(labels, y_pred.shape, axis, "sparse")
    wrong = ~_is_class(labels, classes)
    if labels.dtype.is_floating:
        wrong &= ~tf.math.is_nan(labels)
    if weights is not None:
        wrong &= tf.cast(weights, tf.bool)
    if tf.reduce_any(wrong):
        raise ValueError(_unknown_class(labels.numpy(), wrong.numpy(), classes))


def _unknown_class(labels: Any, wrong: Any, classes: int) -> str:
    """Returns the message on labels that are not a class.

    "outside the valid range of" are the words of TensorFlow's own error.
    """
    index = [int(axis[0]) for axis in wrong.nonzero()]
    value = labels[tuple(index)]
    fix = (
        "Give labels to be ignored a `sample_weight` of 0, or name them with "
        "`ignore_class`."
    )
    if value == classes and not (labels == 0).any():
        fix = (
            "The classes seem to be numbered from 1: pass `y_true - 1`, or end the "
            f"model in {classes + 1} classes. {fix}"
        )
    elif value >= classes:
        fix = f"End the model in {int(value) + 1} or more classes if this is one. {fix}"
    return (
        f"`y_true` must hold class indices from 0 to {classes - 1}. Received a label "
        f"value of {value} which is outside the valid range of [0, {classes}), at "
        f"index {index}. {fix}"
    )


def _is_class(labels: tf.Tensor, classes: Any) -> tf.Tensor:
    inside = (labels >= 0) & (labels < tf.cast(classes, labels.dtype))
    if labels.dtype.is_floating:
        inside &= tf.equal(labels, tf.floor(labels))
    return inside


def _shapes(y_true: tf.TensorShape, y_pred: tf.TensorShape, axis: int) -> str:
    return f"y_true.shape={y_true}, y_pred.shape={y_pred}, class axis {axis}"
