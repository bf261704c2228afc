"""Correlations of labels and predictions, for metrics."""

from typing import Any

import tensorflow as tf

from tfsafe._gradients import nan_where
from tfsafe.keras_formulas import arguments
from tfsafe.keras_formulas.arguments import saved
from tfsafe.ops.kernels.zeros import quotient
from tfsafe.ops.nn.normalize import cosine_similarity


@saved
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
      constant  value 0 (a choice: there is no correlation)
      NaN       value NaN

    Examples:
      >>> from tfsafe import metrics
      >>> y_true = [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]
      >>> y_pred = [[2.0, 2.0, 2.0], [2.0, 4.0, 6.0]]
      >>> print(metrics.pearson_correlation(y_true, y_pred).numpy())
      [0. 1.]
    """

    def formula(y: tf.Tensor, p: tf.Tensor) -> tf.Tensor:
        y, _ = _centred(y, axis)
        p, _ = _centred(p, axis)
        # A constant has no angle, but does not hide a NaN of the other.
        broken = tf.reduce_any(tf.math.is_nan(y) | tf.math.is_nan(p), axis)
        return cosine_similarity(y, p, axis) + nan_where(broken, y.dtype)

    return arguments.compute(formula, y_true, y_pred, "pearson_correlation")


@saved
def concordance_correlation(y_true: Any, y_pred: Any, axis: int = -1) -> tf.Tensor:
    """Computes Lin's concordance correlation coefficient.

    As `keras.metrics.concordance_correlation`, without the 1e-7 in its denominator,
    which counts as soon as the data are small.

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
      both constant  value 0 (a choice: there is no correlation)
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

    def formula(y: tf.Tensor, p: tf.Tensor) -> tf.Tensor:
        # One scale for both: their squares stay in range, and the quotient the same.
        largest = tf.maximum(
            tf.reduce_max(tf.abs(y), axis, keepdims=True),
            tf.reduce_max(tf.abs(p), axis, keepdims=True),
        )
        y, y_mean = _centred(quotient(y, largest), axis)
        p, p_mean = _centred(quotient(p, largest), axis)
        spread = tf.reduce_mean(tf.square(y) + tf.square(p), axis, keepdims=True)
        shift = tf.square(y_mean - p_mean)
        covariance = tf.reduce_mean(2 * y * p, axis, keepdims=True)
        return tf.squeeze(quotient(covariance, spread + shift), axis)

    return arguments.compute(formula, y_true, y_pred, "concordance_correlation")


def _centred(x: tf.Tensor, axis: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the distances from the mean, and the mean, with the axes kept."""
    mean = tf.reduce_mean(x, axis, keepdims=True)
    lowest = tf.reduce_min(x, axis, keepdims=True)
    highest = tf.reduce_max(x, axis, keepdims=True)
    # A rounded mean is not quite that of a constant.
    mean = tf.where(tf.equal(lowest, highest), lowest, mean)
    return x - mean, mean
