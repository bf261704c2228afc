"""Provides Keras' functions of accuracy; NaN is neither a right nor a wrong class."""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from tfsafe._gradients import nan_where
from tfsafe.keras_formulas.arguments import same_rank
from tfsafe.metrics._safe_metric import is_nan, without_nan


def binary_accuracy(y_true: Any, y_pred: Any, threshold: float = 0.5) -> tf.Tensor:
    """Returns 1 where a prediction, rounded at a threshold, is the label, else 0.

    Args:
      y_true: Labels 0 and 1.
      y_pred: Probabilities.
      threshold: What a probability has to exceed to count as 1.

    Returns:
      Tensor of Keras' `floatx`, NaN where the label or the prediction is NaN.

    Examples:
      >>> from tfsafe import metrics
      >>> print(metrics.binary_accuracy([[1.0, 0.0]], [[0.7, float("nan")]]).numpy())
      [[ 1. nan]]
    """
    y_true, y_pred = same_rank(
        tf.convert_to_tensor(y_true), tf.convert_to_tensor(y_pred)
    )
    matches = keras.metrics.binary_accuracy(y_true, y_pred, threshold)
    for x in (y_true, y_pred):
        if x.dtype.is_floating:
            matches += nan_where(is_nan(x), matches.dtype)
    return matches


def categorical_accuracy(y_true: Any, y_pred: Any) -> tf.Tensor:
    """Returns 1 where the largest prediction is at the largest label, else 0.

    Args:
      y_true: One-hot labels, the classes along the last axis.
      y_pred: Predictions of the same shape.

    Returns:
      Tensor of Keras' `floatx` without the last axis, NaN for a row with a NaN.

    Examples:
      >>> from tfsafe import metrics
      >>> print(metrics.categorical_accuracy([[0, 1]], [[float("nan"), 1.0]]).numpy())
      [nan]
    """
    return _checked(keras.metrics.categorical_accuracy, y_true, y_pred)


def sparse_categorical_accuracy(y_true: Any, y_pred: Any) -> tf.Tensor:
    """Returns 1 where the largest prediction is at the class index, else 0.

    Args:
      y_true: Class indices.
      y_pred: Predictions, the classes along the last axis.

    Returns:
      Tensor of Keras' `floatx`, NaN for a row with a NaN.

    Examples:
      >>> from tfsafe import metrics
      >>> print(metrics.sparse_categorical_accuracy([1], [[float("nan"), 1.0]]).numpy())
      [nan]
    """
    return _checked(keras.metrics.sparse_categorical_accuracy, y_true, y_pred)


def top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> tf.Tensor:
    """Returns 1 where the label is among the `k` largest predictions, else 0.

    Args:
      y_true: One-hot labels, the classes along the last axis.
      y_pred: Predictions of the same shape.
      k: Number of predictions.

    Returns:
      Tensor of Keras' `floatx` without the last axis, NaN for a row with a NaN.

    Examples:
      >>> from tfsafe import metrics
      >>> found = metrics.top_k_categorical_accuracy([[0, 1]], [[0.9, 0.1]], k=1)
      >>> print(found.numpy())
      [0.]
    """
    return _checked(keras.metrics.top_k_categorical_accuracy, y_true, y_pred, k)


def sparse_top_k_categorical_accuracy(
    y_true: Any, y_pred: Any, k: int = 5
) -> tf.Tensor:
    """Returns 1 where the class index is among the `k` largest predictions, else 0.

    Args:
      y_true: Class indices.
      y_pred: Predictions, the classes along the last axis.
      k: Number of predictions.

    Returns:
      Tensor of Keras' `floatx`, NaN for a row with a NaN.

    Examples:
      >>> from tfsafe import metrics
      >>> found = metrics.sparse_top_k_categorical_accuracy([0], [[0.9, 0.1]], k=1)
      >>> print(found.numpy())
      [1.]
    """
    return _checked(keras.metrics.sparse_top_k_categorical_accuracy, y_true, y_pred, k)


def _checked(
    function: Callable[..., Any], y_true: Any, y_pred: Any, *options: Any
) -> tf.Tensor:
    """Computes Keras' function, and NaN for a position of a NaN."""
    y_true, y_pred = tf.convert_to_tensor(y_true), tf.convert_to_tensor(y_pred)
    matches = function(without_nan(y_true), without_nan(y_pred), *options)
    for x in (y_true, y_pred):
        if x.dtype.is_floating:
            width = tf.size(x) // tf.maximum(tf.size(matches), 1)
            rows = tf.reshape(is_nan(x), [tf.size(matches), width])
            broken = tf.math.count_nonzero(rows, 1) > 0
            broken = tf.reshape(broken, tf.shape(matches))
            matches += nan_where(broken, matches.dtype)
    return matches
