"""Labels as tensors: of which kind they are, and in which layout."""

from typing import Any

import tensorflow as tf

KINDS = ("auto", "sparse", "dense", "binary")


def kind_of(
    labels: str, y_true: tf.TensorShape, y_pred: tf.TensorShape, axis: int
) -> str:
    """Returns "sparse", "dense" or "binary".

    Args:
      labels: One of `KINDS`; anything but "auto" is returned as it is.
      y_true: Static shape of the labels.
      y_pred: Static shape of the predictions; its rank is known.
      axis: The class axis in `y_pred`, not negative.

    Raises:
      ValueError: If the shapes do not tell, or fit no kind.
    """
    if labels != "auto":
        return labels
    received = _shapes(y_true, y_pred, axis)
    kept = y_true.rank == y_pred.rank
    if not kept and y_true.rank != y_pred.rank - 1:
        raise ValueError(
            "`y_true` must have the axes of `y_pred`, or all of them but the class "
            f"axis. Received: {received}."
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
            f"{received}. Set `labels` to the word in brackets."
        )
    if classes == 1:
        return "binary"
    return "sparse" if columns == 1 else "dense"


def lay_out(y_true: tf.Tensor, y_pred: tf.TensorShape, axis: int, kind: str) -> Any:
    """Gives labels the axes that their kind has, adding or dropping one of size 1.

    Args:
      y_true: The labels.
      y_pred: Static shape of the predictions; its rank is known.
      axis: The class axis in `y_pred`, not negative.
      kind: "sparse", "dense" or "binary".

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


def tensor(y_true: Any) -> tf.Tensor:
    """Converts labels to a tensor, integers to int64.

    Returns:
      `Tensor` of int64 or of a floating dtype.

    Raises:
      TypeError: If they are not dense, or not numbers.
    """
    if isinstance(y_true, tf.SparseTensor | tf.RaggedTensor | tf.IndexedSlices):
        raise TypeError(
            f"`y_true` must be a dense tensor. Received: {type(y_true).__name__}. "
            "Convert it first, with `tf.sparse.to_dense(y_true)` or "
            "`y_true.to_tensor()`, and give what only pads a `sample_weight` of 0."
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


def class_indices(labels: tf.Tensor, classes: tf.Tensor) -> tf.Tensor:
    """Returns labels as int64, with -1 in place of all that are not a class.

    Args:
      labels: Integer or floating class indices.
      classes: Number of classes, an integer scalar.
    """
    known = _is_class(labels, classes)
    return tf.cast(tf.where(known, labels, -tf.ones_like(labels)), tf.int64)


def refuse_unknown_classes(
    labels: tf.Tensor, weights: tf.Tensor | None, classes: tf.Tensor
) -> None:
    """Refuses labels that are not a class, where their values are known.

    NaN is not refused: it is a missing label, and makes the loss NaN.

    Args:
      labels: Integer or floating class indices.
      weights: Weights of the shape of `labels`; one of 0 ignores a label.
      classes: Number of classes, an integer scalar.

    Raises:
      ValueError: If there is one, outside of a traced function.
    """
    if not tf.executing_eagerly():
        return
    wrong = ~_is_class(labels, classes)
    if labels.dtype.is_floating:
        wrong &= ~tf.math.is_nan(labels)
    if weights is not None:
        wrong &= tf.not_equal(weights, 0)
    if wrong.numpy().any():
        index = [int(where[0]) for where in wrong.numpy().nonzero()]
        raise ValueError(
            f"`y_true` must hold class indices from 0 to {int(classes) - 1}. Received: "
            f"{labels.numpy()[tuple(index)]} at index {index}. Give labels to be "
            "ignored a `sample_weight` of 0, or name them with `ignore_class`."
        )


def _is_class(labels: tf.Tensor, classes: tf.Tensor) -> tf.Tensor:
    inside = (labels >= 0) & (labels < tf.cast(classes, labels.dtype))
    if labels.dtype.is_floating:
        inside &= tf.equal(labels, tf.floor(labels))
    return inside


def _shapes(y_true: tf.TensorShape, y_pred: tf.TensorShape, axis: int) -> str:
    return f"y_true.shape={y_true}, y_pred.shape={y_pred}, class axis {axis}"
