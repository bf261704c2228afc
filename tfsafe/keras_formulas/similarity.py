"""Computes hinges, cosines and overlaps of labels and predictions."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfsafe._gradients import custom_gradient
from tfsafe.keras_formulas.arguments import formula
from tfsafe.ops.kernels import zeros
from tfsafe.ops.kernels.zeros import (
    quotient,
    quotient_for_gradient,
    times_where_nonzero,
)
from tfsafe.ops.nn import normalize

_Gradient = Callable[[tf.Tensor], tf.Tensor]


@formula
def hinge(y_true: Any, y_pred: Any) -> tf.Tensor:
    """Computes the mean of `max(1 - y_true * y_pred, 0)` along the last axis.

    As `keras.losses.hinge`, but a NaN among the labels, which a weight of 0 may take
    out, does not change how the others are read.

    Args:
      y_true: Labels of shape `[..., n]`, -1 and 1; or 0 and 1 throughout, where 0
        means -1.
      y_pred: Predictions of the same shape, of any numeric dtype.

    Returns:
      `Tensor` of shape `[...]`, of the dtype of `y_pred`; float32 for integers.

    Raises:
      TypeError: If one of them is not dense.

    Numerics:
      NaN  value NaN
      A zero incoming gradient gives zero gradients, NaN or not.

    Examples:
      >>> from tfsafe import losses
      >>> print(losses.hinge([[-1, 1]], [[0.5, 3.0]]).numpy())
      [0.75]
    """
    return tf.reduce_mean(_hinge(y_true, y_pred), -1)


@formula
def squared_hinge(y_true: Any, y_pred: Any) -> tf.Tensor:
    """Computes the mean of `max(1 - y_true * y_pred, 0)^2` along the last axis.

    As `keras.losses.squared_hinge`, with the difference that `hinge` has.

    Args:
      y_true: Labels of shape `[..., n]`, -1 and 1; or 0 and 1 throughout, where 0
        means -1.
      y_pred: Predictions of the same shape, of any numeric dtype.

    Returns:
      `Tensor` of shape `[...]`, of the dtype of `y_pred`; float32 for integers.

    Raises:
      TypeError: If one of them is not dense.

    Numerics:
      NaN  value NaN
      A zero incoming gradient gives zero gradients, NaN or not.

    Examples:
      >>> from tfsafe import losses
      >>> print(losses.squared_hinge([[-1, 1]], [[0.5, 3.0]]).numpy())
      [1.125]
    """
    return tf.reduce_mean(zeros.square(_hinge(y_true, y_pred)), -1)


def _hinge(y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
    known = tf.equal(y_true, 0) | tf.equal(y_true, 1) | tf.math.is_nan(y_true)
    labels = tf.where(tf.reduce_all(known), 2 * y_true - 1, y_true)
    return _positive_part(1 - zeros.weighted_unless_nan(labels, y_pred))


@formula
def categorical_hinge(y_true: Any, y_pred: Any) -> tf.Tensor:
    """Computes how far the best wrong class comes within 1 of the true class.

    `max(neg - pos + 1, 0)` with `pos = sum(y_true * y_pred)` and
    `neg = max((1 - y_true) * y_pred)` along the last axis. As
    `keras.losses.categorical_hinge`, but a class that was masked with a logit of -inf
    does not make it NaN.

    Args:
      y_true: One-hot rows of shape `[..., classes]`.
      y_pred: Predictions of the same shape, of any numeric dtype.

    Returns:
      `Tensor` of shape `[...]`, of the dtype of `y_pred`; float32 for integers.

    Raises:
      TypeError: If one of them is not dense.

    Numerics:
      prediction -inf  wrong class: counts 0, slope 0; true class: value inf
      NaN              value NaN
      A zero incoming gradient gives zero gradients, NaN or not.

    Examples:
      >>> from tfsafe import losses
      >>> y_pred = [[float("-inf"), 0.0, 1.0]]
      >>> print(losses.categorical_hinge([[0, 1, 0]], y_pred).numpy())
      [2.]
    """
    pos = tf.reduce_sum(zeros.weighted_unless_nan(y_true, y_pred), -1)
    neg = _largest(zeros.weighted_unless_nan(1 - y_true, y_pred))
    return _positive_part(neg - pos + 1)


@formula
def cosine_similarity(
    y_true: Any, y_pred: Any, axis: int | Sequence[int] = -1
) -> tf.Tensor:
    """Computes minus the cosine of the angle between labels and predictions.

    As `keras.losses.cosine_similarity`, whose gradient at the zero vector is 1e7 or
    NaN, and which is 0 for vectors beyond 1e19.

    Args:
      y_true: Vectors of any numeric dtype.
      y_pred: Vectors of the same shape, of any numeric dtype.
      axis: Axis or axes that make a vector.

    Returns:
      `Tensor` of the shape without these axes, of the dtype of `y_pred`; float32 for
      integers.

    Raises:
      TypeError: If one of them is not dense, or if `axis` is not an integer.
      ValueError: If `axis` is out of range.

    Numerics:
      zero vector  value 0, gradient 0 (a choice: the angle is undefined)
      NaN          value NaN
      A zero incoming gradient gives zero gradients, NaN or not.

    Examples:
      >>> from tfsafe import losses
      >>> print(losses.cosine_similarity([[1.0, 0.0]], [[1e-20, 0.0]]).numpy())
      [-1.]
    """
    return -normalize.cosine_similarity(y_true, y_pred, axis)


@formula
def dice(
    y_true: Any, y_pred: Any, axis: int | Sequence[int] | None = None
) -> tf.Tensor:
    """Computes Dice's loss, `1 - 2 sum(y_true * y_pred) / sum(y_true + y_pred)`.

    As `keras.losses.dice`, but right where the labels are all 0: there Keras' loss is
    1 with gradient 0, whatever the prediction.

    Args:
      y_true: Labels from 0 to 1, of any numeric dtype.
      y_pred: Predictions from 0 to 1, of the same shape.
      axis: Axis or axes of one region; None means all of them.

    Returns:
      `Tensor` of the shape without these axes, of the dtype of `y_pred`; float32 for
      integers.

    Raises:
      TypeError: If one of them is not dense.

    Numerics:
      labels all 0    value s / (2 + s) with s = sum(y_pred), gradient 2 / (2 + s)^2:
                      nothing predicted is perfect (a choice, of the smooth Dice)
      prediction < 0  counts with its magnitude in the denominator (a bounded choice)
      NaN             value NaN
      A zero incoming gradient gives zero gradients, NaN or not.

    Examples:
      >>> from tfsafe import losses
      >>> print(losses.dice([[1, 0], [0, 0]], [[0.5, 0.5], [0, 0]], axis=1).numpy())
      [0.5 0. ]
    """
    return _overlap(y_true, y_pred, 0.5, 0.5, axis)


@formula
def tversky(
    y_true: Any,
    y_pred: Any,
    alpha: float = 0.5,
    beta: float = 0.5,
    axis: int | Sequence[int] | None = None,
) -> tf.Tensor:
    """Computes Tversky's loss, `1 - i / (i + alpha * missed + beta * false)`.

    Here `i` is `sum(y_true * y_pred)`, `missed` is `sum(y_true * (1 - y_pred))` and
    `false` is `sum((1 - y_true) * y_pred)`. As `keras.losses.tversky`, with the
    differences that `dice` has.

    Args:
      y_true: Labels from 0 to 1, of any numeric dtype.
      y_pred: Predictions from 0 to 1, of the same shape.
      alpha: Weight of the elements that the prediction misses.
      beta: Weight of the elements that it adds.
      axis: Axis or axes of one region; None means all of them.

    Returns:
      `Tensor` of the shape without these axes, of the dtype of `y_pred`; float32 for
      integers.

    Raises:
      TypeError: If one of them is not dense.

    Numerics:
      labels all 0    value b / (1 + b) with b = beta * sum(y_pred): nothing predicted
                      is perfect (a choice, of the smooth form)
      prediction < 0  counts with its magnitude in the denominator (a bounded choice)
      nothing left    value 1, gradient 0 (alpha or beta of 0 may do that)
      NaN             value NaN
      A zero incoming gradient gives zero gradients, NaN or not.

    Examples:
      >>> from tfsafe import losses
      >>> print(losses.tversky([[1, 0]], [[0.5, 0.5]], beta=0.25).numpy())
      0.4285714

    References:
      Salehi, Erdogmus, Gholipour, "Tversky loss function for image segmentation
      using 3D fully convolutional deep networks", 2017.
    """
    return _overlap(y_true, y_pred, alpha, beta, axis)


def _overlap(
    y: tf.Tensor, p: tf.Tensor, alpha: float, beta: float, axis: Any
) -> tf.Tensor:
    # Not the absolute value: its slope at 0 is 0, which is not that of the loss.
    size = tf.where(p < 0, -p, p)
    shared = tf.reduce_sum(zeros.weighted_unless_nan(y, p), axis)
    labelled = tf.reduce_sum(y, axis)
    whole = (
        alpha * labelled
        + beta * tf.reduce_sum(size, axis)
        + (1 - alpha - beta) * tf.reduce_sum(zeros.weighted_unless_nan(y, size), axis)
    )
    # Without labels all that is predicted is false. A 1 in the denominator, as in the
    # smooth form, makes the loss fall with it.
    is_empty = tf.equal(labelled, 0)
    regular = 1 - quotient(shared, whole)
    return tf.where(is_empty, quotient(whole, 1 + whole), regular)


def _positive_part(x: tf.Tensor) -> tf.Tensor:
    # A comparison that lets NaN through.
    return tf.where(x < 0, tf.zeros_like(x), x)


@custom_gradient
def _largest(x: tf.Tensor) -> tuple[tf.Tensor, _Gradient]:
    # The slope is shared by those that are equal, as in `tf.reduce_max`, whose own is
    # NaN in a row with a NaN, whatever comes in.
    value = tf.reduce_max(x, -1, keepdims=True)

    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        is_top = tf.cast(tf.equal(x, value), x.dtype)
        count = tf.reduce_sum(is_top, -1, keepdims=True)
        return quotient_for_gradient(
            times_where_nonzero(upstream[..., tf.newaxis], is_top), count
        )

    return value[..., 0], vjp
