"""Computes correlations of labels and predictions, for metrics."""

from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe.keras_formulas.arguments import formula
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.zeros import quotient
from tfsafe.ops.nn.normalize import cosine_similarity


@formula
def pearson_correlation(y_true: Any, y_pred: Any, axis: int = -1) -> tf.Tensor:
    """Computes Pearson's correlation coefficient.

    As `keras.metrics.pearson_correlation`, which is NaN where one of the two is
    constant.

    Args:
      y_true: Labels of any numeric dtype.
      y_pred: Predictions of the same shape, of any numeric dtype.
      axis: Axis or axes along which they are correlated.

    Returns:
      `Tensor` of the shape without `axis`, of the dtype of `y_pred`; float32 for
      integers.

    Raises:
      TypeError: If one of them is not dense.

    Numerics:
      constant  value 0 (a choice: the correlation is undefined)
      NaN       value NaN

    Examples:
      >>> from tfsafe import metrics
      >>> y_true = [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]
      >>> y_pred = [[2.0, 2.0, 2.0], [2.0, 4.0, 6.0]]
      >>> print(metrics.pearson_correlation(y_true, y_pred).numpy())
      [0. 1.]
    """
    return cosine_similarity(_centred(y_true, axis), _centred(y_pred, axis), axis)


@formula
def concordance_correlation(y_true: Any, y_pred: Any, axis: int = -1) -> tf.Tensor:
    """Computes Lin's concordance correlation coefficient.

    As `keras.metrics.concordance_correlation`, without the 1e-7 in its denominator,
    which matters as soon as the data are small.

    Args:
      y_true: Labels of any numeric dtype.
      y_pred: Predictions of the same shape, of any numeric dtype.
      axis: Axis or axes along which they are correlated.

    Returns:
      `Tensor` of the shape without `axis`, of the dtype of `y_pred`; float32 for
      integers.

    Raises:
      TypeError: If one of them is not dense.

    Numerics:
      both constant  value 0 (a choice: the correlation is undefined)
      NaN            value NaN

    Examples:
      >>> from tfsafe import metrics
      >>> y_true, y_pred = [[0.0, 1e-5]], [[0.0, 2e-5]]
      >>> print(metrics.concordance_correlation(y_true, y_pred).numpy())
      [0.6666667]

    References:
      Lin, "A Concordance Correlation Coefficient to Evaluate Reproducibility",
      Biometrics 45(1), 1989.
    """
    # One power of 2 for both: their squares stay in range, no digit is rounded, and
    # the quotient is the same.
    largest = tf.maximum(tf.abs(y_true), tf.abs(y_pred))
    _, _, inverse = precision.scaled(largest, _args.axes(axis, y_true.shape))
    y, p = y_true * inverse, y_pred * inverse
    shift = tf.square(tf.reduce_mean(y - p, axis, keepdims=True))
    y, p = _centred(y, axis), _centred(p, axis)
    spread = tf.reduce_mean(tf.square(y) + tf.square(p), axis, keepdims=True)
    covariance = tf.reduce_mean(2 * y * p, axis, keepdims=True)
    return tf.squeeze(quotient(covariance, spread + shift), axis)


def _centred(x: tf.Tensor, axis: Any) -> tf.Tensor:
    """Returns the distances from the mean."""
    # From the largest value, so that a constant has no distance, and once more from
    # the mean of the distances, whose rounding is that of the spread.
    distance = x - tf.reduce_max(x, axis, keepdims=True)
    distance -= tf.reduce_mean(distance, axis, keepdims=True)
    return distance - tf.reduce_mean(distance, axis, keepdims=True)
