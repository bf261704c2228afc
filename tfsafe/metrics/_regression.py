"""Provides Keras' metrics of regression and probabilities, by the losses' formulas."""

from typing import Any

import keras
import tensorflow as tf

from tfsafe.keras_formulas import crossentropy, likelihood, regression, similarity
from tfsafe.keras_formulas.arguments import same_rank
from tfsafe.metrics._safe_metric import SafeMetric, result_dtype, safe


def _cosine(y_true: Any, y_pred: Any, axis: Any = -1) -> tf.Tensor:
    return -similarity.cosine_similarity(y_true, y_pred, axis)


def _squares(y_true: Any, y_pred: Any) -> tf.Tensor:
    y_true, y_pred = same_rank(tf.cast(y_true, tf.float64), tf.cast(y_pred, tf.float64))
    return tf.math.squared_difference(y_pred, y_true)


@safe
class MeanSquaredError(SafeMetric, keras.metrics.MeanSquaredError):
    """Mean of the squared errors.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.MeanSquaredError()
      >>> metric.update_state([[1.0], [2.0]], [[1.0], [4.0]])
      >>> print(float(metric.result()))
      2.0
    """

    formula = staticmethod(regression.mean_squared_error)


@safe
class MeanAbsoluteError(SafeMetric, keras.metrics.MeanAbsoluteError):
    """Mean of the magnitudes of the errors.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.MeanAbsoluteError()
      >>> metric.update_state([[1.0], [2.0]], [[1.0], [4.0]])
      >>> print(float(metric.result()))
      1.0
    """

    formula = staticmethod(regression.mean_absolute_error)


@safe
class MeanAbsolutePercentageError(
    SafeMetric, keras.metrics.MeanAbsolutePercentageError
):
    """Mean of the relative errors, in percent.

    Numerics:
      target 0       an error counts 100

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.MeanAbsolutePercentageError()
      >>> metric.update_state([[0.0], [2.0]], [[1.0], [1.0]])
      >>> print(float(metric.result()))
      75.0
    """

    formula = staticmethod(regression.mean_absolute_percentage_error)


@safe
class MeanSquaredLogarithmicError(
    SafeMetric, keras.metrics.MeanSquaredLogarithmicError
):
    """Mean of `(log(1 + y_pred) - log(1 + y_true))^2`.

    Numerics:
      y_pred <= -1   the logarithm continues with slope 1; labels there count as 0

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.MeanSquaredLogarithmicError()
      >>> metric.update_state([[1.0], [2.0]], [[1.0], [4.0]])
      >>> print(float(metric.result()))
      0.130471
    """

    formula = staticmethod(regression.mean_squared_logarithmic_error)


