"""Provides Keras' metrics of classes, which never count a NaN as a class."""

from typing import Any

import keras
import tensorflow as tf

from tfsafe import ops
from tfsafe.metrics._safe_metric import SafeMetric, safe


@safe
class Accuracy(SafeMetric, keras.metrics.Accuracy):
    """How often predictions equal labels.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.Accuracy()
      >>> metric.update_state([1, 2], [1, 3])
      >>> print(float(metric.result()))
      0.5
    """


@safe
class BinaryAccuracy(SafeMetric, keras.metrics.BinaryAccuracy):
    """How often predictions, rounded at a threshold, match binary labels.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.BinaryAccuracy()
      >>> metric.update_state([[0], [1], [1], [0]], [[0.1], [0.8], [0.4], [0.6]])
      >>> print(float(metric.result()))
      0.5
    """


@safe
class CategoricalAccuracy(SafeMetric, keras.metrics.CategoricalAccuracy):
    """How often the largest prediction is at the label of one-hot rows.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.CategoricalAccuracy()
      >>> metric.update_state([[1, 0], [0, 1]], [[0.9, 0.1], [0.8, 0.2]])
      >>> print(float(metric.result()))
      0.5
    """


@safe
class SparseCategoricalAccuracy(SafeMetric, keras.metrics.SparseCategoricalAccuracy):
    """How often the largest prediction is at the class index.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.SparseCategoricalAccuracy()
      >>> metric.update_state([0, 1], [[0.9, 0.1], [0.8, 0.2]])
      >>> print(float(metric.result()))
      0.5
    """


@safe
class TopKCategoricalAccuracy(SafeMetric, keras.metrics.TopKCategoricalAccuracy):
    """How often the label of one-hot rows is among the k largest predictions.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.TopKCategoricalAccuracy(k=1)
      >>> metric.update_state([[1, 0], [0, 1]], [[0.9, 0.1], [0.8, 0.2]])
      >>> print(float(metric.result()))
      0.5
    """

    takes_float32 = True


@safe
class SparseTopKCategoricalAccuracy(
    SafeMetric, keras.metrics.SparseTopKCategoricalAccuracy
):
    """How often the class index is among the k largest predictions.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.SparseTopKCategoricalAccuracy(k=1)
      >>> metric.update_state([0, 1], [[0.9, 0.1], [0.8, 0.2]])
      >>> print(float(metric.result()))
      0.5
    """

    takes_float32 = True


class _FScore(keras.metrics.Metric):
    """Weighs the scores in their dtype; Keras fails, because the sums are of float64.

    Mixin between `SafeMetric` and the metric of Keras.
    """

    average: str | None

    def result(self) -> Any:
        """Returns the score of each class, or their mean."""
        if self.average != "weighted":
            return super().result()
        self.average = None
        try:
            scores = super().result()
        finally:
            self.average = "weighted"
        return ops.mean(scores, mask=tf.cast(self.intermediate_weights, scores.dtype))


@safe
class F1Score(SafeMetric, _FScore, keras.metrics.F1Score):
    """Harmonic mean of precision and recall.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.F1Score(average="micro")
      >>> metric.update_state([[1, 0], [0, 1]], [[0.9, 0.1], [0.8, 0.2]])
      >>> print(float(metric.result()))
      0.5
    """


@safe
class FBetaScore(SafeMetric, _FScore, keras.metrics.FBetaScore):
    """Weighted harmonic mean of precision and recall.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.FBetaScore(average="micro", beta=2.0)
      >>> metric.update_state([[1, 0], [0, 1]], [[0.9, 0.1], [0.8, 0.2]])
      >>> print(float(metric.result()))
      0.5
    """


@safe
class IoU(SafeMetric, keras.metrics.IoU):
    """Intersection over union of labels and predictions, for chosen classes.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.IoU(2, [0])
      >>> metric.update_state([0, 0, 1, 1], [0, 1, 0, 1])
      >>> print(float(metric.result()))
      0.333333
    """


@safe
class BinaryIoU(SafeMetric, keras.metrics.BinaryIoU):
    """Intersection over union of binary labels and predictions.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.BinaryIoU([0, 1])
      >>> metric.update_state([[0], [1], [1], [0]], [[0.1], [0.8], [0.4], [0.6]])
      >>> print(float(metric.result()))
      0.333333
    """


@safe
class MeanIoU(SafeMetric, keras.metrics.MeanIoU):
    """Mean over the classes of intersection over union.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.MeanIoU(2)
      >>> metric.update_state([0, 0, 1, 1], [0, 1, 0, 1])
      >>> print(float(metric.result()))
      0.333333
    """


@safe
class OneHotIoU(SafeMetric, keras.metrics.OneHotIoU):
    """Intersection over union of one-hot rows, for chosen classes.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.OneHotIoU(2, [0])
      >>> metric.update_state([[1, 0], [0, 1]], [[0.9, 0.1], [0.8, 0.2]])
      >>> print(float(metric.result()))
      0.5
    """


@safe
class OneHotMeanIoU(SafeMetric, keras.metrics.OneHotMeanIoU):
    """Mean over the classes of intersection over union, for one-hot rows.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.OneHotMeanIoU(2)
      >>> metric.update_state([[1, 0], [0, 1]], [[0.9, 0.1], [0.8, 0.2]])
      >>> print(float(metric.result()))
      0.25
    """
