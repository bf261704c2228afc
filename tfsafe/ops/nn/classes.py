"""Labels, the class axis and the options of the cross entropies."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfsafe import _args


def class_axis(axis: Any, shape: tf.TensorShape) -> int:
    """Returns the class axis as a non-negative number.

    Raises:
      TypeError: If `axis` is not an integer.
      ValueError: If it is out of range, if the rank is unknown, or if the axis has
        no classes.
    """
    if isinstance(axis, bool) or not hasattr(axis, "__index__"):
        raise TypeError(
            "`axis` must be an integer, the axis of the classes. "
            f"Received: axis={axis!r}."
        )
    if not shape.rank:
        raise ValueError(
            "`y_pred` must have a known number of axes, at least one. Received: "
            f"y_pred.shape={shape}. Set it, for example with "
            "`tf.ensure_shape(y_pred, [None, num_classes])`."
        )
    if not -shape.rank <= axis < shape.rank:
        _args.axes(axis, shape)  # raises
    positive = int(axis) % shape.rank
    if shape[positive] == 0:
        raise ValueError(
            f"`y_pred` must have at least one class along axis {axis}. Received: "
            f"shape={shape}."
        )
    return positive


def checked_smoothing(value: Any) -> float:
    """Returns `label_smoothing` as a float."""
    if not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(
            "`label_smoothing` must be a number from 0 to 1. "
            f"Received: label_smoothing={value!r}."
        )
    return float(value)


def smoothed_rows(labels: tf.Tensor, smoothing: float, axis: int) -> tf.Tensor:
    """Spreads a fraction of the sum of each row evenly over its classes."""
    if not smoothing:
        return labels
    total = tf.reduce_sum(labels, axis, keepdims=True)
    classes = tf.cast(tf.shape(labels)[axis], labels.dtype)
    return (1 - smoothing) * labels + smoothing * total / classes


def indices_and_axis(
    y_true: Any, y_pred: Any, axis: Any
) -> tuple[tf.Tensor, tf.Tensor, int]:
    """Converts class indices and predictions.

    Returns:
      Indices of int64, predictions, and the class axis as a non-negative number.

    Raises:
      TypeError: If `y_true` is not integer or `y_pred` is not floating.
      ValueError: If the shapes do not belong together.
    """
    y_pred = _args.float_tensor(y_pred, "y_pred")
    indices = tf.convert_to_tensor(y_true)
    if not indices.dtype.is_integer:
        raise TypeError(
            "`y_true` must have an integer dtype, because it holds class indices. "
            f"Received: dtype={indices.dtype.name}, shape={indices.shape}. Convert it "
            "first, for example `tf.cast(y_true, tf.int32)`."
        )
    axis = class_axis(axis, y_pred.shape)
    indices = in_shape(indices, y_pred, without=axis)
    return tf.cast(indices, tf.int64), y_pred, axis


def in_shape(
    y_true: tf.Tensor, y_pred: tf.Tensor, without: int | None = None
) -> tf.Tensor:
    """Returns `y_true` in the shape of `y_pred`, or in that without one axis."""
    expected, sizes, what = y_pred.shape, tf.shape(y_pred), ""
    if without is not None:
        what = " but for the class axis"
        expected = expected[:without].concatenate(expected[without + 1 :])
        sizes = tf.concat([sizes[:without], sizes[without + 1 :]], 0)
    if not y_true.shape.is_compatible_with(expected):
        raise ValueError(
            f"`y_true` and `y_pred` must have the same shape{what}. Received: "
            f"y_true.shape={y_true.shape}, y_pred.shape={y_pred.shape}."
        )
    if y_true.shape.is_fully_defined() and expected.is_fully_defined():
        return y_true
    # A shape that only the run knows must raise an error, not broadcast.
    return tf.reshape(y_true, sizes)


def over_rows(
    loss: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    labels: tf.Tensor,
    x: tf.Tensor,
    axis: int,
) -> tf.Tensor:
    """Applies a function of rows to tensors of any rank, with the classes anywhere.

    Args:
      loss: Takes labels, with or without the class axis, and predictions of the shape
        [rows, n]; returns one loss a row.
      labels: Tensor of the shape of `x`, or of that without `axis`.
      x: Tensor of known rank.
      axis: The class axis, not negative.

    Returns:
      The losses, of the shape of `x` without `axis`.
    """
    rank = x.shape.rank
    is_dense = labels.shape.rank == rank
    if axis != rank - 1:
        last = [each for each in range(rank) if each != axis] + [axis]
        x = tf.transpose(x, last)
        labels = tf.transpose(labels, last) if is_dense else labels
    if rank == 2:
        return loss(labels, x)
    lead, classes = tf.shape(x)[:-1], x.shape[-1] or tf.shape(x)[-1]
    rows = tf.reshape(x, [-1, classes])
    # The sizes in full: what does not fit must end in an error.
    sizes = tf.shape(rows) if is_dense else tf.shape(rows)[:1]
    result = tf.reshape(loss(tf.reshape(labels, sizes), rows), lead)
    return tf.ensure_shape(result, x.shape[:-1])
