"""Provides Keras' correlations and the R2 score, defined for constants."""

import warnings
from typing import Any

import keras
import tensorflow as tf

from tfsafe.keras_formulas.arguments import same_rank
from tfsafe.keras_formulas.correlation import (
    concordance_correlation,
    pearson_correlation,
)
from tfsafe.metrics._safe_metric import SafeMetric, result_dtype, safe
from tfsafe.ops.kernels.statistics import moments


class _Plain(keras.metrics.MeanMetricWrapper):
    """The metric of one axis that Keras 3.3 lacks."""

    def __init__(self, name: str, dtype: Any = None, axis: int = -1):
        super().__init__(fn=None, name=name, dtype=dtype, axis=axis)
        self.axis = axis

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments for `from_config`."""
        return {"name": self.name, "dtype": self.dtype, "axis": self.axis}


_Pearson: Any = getattr(keras.metrics, "PearsonCorrelation", _Plain)
_Concordance: Any = getattr(keras.metrics, "ConcordanceCorrelation", _Plain)


@safe
class PearsonCorrelation(SafeMetric, _Pearson):
    """Mean of Pearson's correlation coefficients of the samples.

    `keras.metrics.PearsonCorrelation`, in which a constant sample counts 0. In Keras
    one of them makes the result NaN.

    Args:
      name: Name of the metric.
      dtype: Dtype of the result. Sums are kept in float64.
      axis: Axis or axes along which labels and predictions are correlated.

    Numerics:
      constant       the sample counts 0 (a choice: the correlation is undefined)
      NaN            result NaN
      weight 0       ignored, NaN or not
      before update  result 0

    Examples:
      >>> from tfsafe import metrics
      >>> pearson = metrics.PearsonCorrelation()
      >>> y_true = [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]
      >>> pearson.update_state(y_true, [[2.0, 2.0, 2.0], [2.0, 4.0, 6.0]])
      >>> print(float(pearson.result()))
      0.5
    """

    formula = staticmethod(pearson_correlation)

    def __init__(
        self, name: str = "pearson_correlation", dtype: Any = None, axis: int = -1
    ):
        super().__init__(name=name, dtype=dtype, axis=axis)


@safe
class ConcordanceCorrelation(SafeMetric, _Concordance):
    """Mean of Lin's concordance correlation coefficients of the samples.

    `keras.metrics.ConcordanceCorrelation` for data of any scale: Keras adds 1e-7 to
    variances.

    Args:
      name: Name of the metric.
      dtype: Dtype of the result. Sums are kept in float64.
      axis: Axis or axes along which labels and predictions are correlated.

    Numerics:
      both constant  the sample counts 0 (a choice: the correlation is undefined)
      NaN            result NaN
      weight 0       ignored, NaN or not
      before update  result 0

    Examples:
      >>> from tfsafe import metrics
      >>> concordance = metrics.ConcordanceCorrelation()
      >>> concordance.update_state([[0.0, 1e-5]], [[0.0, 2e-5]])
      >>> print(float(concordance.result()))
      0.6666667
    """

    formula = staticmethod(concordance_correlation)

    def __init__(
        self, name: str = "concordance_correlation", dtype: Any = None, axis: int = -1
    ):
        super().__init__(name=name, dtype=dtype, axis=axis)


class _Moments(keras.metrics.R2Score):
    """Keras' score, with sums that do not cancel.

    `sum(y^2) - sum(y)^2 / n` has no digits left if the mean is much larger than the
    spread. Each replica keeps count, mean and summed squared distances in a row of its
    own, and 0 in the others: `tf.distribute` adds up the variables of the replicas.
    """

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Adds a batch."""
        y_true, y_pred = same_rank(
            tf.cast(y_true, tf.float64), tf.cast(y_pred, tf.float64)
        )
        if not self._built:
            self._make_sums(y_true.shape, y_pred.shape)
        weight = tf.ones_like(y_true)
        if sample_weight is not None:
            weight = tf.cast(sample_weight, tf.float64)
            if weight.shape.rank == 1:
                weight = weight[:, tf.newaxis]
            weight = tf.broadcast_to(weight, tf.shape(y_true))
        self.total_mse.assign_add(moments.squared_error(y_true, y_pred, weight))
        self.num_samples.assign_add(tf.cast(tf.size(y_true), tf.float64))
        row = tf.one_hot(_replica(), self.counts.shape[0], dtype=tf.float64)
        own = row[:, tf.newaxis]
        state = (self.counts, self.means, self.spreads)
        old = [tf.tensordot(row, x.value, 1)[tf.newaxis] for x in state]
        batch = moments.weighted_moments(y_true, weight)
        pairs = [tf.concat([a, b], 0) for a, b in zip(old, batch, strict=True)]
        count, spread = moments.merged_moments(*pairs)
        # From the old mean, which stays exact if all labels are the same.
        step = tf.math.divide_no_nan(batch[0], count) * (batch[1] - old[1])
        mean = tf.where(tf.equal(old[0], 0), batch[1], old[1] + step)
        for variable, value in zip(state, (count, mean, spread), strict=True):
            variable.assign(tf.where(own > 0, value, variable.value))

    def _make_sums(self, y_true: tf.TensorShape, y_pred: tf.TensorShape) -> None:
        if y_true.rank != 2 or y_pred.rank != 2 or None in {y_true[-1], y_pred[-1]}:
            raise ValueError(
                "R2Score expects 2D inputs with shape (batch_size, output_dim), with "
                "output_dim fully defined (not None). Received input shapes: "
                f"y_pred.shape={y_pred} and y_true.shape={y_true}."
            )
        replicas = tf.distribute.get_strategy().num_replicas_in_sync
        outputs = y_pred[-1]
        self.total_mse = self.add_variable([outputs], "zeros", name="residual")
        shape = [replicas, outputs]
        self.counts = self.add_variable(shape, "zeros", name="counts")
        self.means = self.add_variable(shape, "zeros", name="means")
        self.spreads = self.add_variable(shape, "zeros", name="spreads")
        self._built = True


