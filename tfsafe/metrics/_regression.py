"""Keras' metrics of regression and probabilities, by the formulas of the losses."""

import warnings
from typing import Any

import keras
import tensorflow as tf

from tfsafe.keras_formulas import similarity
from tfsafe.keras_formulas.crossentropy import (
    binary_crossentropy,
    categorical_crossentropy,
    sparse_categorical_crossentropy,
)
from tfsafe.keras_formulas.likelihood import kl_divergence, poisson
from tfsafe.keras_formulas.regression import (
    log_cosh,
    mean_absolute_error,
    mean_absolute_percentage_error,
    mean_squared_error,
    mean_squared_logarithmic_error,
)
from tfsafe.keras_formulas.similarity import categorical_hinge, hinge, squared_hinge
from tfsafe.metrics._judging import Judging, judged, safe

MeanSquaredError = judged("MeanSquaredError", mean_squared_error)
MeanAbsoluteError = judged("MeanAbsoluteError", mean_absolute_error)
MeanAbsolutePercentageError = judged(
    "MeanAbsolutePercentageError",
    mean_absolute_percentage_error,
    "      target 0       an error counts 100\n    ",
)
MeanSquaredLogarithmicError = judged(
    "MeanSquaredLogarithmicError",
    mean_squared_logarithmic_error,
    "      <= -1          the logarithm goes on with slope 1\n    ",
)
RootMeanSquaredError = judged("RootMeanSquaredError")
LogCoshError = judged("LogCoshError", log_cosh)
Hinge = judged("Hinge", hinge)
SquaredHinge = judged("SquaredHinge", squared_hinge)
CategoricalHinge = judged("CategoricalHinge", categorical_hinge)
KLDivergence = judged("KLDivergence", kl_divergence)
Poisson = judged("Poisson", poisson)
_LOGITS = """      probability 0  finite; its logits count where the loss finds them
    """
BinaryCrossentropy = judged("BinaryCrossentropy", binary_crossentropy, _LOGITS)
CategoricalCrossentropy = judged(
    "CategoricalCrossentropy", categorical_crossentropy, _LOGITS
)
SparseCategoricalCrossentropy = judged(
    "SparseCategoricalCrossentropy", sparse_categorical_crossentropy, _LOGITS
)


def _cosine(y_true: Any, y_pred: Any, axis: Any = -1) -> tf.Tensor:
    return -similarity.cosine_similarity(y_true, y_pred, axis)


CosineSimilarity = judged("CosineSimilarity", _cosine)


@safe
class R2Score(Judging, keras.metrics.R2Score):
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
      mean >> spread   within 1e-3 up to a mean of 1e6 spreads
      constant labels  1 if all predictions are right, else 0, as in scikit-learn
      NaN              result NaN
      weight 0         left out, whatever stands there
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
        dtype = getattr(dtype, "compute_dtype", dtype) or keras.config.floatx()
        self.result_dtype = tf.as_dtype(dtype).name

    def result(self) -> tf.Tensor:
        """Returns the score: NaN if one that counts was NaN, 0 before any update."""
        if len(self.variables) == 1:
            # Keras makes the sums with the first update.
            return tf.zeros([], self.result_dtype)
        count, spread = self.count.value, self._spread()
        error = self.total_mse.value
        is_flat = tf.equal(spread, 0)
        flat = tf.cast(tf.equal(error, 0) & (count > 0), tf.float64)
        scores = 1 - error / tf.where(is_flat, tf.ones_like(spread), spread)
        score = self._joined(tf.where(is_flat, flat, scores), spread)
        if self.num_regressors:
            score = self._adjusted(score)
        return self.nan_if_broken(tf.cast(score, self.result_dtype))

    def _spread(self) -> tf.Tensor:
        """Returns the sum of squared distances from the mean, 0 for constant labels."""
        squares, total = self.squared_sum.value, self.sum.value
        spread = squares - tf.math.divide_no_nan(total * total, self.count.value)
        # What rounding leaves of a difference of equal sums.
        return tf.where(spread <= 1e-13 * squares, tf.zeros_like(spread), spread)

    def _joined(self, scores: tf.Tensor, spread: tf.Tensor) -> tf.Tensor:
        if self.class_aggregation is None:
            return scores
        mean, total = tf.reduce_mean(scores), tf.reduce_sum(spread)
        if self.class_aggregation == "uniform_average":
            return mean
        weighted = tf.math.divide_no_nan(tf.reduce_sum(spread * scores), total)
        return tf.where(tf.equal(total, 0), mean, weighted)

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
        """Returns what `from_config` needs."""
        return {**super().get_config(), "dtype": self.result_dtype}
