"""Focal and generalised cross-entropies with Keras' arguments."""

from typing import Any

import tensorflow as tf

from tfsafe.keras_formulas import arguments
from tfsafe.keras_formulas.arguments import saved
from tfsafe.keras_formulas.crossentropy import logits_or_probabilities
from tfsafe.ops.nn import classes, focal


@saved
def binary_focal_crossentropy(
    y_true: Any,
    y_pred: Any,
    apply_class_balancing: bool = False,
    alpha: float = 0.25,
    gamma: float = 2.0,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> tf.Tensor:
    """`keras.losses.binary_focal_crossentropy` without its clip.

    See `BinaryFocalCrossentropy`.

    Args:
      y_true: Targets from 0 to 1.
      y_pred: Predictions.
      apply_class_balancing: Whether `alpha` is used.
      alpha: Weight of the targets of 1, against `1 - alpha` for those of 0.
      gamma: How fast the weight of a good prediction falls; at least 0.
      from_logits: Whether `y_pred` holds logits; probabilities otherwise.
      label_smoothing: Fraction of the target that is moved to 1/2.
      axis: The axis whose mean is one sample's loss.

    Returns:
      `Tensor` of the losses, of the dtype of `y_pred`.

    Raises:
      TypeError: If one of them is not dense, or does not hold numbers.
      ValueError: If shapes do not fit, or an option is out of its range.

    Numerics:
      That of `BinaryFocalCrossentropy`.

    Examples:
      >>> from tfsafe import losses
      >>> print(losses.binary_focal_crossentropy([[1.0]], [[0.5]]).numpy())
      [0.17328]
    """
    y_pred = arguments.predictions(y_pred)
    x, from_logits = logits_or_probabilities(y_pred, from_logits, None)
    values = focal.binary_focal_crossentropy(
        tf.cast(arguments.labels_tensor(y_true), x.dtype),
        x,
        from_logits=from_logits,
        gamma=gamma,
        alpha=alpha if apply_class_balancing else None,
        label_smoothing=label_smoothing,
        bounded=True,
    )
    return tf.cast(tf.reduce_mean(values, axis), y_pred.dtype)


@saved
def categorical_focal_crossentropy(
    y_true: Any,
    y_pred: Any,
    alpha: Any = 0.25,
    gamma: float = 2.0,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> tf.Tensor:
    """`keras.losses.categorical_focal_crossentropy` without its clip.

    See `CategoricalFocalCrossentropy`.

    Args:
      y_true: Rows of labels, one-hot or soft.
      y_pred: Predictions of the same shape.
      alpha: Weight of all classes, or a sequence with that of each.
      gamma: How fast the weight of a good prediction falls; at least 0.
      from_logits: Whether `y_pred` holds logits; probabilities otherwise.
      label_smoothing: Fraction of each row that is spread evenly over the classes.
      axis: The axis of the classes.

    Returns:
      `Tensor` of the losses, of the dtype of `y_pred`.

    Raises:
      TypeError: If one of them is not dense, or does not hold numbers.
      ValueError: If shapes do not fit, or an option is out of its range.

    Numerics:
      That of `CategoricalFocalCrossentropy`.

    Examples:
      >>> from tfsafe import losses
      >>> print(losses.categorical_focal_crossentropy(
      ...     [[1.0, 0.0]], [[0.5, 0.5]]
      ... ).numpy())
      [0.04332]
    """
    y_pred = arguments.predictions(y_pred)
    axis = classes.class_axis(axis, y_pred.shape)
    x, from_logits = logits_or_probabilities(y_pred, from_logits, axis)
    values = focal.categorical_focal_crossentropy(
        tf.cast(arguments.labels_tensor(y_true), x.dtype),
        x,
        from_logits=from_logits,
        gamma=gamma,
        alpha=alpha,
        label_smoothing=label_smoothing,
        axis=axis,
        bounded=True,
    )
    return tf.cast(values, y_pred.dtype)


@saved
def categorical_generalized_cross_entropy(
    y_true: Any, y_pred: Any, q: float
) -> tf.Tensor:
    """`keras.losses.categorical_generalized_cross_entropy`, finite at probability 0.

    See `CategoricalGeneralizedCrossEntropy`.

    Args:
      y_true: Class indices, of any numeric dtype.
      y_pred: Probabilities, with the classes along the last axis.
      q: Number between 0 and 1.

    Returns:
      `Tensor` of the losses, of the dtype of `y_pred`.

    Raises:
      TypeError: If one of them is not dense, or does not hold numbers.
      ValueError: If shapes do not fit, `q` is out of its range, or (in eager mode) a
        label is not a class.

    Numerics:
      That of `CategoricalGeneralizedCrossEntropy`.

    Examples:
      >>> from tfsafe import losses
      >>> print(losses.categorical_generalized_cross_entropy(
      ...     [1], [[0.75, 0.25]], q=0.5
      ... ).numpy())
      [1.]
    """
    labels, y_pred = arguments.labels_tensor(y_true), arguments.predictions(y_pred)
    values = generalized(labels, y_pred, q)
    arguments.refuse_unknown_classes(labels, None, y_pred, -1)
    return values


def generalized(labels: tf.Tensor, y_pred: tf.Tensor, q: float) -> tf.Tensor:
    """Computes the generalised cross-entropy: NaN if a label is not a class."""
    axis = classes.class_axis(-1, y_pred.shape)
    x, from_logits = logits_or_probabilities(y_pred, False, axis)
    labels = arguments.lay_out(labels, x.shape, axis, "sparse")
    size = tf.shape(x)[axis]
    indices, known = arguments.class_indices(labels, size)
    values = focal.categorical_generalized_cross_entropy(
        indices, x, q=q, from_logits=from_logits, axis=axis, bounded=True
    )
    values = arguments.nan_unless_class(labels, known, size, values)
    return tf.cast(values, y_pred.dtype)
