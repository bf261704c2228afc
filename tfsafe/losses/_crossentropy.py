"""Keras' cross entropies of probabilities or logits, and their functions."""

import warnings
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from tfsafe import _args, _compat, ops
from tfsafe.losses import _labels, _recovery
from tfsafe.losses._reduction import Weighted
from tfsafe.ops import _classes

_safe = keras.saving.register_keras_serializable(package="tfsafe")
_Loss = Callable[..., tf.Tensor]


@_safe
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
    return elementwise(
        ops.binary_crossentropy,
        y_true,
        y_pred,
        from_logits,
        axis,
        label_smoothing=label_smoothing,
    )


@_safe
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
    return rows(
        ops.categorical_crossentropy,
        y_true,
        y_pred,
        from_logits,
        axis,
        label_smoothing=label_smoothing,
    )


@_safe
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
    values, labels = indices(
        ops.sparse_categorical_crossentropy, y_true, y_pred, from_logits, axis
    )
    if ignore_class is None:
        return values
    counted = tf.not_equal(labels, tf.cast(ignore_class, labels.dtype))
    values = tf.where(counted, values, tf.zeros_like(values))
    _compat.set_keras_mask(values, counted)
    return values


@_safe
class BinaryCrossentropy(Weighted, keras.losses.BinaryCrossentropy):
    """Cross entropy of binary targets, with no NaN and no clip.

    `keras.losses.BinaryCrossentropy`, right where that gives NaN or blocks the
    gradient.

    Args:
      from_logits: Whether `y_pred` holds logits; probabilities otherwise.
      label_smoothing: Share of the target, from 0 to 1, that is moved to 1/2.
      axis: The axis whose mean is one sample's loss.
      reduction: How the losses of the samples are joined, as in Keras.
      name: Name of the loss.
      dtype: Dtype of the result; half precision is computed in float32.

    Numerics:
      logit -inf        target 0: value 0, gradient 0; target > 0: value inf
      logit inf         target 1: value 0, gradient 0; target < 1: value inf
      probability < 1.2e-38 (in float32)  the logarithm goes on with slope 1 from its
                        value there, -87.3 (a bounded choice); so at 1, for a target
                        below 1
      outside [0, 1]    finite, with a gradient towards it: `from_logits` is missing
      weight 0, masked  value 0, gradient 0, whatever stands there
      NaN elsewhere     value NaN

      Where `y_pred` is the result of a sigmoid, the logits are used, and no digit is
      lost: in eager mode if nothing but the loss's own cast came after Keras'
      `sigmoid`; in a traced function (`tf.function`, `fit`, XLA) also behind other
      casts, `Reshape`, `ExpandDims`, `Squeeze`, `Transpose` and a `tf.where` with 0,
      and of `tf.sigmoid` as well. Otherwise the loss has the digits of the probability:
      for a target of 0 it is within 1 % up to a logit of 5.5 in float16, 3 in bfloat16
      and 14.5 in float32, where `1 - p` cancels.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import losses
      >>> loss = losses.BinaryCrossentropy(from_logits=True)
      >>> print(loss([[0.0]], tf.constant([[-float("inf")]])).numpy())
      0.
    """

    formula = staticmethod(binary_crossentropy)


@_safe
class CategoricalCrossentropy(Weighted, keras.losses.CategoricalCrossentropy):
    """Cross entropy of rows of labels, with no NaN and no clip.

    `keras.losses.CategoricalCrossentropy`, right where that gives NaN, blocks the
    gradient, or gives the wrong gradient: for rows of labels that do not sum to 1.

    Args:
      from_logits: Whether `y_pred` holds logits; probabilities otherwise.
      label_smoothing: Share of each row's sum, from 0 to 1, that is spread evenly over
        the classes.
      axis: The axis of the classes.
      reduction: How the losses of the samples are joined, as in Keras.
      name: Name of the loss.
      dtype: Dtype of the result; half precision is computed in float32.

    Numerics:
      logit -inf          label 0: counts 0, gradient 0; label > 0: value inf
      rows of any sum     gradient p * sum(y_true) - y_true
      row of zero labels  value 0, gradient 0, whatever the predictions
      probability < 1.2e-38 (in float32)  label 0: counts 0; label > 0: the logarithm
                          goes on with slope 1 from its value there, -87.3 (a bounded
                          choice), for numbers below 0 as well
      weight 0, masked    value 0, gradient 0, whatever stands there
      NaN elsewhere       value NaN

      Where `y_pred` is the result of a softmax along `axis`, the logits are used, and
      no digit is lost: in eager mode if nothing but the loss's own cast came after
      Keras' `softmax`; in a traced function (`tf.function`, `fit`, XLA) also behind
      other casts, a change of layout that keeps the last axis, `Transpose` and a
      `tf.where` with 0, and of `tf.nn.softmax` as well. Otherwise the loss has the
      digits of the probability, and a class of probability 0 has lost its distance.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import losses
      >>> loss = losses.CategoricalCrossentropy(from_logits=True)
      >>> logits = tf.constant([[-float("inf"), 0.0, 1.0]])
      >>> print(loss([[0.0, 1.0, 0.0]], logits).numpy())
      1.31326
    """

    formula = staticmethod(categorical_crossentropy)


