"""Provides Keras' correlations, defined for constants."""

from typing import Any

import keras

from tfsafe.keras_formulas.correlation import (
    concordance_correlation,
    pearson_correlation,
)
from tfsafe.metrics._safe_metric import SafeMetric, safe


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
