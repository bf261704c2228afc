"""Provides Keras' metrics of decisions at thresholds, which never count a NaN."""

import keras

from tfsafe.metrics._safe_metric import SafeMetric, safe


@safe
class AUC(SafeMetric, keras.metrics.AUC):
    """Area under the ROC curve, or under that of precision and recall.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.AUC()
      >>> metric.update_state([[0], [1], [1], [0]], [[0.1], [0.8], [0.4], [0.6]])
      >>> print(float(metric.result()))
      0.75
    """

    weighs_elements = True


@safe
class Precision(SafeMetric, keras.metrics.Precision):
    """Fraction of the positive predictions that are right.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.Precision()
      >>> metric.update_state([[0], [1], [1], [0]], [[0.1], [0.8], [0.4], [0.6]])
      >>> print(float(metric.result()))
      0.5
    """

    weighs_elements = True


@safe
class Recall(SafeMetric, keras.metrics.Recall):
    """Fraction of the positive labels that are predicted.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.Recall()
      >>> metric.update_state([[0], [1], [1], [0]], [[0.1], [0.8], [0.4], [0.6]])
      >>> print(float(metric.result()))
      0.5
    """

    weighs_elements = True


@safe
class TruePositives(SafeMetric, keras.metrics.TruePositives):
    """Number of positive labels that are predicted as positive.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.TruePositives()
      >>> metric.update_state([[0], [1], [1], [0]], [[0.1], [0.8], [0.4], [0.6]])
      >>> print(float(metric.result()))
      1.0
    """

    weighs_elements = True


@safe
class TrueNegatives(SafeMetric, keras.metrics.TrueNegatives):
    """Number of negative labels that are predicted as negative.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.TrueNegatives()
      >>> metric.update_state([[0], [1], [1], [0]], [[0.1], [0.8], [0.4], [0.6]])
      >>> print(float(metric.result()))
      1.0
    """

    weighs_elements = True


@safe
class FalsePositives(SafeMetric, keras.metrics.FalsePositives):
    """Number of negative labels that are predicted as positive.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.FalsePositives()
      >>> metric.update_state([[0], [1], [1], [0]], [[0.1], [0.8], [0.4], [0.6]])
      >>> print(float(metric.result()))
      1.0
    """

    weighs_elements = True


@safe
class FalseNegatives(SafeMetric, keras.metrics.FalseNegatives):
    """Number of positive labels that are predicted as negative.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.FalseNegatives()
      >>> metric.update_state([[0], [1], [1], [0]], [[0.1], [0.8], [0.4], [0.6]])
      >>> print(float(metric.result()))
      1.0
    """

    weighs_elements = True


@safe
class SensitivityAtSpecificity(SafeMetric, keras.metrics.SensitivityAtSpecificity):
    """Best sensitivity at a specificity that is at least the given one.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.SensitivityAtSpecificity(0.5)
      >>> metric.update_state([[0], [1], [1], [0]], [[0.1], [0.8], [0.4], [0.6]])
      >>> print(float(metric.result()))
      1.0
    """

    weighs_elements = True


@safe
class SpecificityAtSensitivity(SafeMetric, keras.metrics.SpecificityAtSensitivity):
    """Best specificity at a sensitivity that is at least the given one.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.SpecificityAtSensitivity(0.5)
      >>> metric.update_state([[0], [1], [1], [0]], [[0.1], [0.8], [0.4], [0.6]])
      >>> print(float(metric.result()))
      1.0
    """

    weighs_elements = True


@safe
class PrecisionAtRecall(SafeMetric, keras.metrics.PrecisionAtRecall):
    """Best precision at a recall that is at least the given one.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.PrecisionAtRecall(0.5)
      >>> metric.update_state([[0], [1], [1], [0]], [[0.1], [0.8], [0.4], [0.6]])
      >>> print(float(metric.result()))
      1.0
    """

    weighs_elements = True


@safe
class RecallAtPrecision(SafeMetric, keras.metrics.RecallAtPrecision):
    """Best recall at a precision that is at least the given one.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.RecallAtPrecision(0.5)
      >>> metric.update_state([[0], [1], [1], [0]], [[0.1], [0.8], [0.4], [0.6]])
      >>> print(float(metric.result()))
      1.0
    """

    weighs_elements = True
