"""Cross-entropies with Keras' arguments, which no prediction makes infinite.

Losses and metrics use the same functions: labels of any dtype and layout, the logits
behind a softmax or sigmoid if they can be found, and bounded logarithms otherwise.
"""

import warnings
from typing import Any

import tensorflow as tf

from tfsafe import _compat
from tfsafe.keras_formulas import arguments, logit_recovery
from tfsafe.keras_formulas.arguments import saved
from tfsafe.ops.nn import classes, crossentropy


@saved
def binary_crossentropy(
    y_true: Any,
    y_pred: Any,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> tf.Tensor:
    """`keras.losses.binary_crossentropy` without its clip; see `BinaryCrossentropy`.

    Args:
      y_true: Targets from 0 to 1.
      y_pred: Predictions.
      from_logits: Whether `y_pred` holds logits; probabilities otherwise.
      label_smoothing: Fraction of the target that is moved to 1/2.
      axis: The axis whose mean is one sample's loss.

    Returns:
      `Tensor` of the losses, of the dtype of `y_pred`.

    Raises:
      TypeError: If one of them is not dense, or does not hold numbers.
      ValueError: If shapes do not fit, or an option is out of its range.

    Numerics:
      That of `BinaryCrossentropy`.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import losses
      >>> print(losses.binary_crossentropy(
      ...     [[1.0]], tf.constant([[1.0]], tf.float16)
      ... ).numpy())
      [0.]
    """
    y_pred = arguments.predictions(y_pred)
    labels = arguments.labels_tensor(y_true)
    values = binary_rows(labels, y_pred, from_logits, label_smoothing, axis)
    return tf.cast(values, y_pred.dtype)


@saved
def categorical_crossentropy(
    y_true: Any,
    y_pred: Any,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> tf.Tensor:
    """`keras.losses.categorical_crossentropy` without its clip.

    See `CategoricalCrossentropy`.

    Args:
      y_true: Rows of labels, one-hot or soft.
      y_pred: Predictions of the same shape.
      from_logits: Whether `y_pred` holds logits; probabilities otherwise.
      label_smoothing: Fraction of each row that is spread evenly over the classes.
      axis: The axis of the classes.

    Returns:
      `Tensor` of the losses, of the dtype of `y_pred`.

    Raises:
      TypeError: If one of them is not dense, or does not hold numbers.
      ValueError: If shapes do not fit, or an option is out of its range.

    Numerics:
      That of `CategoricalCrossentropy`.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import losses
      >>> print(losses.categorical_crossentropy(
      ...     [[1.0, 0.0]], tf.constant([[1.0, 0.0]], tf.bfloat16)
      ... ).numpy())
      [0]
    """
    y_pred = arguments.predictions(y_pred)
    labels = arguments.labels_tensor(y_true)
    values = rows(labels, y_pred, from_logits, label_smoothing, axis)
    return tf.cast(values, y_pred.dtype)


@saved
def sparse_categorical_crossentropy(
    y_true: Any,
    y_pred: Any,
    from_logits: bool = False,
    ignore_class: int | None = None,
    axis: int = -1,
) -> tf.Tensor:
    """`keras.losses.sparse_categorical_crossentropy` without its clip.

    See `SparseCategoricalCrossentropy`.

    Args:
      y_true: Class indices, of any numeric dtype.
      y_pred: Predictions, with the classes at `axis`.
      from_logits: Whether `y_pred` holds logits; probabilities otherwise.
      ignore_class: A label of this value costs 0, and carries a Keras mask.
      axis: The axis of the classes.

    Returns:
      `Tensor` of the losses, of the dtype of `y_pred`.

    Raises:
      TypeError: If one of them is not dense, or does not hold numbers.
      ValueError: If shapes do not fit, or (in eager mode) a label is not a class.

    Numerics:
      That of `SparseCategoricalCrossentropy`.

    Examples:
      >>> from tfsafe import losses
      >>> print(losses.sparse_categorical_crossentropy(
      ...     [0, -1], [[0.5, 0.5], [0.5, 0.5]], ignore_class=-1
      ... ).numpy())
      [0.693147 0. ]
    """
    labels, y_pred = arguments.labels_tensor(y_true), arguments.predictions(y_pred)
    values = indices(labels, y_pred, from_logits, ignore_class, axis)
    counted = None if ignore_class is None else _compat.keras_mask(values)
    arguments.refuse_unknown_classes(labels, counted, y_pred, axis)
    return values


def binary(
    labels: tf.Tensor, y_pred: tf.Tensor, from_logits: bool, label_smoothing: float
) -> tf.Tensor:
    """Computes the cross-entropy of each binary target."""
    with tf.name_scope("binary_crossentropy"):
        x, from_logits = logits_or_probabilities(y_pred, from_logits, None)
        labels = classes.in_shape(tf.cast(labels, x.dtype), x)
        smoothing = classes.checked_smoothing(label_smoothing)
        if smoothing:
            labels = (1 - smoothing) * labels + smoothing / 2
        return crossentropy.binary(labels, x, from_logits, True)


def binary_rows(
    labels: tf.Tensor,
    y_pred: tf.Tensor,
    from_logits: bool,
    label_smoothing: float,
    axis: int,
) -> tf.Tensor:
    """Computes the mean cross-entropy of binary targets along an axis."""
    return tf.reduce_mean(binary(labels, y_pred, from_logits, label_smoothing), axis)


def rows(
    labels: tf.Tensor,
    y_pred: tf.Tensor,
    from_logits: bool,
    label_smoothing: float,
    axis: int,
) -> tf.Tensor:
    """Computes the cross-entropy of each row of labels."""
    with tf.name_scope("categorical_crossentropy"):
        axis = classes.class_axis(axis, y_pred.shape)
        x, from_logits = logits_or_probabilities(y_pred, from_logits, axis)
        labels = classes.in_shape(tf.cast(labels, x.dtype), x)
        smoothing = classes.checked_smoothing(label_smoothing)
        return crossentropy.rows(labels, x, axis, smoothing, from_logits, True)


def indices(
    labels: tf.Tensor,
    y_pred: tf.Tensor,
    from_logits: bool = False,
    ignore_class: int | None = None,
    axis: int = -1,
    label_smoothing: float = 0.0,
) -> tf.Tensor:
    """Computes the cross-entropy of each class index: NaN if it is not a class."""
    with tf.name_scope("sparse_categorical_crossentropy"):
        axis = classes.class_axis(axis, y_pred.shape)
        x, from_logits = logits_or_probabilities(y_pred, from_logits, axis)
        labels = arguments.lay_out(labels, x.shape, axis, "sparse")
        size = tf.shape(x)[axis]
        classified, known = arguments.class_indices(labels, size)
        smoothing = classes.checked_smoothing(label_smoothing)
        values = crossentropy.sparse(classified, x, axis, smoothing, from_logits, True)
        if ignore_class is None:
            values = arguments.nan_unless_class(labels, known, size, values)
            return tf.cast(values, y_pred.dtype)
        counted = tf.not_equal(labels, tf.cast(ignore_class, labels.dtype))
        values = arguments.nan_unless_class(labels, known | ~counted, size, values)
        values = tf.cast(values, y_pred.dtype)
        values = tf.where(counted, values, tf.zeros_like(values))
        _compat.set_keras_mask(values, counted)
        return values


def logits_or_probabilities(
    y_pred: tf.Tensor, from_logits: bool, axis: int | None
) -> tuple[tf.Tensor, bool]:
    """Replaces probabilities by the logits behind them if these can be found.

    Returns:
      Predictions in float32 or float64, and whether they are logits.
    """
    logits = logit_recovery.logits_behind(y_pred, axis)
    if logits is not None and from_logits:
        warnings.warn(
            "`from_logits=True`, but `y_pred` is the output of a softmax or sigmoid. "
            "The loss takes the logits behind it. Set `from_logits=False`, or drop the "
            "activation.",
            stacklevel=4,
        )
    x = y_pred if logits is None else logits
    wide = "float64" if tf.float64 in {x.dtype, y_pred.dtype} else "float32"
    return tf.cast(x, wide), from_logits or logits is not None
