"""Provides Keras' metrics of decisions at thresholds, which never count a NaN."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfsafe.metrics._safe_metric import SafeMetric, safe

# What Keras puts in the place of predictions that are not among the k largest.
_NOT_IN_TOP_K = -1e10


class _InFloat32(keras.metrics.Metric):
    """Decides as Keras does in float32, although the sums are of float64.

    Mixin between `SafeMetric` and the metric of Keras. A prediction of 0.6 in float32
    is a little above the threshold 0.6 in float64.
    """

    thresholds: Any

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Adds a batch, at thresholds in the precision of the predictions."""
        given, top_k = self.thresholds, getattr(self, "top_k", None)
        if y_pred.dtype != tf.float64:
            self.thresholds = np.float32(given).tolist()
        if top_k is not None:
            # Keras' own filter fails for variables of float64.
            self.top_k, y_pred = None, _filtered(y_pred, top_k)
        try:
            super().update_state(y_true, y_pred, sample_weight)
        finally:
            self.thresholds = given
            if top_k is not None:
                self.top_k = top_k


class _AtValue(_InFloat32):
    """Compares with the value of the constraint in float64, where the sums are."""

    @property
    def value(self) -> Any:
        """Returns the value of the constraint, which Keras would make a float32."""
        return self._value

    @value.setter
    def value(self, value: float) -> None:
        self._value = np.float64(value)


class _Thresholds(SafeMetric):
    weighs_elements = True


def _filtered(y_pred: tf.Tensor, k: int) -> tf.Tensor:
    highest = tf.math.top_k(y_pred, k).indices
    is_in = tf.reduce_any(tf.one_hot(highest, y_pred.shape[-1], True, False), -2)
    return tf.where(is_in, y_pred, tf.constant(_NOT_IN_TOP_K, y_pred.dtype))


@safe
class AUC(_Thresholds, keras.metrics.AUC):
    """Area under the ROC curve, or under that of precision and recall.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.AUC()
      >>> metric.update_state([[0], [1], [1], [0]], [[0.1], [0.8], [0.4], [0.6]])
      >>> print(float(metric.result()))
      0.75
    """


@safe
class Precision(_Thresholds, _InFloat32, keras.metrics.Precision):
    """Fraction of the positive predictions that are right.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.Precision()
      >>> metric.update_state([[0], [1], [1], [0]], [[0.1], [0.8], [0.4], [0.6]])
      >>> print(float(metric.result()))
      0.5
    """


@safe
class Recall(_Thresholds, _InFloat32, keras.metrics.Recall):
    """Fraction of the positive labels that are predicted.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.Recall()
      >>> metric.update_state([[0], [1], [1], [0]], [[0.1], [0.8], [0.4], [0.6]])
      >>> print(float(metric.result()))
      0.5
    """


@safe
class TruePositives(_Thresholds, _InFloat32, keras.metrics.TruePositives):
    """Number of positive labels that are predicted as positive.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.TruePositives()
      >>> metric.update_state([[0], [1], [1], [0]], [[0.1], [0.8], [0.4], [0.6]])
      >>> print(float(metric.result()))
      1.0
    """


@safe
class TrueNegatives(_Thresholds, _InFloat32, keras.metrics.TrueNegatives):
    """Number of negative labels that are predicted as negative.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.TrueNegatives()
      >>> metric.update_state([[0], [1], [1], [0]], [[0.1], [0.8], [0.4], [0.6]])
      >>> print(float(metric.result()))
      1.0
    """


@safe
class FalsePositives(_Thresholds, _InFloat32, keras.metrics.FalsePositives):
    """Number of negative labels that are predicted as positive.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.FalsePositives()
      >>> metric.update_state([[0], [1], [1], [0]], [[0.1], [0.8], [0.4], [0.6]])
      >>> print(float(metric.result()))
      1.0
    """


@safe
class FalseNegatives(_Thresholds, _InFloat32, keras.metrics.FalseNegatives):
    """Number of positive labels that are predicted as negative.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.FalseNegatives()
      >>> metric.update_state([[0], [1], [1], [0]], [[0.1], [0.8], [0.4], [0.6]])
      >>> print(float(metric.result()))
      1.0
    """


@safe
class SensitivityAtSpecificity(
    _Thresholds, _AtValue, keras.metrics.SensitivityAtSpecificity
):
    """Best sensitivity at a specificity that is at least the given one.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.SensitivityAtSpecificity(0.5)
      >>> metric.update_state([[0], [1], [1], [0]], [[0.1], [0.8], [0.4], [0.6]])
      >>> print(float(metric.result()))
      1.0
    """


@safe
class SpecificityAtSensitivity(
    _Thresholds, _AtValue, keras.metrics.SpecificityAtSensitivity
):
    """Best specificity at a sensitivity that is at least the given one.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.SpecificityAtSensitivity(0.5)
      >>> metric.update_state([[0], [1], [1], [0]], [[0.1], [0.8], [0.4], [0.6]])
      >>> print(float(metric.result()))
      1.0
    """


@safe
class PrecisionAtRecall(_Thresholds, _AtValue, keras.metrics.PrecisionAtRecall):
    """Best precision at a recall that is at least the given one.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.PrecisionAtRecall(0.5)
      >>> metric.update_state([[0], [1], [1], [0]], [[0.1], [0.8], [0.4], [0.6]])
      >>> print(float(metric.result()))
      1.0
    """


@safe
class RecallAtPrecision(_Thresholds, _AtValue, keras.metrics.RecallAtPrecision):
    """Best recall at a precision that is at least the given one.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.RecallAtPrecision(0.5)
      >>> metric.update_state([[0], [1], [1], [0]], [[0.1], [0.8], [0.4], [0.6]])
      >>> print(float(metric.result()))
      1.0
    """