@_safe
class SparseCategoricalCrossentropy(
    Weighted, keras.losses.SparseCategoricalCrossentropy
):
    """Cross entropy of class indices, with no NaN and no clip.

    `keras.losses.SparseCategoricalCrossentropy`, with the gradient of its logits where
    `ignore_class` loses them, and the classes along any axis.

    Args:
      from_logits: Whether `y_pred` holds logits; probabilities otherwise.
      ignore_class: A label of this value is left out, as if masked.
      reduction: How the losses of the samples are joined, as in Keras.
      axis: The axis of the classes.
      name: Name of the loss.
      dtype: Dtype of the result; half precision is computed in float32.

    Numerics:
      logit -inf       at another class: counts 0, gradient 0; at the label: value inf
      unknown class    value NaN, gradient 0, in every mode
      probability < 1.2e-38 (in float32)  at the label: the logarithm goes on with slope
                       1 from its value there, -87.3 (a bounded choice), for numbers
                       below 0 as well
      weight 0, mask, `ignore_class`  value 0, gradient 0, whatever stands there
      NaN elsewhere    value NaN

      Where `y_pred` is the result of a softmax, its logits are used as by
      `CategoricalCrossentropy`.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import losses
      >>> loss = losses.SparseCategoricalCrossentropy(ignore_class=-1)
      >>> logits = tf.constant([[0.0, 200.0], [0.0, 0.0]])
      >>> print(loss([0, -1], keras.activations.softmax(logits)).numpy())
      200.
    """

    formula = staticmethod(sparse_categorical_crossentropy)

    def _widened(self, y_true: Any, y_pred: Any) -> tuple[tf.Tensor, tf.Tensor]:
        # Class indices stay integers: float32 holds none beyond 2 ** 24.
        return _labels.tensor(y_true), super()._widened(0, y_pred)[1]


def elementwise(
    formula: _Loss,
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


def rows(
    formula: _Loss,
    y_true: Any,
    y_pred: Any,
    from_logits: bool,
    axis: int,
    **options: Any,
) -> tf.Tensor:
    """Applies a formula for rows of labels."""
    y_pred = _args.float_tensor(y_pred, "y_pred", tf.float32)
    axis = _classes.class_axis(axis, y_pred.shape)
    x, from_logits = _predictions(y_pred, from_logits, axis)
    labels = tf.cast(_labels.tensor(y_true), x.dtype)
    options |= {"from_logits": from_logits, "axis": axis, "bounded": True}
    return tf.cast(formula(labels, x, **options), y_pred.dtype)


def indices(
    formula: _Loss,
    y_true: Any,
    y_pred: Any,
    from_logits: bool,
    axis: int,
    **options: Any,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Applies a formula for class indices; also returns these, as they were given."""
    y_pred = _args.float_tensor(y_pred, "y_pred", tf.float32)
    axis = _classes.class_axis(axis, y_pred.shape)
    x, from_logits = _predictions(y_pred, from_logits, axis)
    labels = _labels.lay_out(_labels.tensor(y_true), x.shape, axis, "sparse")
    known = _labels.class_indices(labels, tf.shape(x)[axis])
    options |= {"from_logits": from_logits, "axis": axis, "bounded": True}
    return tf.cast(formula(known, x, **options), y_pred.dtype), labels


def _predictions(
    y_pred: tf.Tensor, from_logits: bool, axis: int | None
) -> tuple[tf.Tensor, bool]:
    """Returns predictions in float32 or float64, and whether they are logits."""
    logits = _recovery.logits_behind(y_pred, axis)
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
