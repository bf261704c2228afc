"""Cross entropies with Keras' arguments, which no prediction makes infinite.

For losses and metrics alike: labels of any dtype and layout, the logits behind a
softmax or sigmoid where they can be found, and otherwise bounded logarithms.
"""

import warnings
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfsafe import _args, _compat
from tfsafe.keras_formulas import labels as _labels
from tfsafe.keras_formulas import logit_recovery
from tfsafe.ops.nn import classes, crossentropy, focal

_Formula = Callable[..., tf.Tensor]


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
      y_pred: Floating predictions.
      from_logits: Whether `y_pred` holds logits; probabilities otherwise.
      label_smoothing: Share of the target that is moved to 1/2.
      axis: The axis whose mean is one sample's loss.

    Returns:
      `Tensor` of the losses, of the dtype of `y_pred`.

    Raises:
      TypeError: If `y_pred` is not floating.
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
    return _elementwise(
        crossentropy.binary_crossentropy,
        y_true,
        y_pred,
        from_logits,
        axis,
        label_smoothing=label_smoothing,
    )


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
      y_pred: Floating predictions of the same shape.
      from_logits: Whether `y_pred` holds logits; probabilities otherwise.
      label_smoothing: Share of each row that is spread evenly over the classes.
      axis: The axis of the classes.

    Returns:
      `Tensor` of the losses, of the dtype of `y_pred`.

    Raises:
      TypeError: If `y_pred` is not floating.
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
    return _rows(
        crossentropy.categorical_crossentropy,
        y_true,
        y_pred,
        from_logits,
        axis,
        label_smoothing=label_smoothing,
    )


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
      y_pred: Floating predictions, with the classes at `axis`.
      from_logits: Whether `y_pred` holds logits; probabilities otherwise.
      ignore_class: A label of this value costs 0, and carries a Keras mask.
      axis: The axis of the classes.

    Returns:
      `Tensor` of the losses, of the dtype of `y_pred`.

    Raises:
      TypeError: If `y_pred` is not floating.
      ValueError: If shapes do not fit.

    Numerics:
      That of `SparseCategoricalCrossentropy`.

    Examples:
      >>> from tfsafe import losses
      >>> print(losses.sparse_categorical_crossentropy(
      ...     [0, -1], [[0.5, 0.5], [0.5, 0.5]], ignore_class=-1
      ... ).numpy())
      [0.693147 0. ]
    """
    values, labels = _indices(
        crossentropy.sparse_categorical_crossentropy, y_true, y_pred, from_logits, axis
    )
    if ignore_class is None:
        return values
    counted = tf.not_equal(labels, tf.cast(ignore_class, labels.dtype))
    values = tf.where(counted, values, tf.zeros_like(values))
    _compat.set_keras_mask(values, counted)
    return values


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
      y_pred: Floating predictions.
      apply_class_balancing: Whether `alpha` is used.
      alpha: Weight of the targets of 1, against `1 - alpha` for those of 0.
      gamma: How fast the weight of a good prediction falls; at least 0.
      from_logits: Whether `y_pred` holds logits; probabilities otherwise.
      label_smoothing: Share of the target that is moved to 1/2.
      axis: The axis whose mean is one sample's loss.

    Returns:
      `Tensor` of the losses, of the dtype of `y_pred`.

    Raises:
      TypeError: If `y_pred` is not floating.
      ValueError: If shapes do not fit, or an option is out of its range.

    Numerics:
      That of `BinaryFocalCrossentropy`.

    Examples:
      >>> from tfsafe import losses
      >>> print(losses.binary_focal_crossentropy([[1.0]], [[0.5]]).numpy())
      [0.17328]
    """
    return _elementwise(
        focal.binary_focal_crossentropy,
        y_true,
        y_pred,
        from_logits,
        axis,
        gamma=gamma,
        alpha=alpha if apply_class_balancing else None,
        label_smoothing=label_smoothing,
    )


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
      y_pred: Floating predictions of the same shape.
      alpha: Weight of all classes, or a sequence with that of each.
      gamma: How fast the weight of a good prediction falls; at least 0.
      from_logits: Whether `y_pred` holds logits; probabilities otherwise.
      label_smoothing: Share of each row that is spread evenly over the classes.
      axis: The axis of the classes.

    Returns:
      `Tensor` of the losses, of the dtype of `y_pred`.

    Raises:
      TypeError: If `y_pred` is not floating.
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
    return _rows(
        focal.categorical_focal_crossentropy,
        y_true,
        y_pred,
        from_logits,
        axis,
        gamma=gamma,
        alpha=alpha,
        label_smoothing=label_smoothing,
    )