def _replica() -> Any:
    context = tf.distribute.get_replica_context()
    return 0 if context is None else context.replica_id_in_sync_group


@safe
class R2Score(SafeMetric, _Moments):
    """Coefficient of determination, `1 - sum((y - p)^2) / sum((y - mean(y))^2)`.

    `keras.metrics.R2Score`, whose difference of large sums in float32 is off by a third
    for labels around 10,000 with spread 1, and whose score of constants is NaN.

    Args:
      class_aggregation: `"uniform_average"`, `"variance_weighted_average"` or None.
      num_regressors: Number of independent regressors of the adjusted score; 0 for the
        plain one.
      name: Name of the metric.
      dtype: Dtype of the result. All is computed in float64.

    Warns:
      UserWarning: If there are too few samples for the adjusted score; the plain one
        is returned then.

    Numerics:
      mean >> spread   keeps the digits of the labels: sums distances from the mean
      constant labels  1 if all predictions are right, else 0, as in scikit-learn
      NaN              result NaN
      weight 0         ignored, whatever the label and the prediction are
      before update    result 0

    Examples:
      >>> from tfsafe import metrics
      >>> score = metrics.R2Score()
      >>> score.update_state([[10000.0], [10001.0]], [[10000.0], [10000.5]])
      >>> print(float(score.result()))
      0.5
    """

    def __init__(
        self,
        class_aggregation: str | None = "uniform_average",
        num_regressors: int = 0,
        name: str = "r2_score",
        dtype: Any = None,
    ):
        super().__init__(class_aggregation, num_regressors, name, "float64")
        # Keras computes in the dtype of the metric.
        self.result_dtype = result_dtype(dtype)

    def result(self) -> tf.Tensor:
        """Returns the score: NaN if a value of weight above 0 was NaN, 0 at first."""
        if len(self.variables) == 1:
            # The sums are made with the first update.
            return tf.zeros([], self.result_dtype)
        count, spread = moments.merged_moments(self.counts, self.means, self.spreads)
        score = moments.determination(self.total_mse.value, count, spread)
        if self.class_aggregation == "uniform_average":
            score = moments.average(score, tf.ones_like(score))
        elif self.class_aggregation is not None:
            score = moments.average(score, spread)
        if self.num_regressors:
            score = self._adjusted(score)
        return self.nan_if_broken(tf.cast(score, self.result_dtype))

    def _adjusted(self, score: tf.Tensor) -> tf.Tensor:
        most = self.num_samples.value - 1
        freedom = most - self.num_regressors
        enough = freedom > 0
        if tf.executing_eagerly() and not enough:
            warnings.warn(
                "`R2Score` needs more samples than regressors for its adjusted score. "
                f"Received: num_regressors={self.num_regressors} and "
                f"{int(most) + 1} samples. The plain score is returned.",
                stacklevel=3,
            )
        adjusted = 1 - (1 - score) * most / tf.where(enough, freedom, 1.0)
        return tf.where(enough, adjusted, score)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments for `from_config`."""
        return {**super().get_config(), "dtype": self.result_dtype}