@safe
class RootMeanSquaredError(SafeMetric, keras.metrics.RootMeanSquaredError):
    """Root of the mean of the squared errors.

    Args:
      name: Name of the metric.
      dtype: Dtype of the result. All is computed in float64.

    Numerics:
      errors > 1e19  finite: the squares of float32 errors are kept in float64

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.RootMeanSquaredError()
      >>> metric.update_state([[1.0], [2.0]], [[1.0], [4.0]])
      >>> print(float(metric.result()))
      1.4142135
    """

    formula = staticmethod(_squares)

    def __init__(self, name: str = "root_mean_squared_error", dtype: Any = None):
        super().__init__(name, "float64")
        # Keras computes in the dtype of the metric.
        self.result_dtype = result_dtype(dtype)

    def in_own_dtype(self, value: Any) -> tf.Tensor:
        """Casts a result to the dtype that was asked for."""
        return tf.cast(value, self.result_dtype)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments for `from_config`."""
        return {**super().get_config(), "dtype": self.result_dtype}


@safe
class LogCoshError(SafeMetric, keras.metrics.LogCoshError):
    """Mean of `log(cosh(y_pred - y_true))`.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.LogCoshError()
      >>> metric.update_state([[0.0]], [[1e-4]])
      >>> print(float(metric.result()))
      5e-09
    """

    formula = staticmethod(regression.log_cosh)


@safe
class CosineSimilarity(SafeMetric, keras.metrics.CosineSimilarity):
    """Mean cosine of the angle between labels and predictions.

    Numerics:
      zero vector    counts 0

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.CosineSimilarity()
      >>> metric.update_state([[1.0, 0.0]], [[1e20, 0.0]])
      >>> print(float(metric.result()))
      1.0
    """

    formula = staticmethod(_cosine)


@safe
class Hinge(SafeMetric, keras.metrics.Hinge):
    """Mean of `max(1 - y_true * y_pred, 0)`.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.Hinge()
      >>> metric.update_state([[-1.0, 1.0]], [[0.5, 3.0]])
      >>> print(float(metric.result()))
      0.75
    """

    formula = staticmethod(similarity.hinge)


@safe
class SquaredHinge(SafeMetric, keras.metrics.SquaredHinge):
    """Mean of `max(1 - y_true * y_pred, 0)^2`.

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.SquaredHinge()
      >>> metric.update_state([[-1.0, 1.0]], [[0.5, 3.0]])
      >>> print(float(metric.result()))
      1.125
    """

    formula = staticmethod(similarity.squared_hinge)


@safe
class CategoricalHinge(SafeMetric, keras.metrics.CategoricalHinge):
    """How far the best wrong class comes within 1 of the true class.

    Numerics:
      prediction -inf  a class that counts nothing, unless it is the label

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.CategoricalHinge()
      >>> metric.update_state([[0, 1, 0]], [[-1.0, 0.0, 1.0]])
      >>> print(float(metric.result()))
      2.0
    """

    formula = staticmethod(similarity.categorical_hinge)


@safe
class KLDivergence(SafeMetric, keras.metrics.KLDivergence):
    """Kullback-Leibler divergence, `sum(y_true * log(y_true / y_pred))`.

    Numerics:
      probability 0  finite; the logits are used if the loss finds them

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.KLDivergence()
      >>> metric.update_state([[0.5, 0.5]], [[1.0, 1e-30]])
      >>> print(float(metric.result()))
      33.84563
    """

    formula = staticmethod(likelihood.kl_divergence)


@safe
class Poisson(SafeMetric, keras.metrics.Poisson):
    """Negative log-likelihood of counts, `y_pred - y_true * log(y_pred)`.

    Numerics:
      rate <= 0      finite

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.Poisson()
      >>> metric.update_state([[2.0, 0.0]], [[1.0, 3.0]])
      >>> print(float(metric.result()))
      2.0
    """

    formula = staticmethod(likelihood.poisson)


@safe
class BinaryCrossentropy(SafeMetric, keras.metrics.BinaryCrossentropy):
    """Cross-entropy of binary targets.

    Numerics:
      probability 0  finite; the logits are used if the loss finds them

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.BinaryCrossentropy()
      >>> metric.update_state([[1.0]], [[0.5]])
      >>> print(float(metric.result()))
      0.693147
    """

    formula = staticmethod(crossentropy.binary_crossentropy)


@safe
class CategoricalCrossentropy(SafeMetric, keras.metrics.CategoricalCrossentropy):
    """Cross-entropy of rows of labels.

    Numerics:
      probability 0  finite; the logits are used if the loss finds them

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.CategoricalCrossentropy()
      >>> metric.update_state([[1.0, 0.0]], [[0.5, 0.5]])
      >>> print(float(metric.result()))
      0.693147
    """

    formula = staticmethod(crossentropy.categorical_crossentropy)


@safe
class SparseCategoricalCrossentropy(
    SafeMetric, keras.metrics.SparseCategoricalCrossentropy
):
    """Cross-entropy of class indices.

    Numerics:
      probability 0  finite; the logits are used if the loss finds them

    Examples:
      >>> from tfsafe import metrics
      >>> metric = metrics.SparseCategoricalCrossentropy()
      >>> metric.update_state([0], [[0.5, 0.5]])
      >>> print(float(metric.result()))
      0.693147
    """

    formula = staticmethod(crossentropy.sparse_categorical_crossentropy)