def categorical_generalized_cross_entropy(
    y_true: Any, y_pred: Any, q: float
) -> tf.Tensor:
    """`keras.losses.categorical_generalized_cross_entropy`, finite at probability 0.

    See `CategoricalGeneralizedCrossEntropy`.

    Args:
      y_true: Class indices, of any numeric dtype.
      y_pred: Floating probabilities, with the classes along the last axis.
      q: Number between 0 and 1.

    Returns:
      `Tensor` of the losses, of the dtype of `y_pred`.

    Raises:
      TypeError: If `y_pred` is not floating.
      ValueError: If shapes do not fit, or `q` is out of its range.

    Numerics:
      That of `CategoricalGeneralizedCrossEntropy`.

    Examples:
      >>> from tfsafe import losses
      >>> print(losses.categorical_generalized_cross_entropy(
      ...     [1], [[0.75, 0.25]], q=0.5
      ... ).numpy())
      [1.]
    """
    return _indices(
        focal.categorical_generalized_cross_entropy, y_true, y_pred, False, -1, q=q
    )[0]


def _elementwise(
    formula: _Formula,
    y_true: Any,
    y_pred: Any,
    from_logits: bool,
    axis: int,
    **options: Any,
) -> tf.Tensor:
    """Applies a formula for binary targets, and takes the mean along an axis."""
    y_pred = _args.float_tensor(y_pred, "y_pred", tf.float32)
    x, from_logits = _predictions(y_pred, from_logits, None)
    labels = tf.cast(_labels.tensor(y_true), x.dtype)
    values = formula(labels, x, from_logits=from_logits, bounded=True, **options)
    return tf.cast(tf.reduce_mean(values, axis), y_pred.dtype)


def _rows(
    formula: _Formula,
    y_true: Any,
    y_pred: Any,
    from_logits: bool,
    axis: int,
    **options: Any,
) -> tf.Tensor:
    """Applies a formula for rows of labels."""
    y_pred = _args.float_tensor(y_pred, "y_pred", tf.float32)
    axis = classes.class_axis(axis, y_pred.shape)
    x, from_logits = _predictions(y_pred, from_logits, axis)
    labels = tf.cast(_labels.tensor(y_true), x.dtype)
    options |= {"from_logits": from_logits, "axis": axis, "bounded": True}
    return tf.cast(formula(labels, x, **options), y_pred.dtype)


def _indices(
    formula: _Formula,
    y_true: Any,
    y_pred: Any,
    from_logits: bool,
    axis: int,
    **options: Any,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Applies a formula for class indices; also returns these, as they were given."""
    y_pred = _args.float_tensor(y_pred, "y_pred", tf.float32)
    axis = classes.class_axis(axis, y_pred.shape)
    x, from_logits = _predictions(y_pred, from_logits, axis)
    labels = _labels.lay_out(_labels.tensor(y_true), x.shape, axis, "sparse")
    known = _labels.class_indices(labels, tf.shape(x)[axis])
    options |= {"from_logits": from_logits, "axis": axis, "bounded": True}
    return tf.cast(formula(known, x, **options), y_pred.dtype), labels


def _predictions(
    y_pred: tf.Tensor, from_logits: bool, axis: int | None
) -> tuple[tf.Tensor, bool]:
    """Returns predictions in float32 or float64, and whether they are logits."""
    logits = logit_recovery.logits_behind(y_pred, axis)
    if logits is not None and from_logits:
        warnings.warn(
            "`from_logits=True`, but `y_pred` is the output of a softmax or sigmoid. "
            "The loss takes the logits behind it. Set `from_logits=False`, or drop the "
            "activation.",
            stacklevel=4,
        )
    x = y_pred if logits is None else logits
    wide = x if x.dtype.size > 2 else tf.cast(x, tf.float32)
    return wide, from_logits or logits is not None
