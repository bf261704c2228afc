"""Metrics that stay correct when Keras gives NaN, and the others of `keras.metrics`.

`__all__` lists the names that tfsafe makes safe; any other public name is Keras' own
object. The package knows how to accumulate over batches. May import `keras_formulas`,
`_compat` and the modules at the root of tfsafe.

Example: a `SafeMetric` reads the mask of `y_pred` with `_compat.keras_mask`.

Strings, as in `compile(metrics=["mse"])` and `get("mse")`, name these metrics in a
`tfsafe.keras_scope()` or after `tfsafe.install()`, and else Keras' own.
"""

from typing import TYPE_CHECKING

from tfsafe import _swap
from tfsafe.keras_formulas.correlation import (
    concordance_correlation,
    pearson_correlation,
)
from tfsafe.keras_formulas.crossentropy import (
    binary_crossentropy,
    categorical_crossentropy,
    sparse_categorical_crossentropy,
)
from tfsafe.keras_formulas.focal import (
    binary_focal_crossentropy,
    categorical_focal_crossentropy,
)
from tfsafe.keras_formulas.likelihood import kl_divergence, poisson
from tfsafe.keras_formulas.regression import (
    huber,
    log_cosh,
    mean_absolute_error,
    mean_absolute_percentage_error,
    mean_squared_error,
    mean_squared_logarithmic_error,
)
from tfsafe.keras_formulas.similarity import categorical_hinge, hinge, squared_hinge
from tfsafe.metrics._accuracy import (
    binary_accuracy,
    categorical_accuracy,
    sparse_categorical_accuracy,
    sparse_top_k_categorical_accuracy,
    top_k_categorical_accuracy,
)
from tfsafe.metrics._classification import (
    Accuracy,
    BinaryAccuracy,
    BinaryIoU,
    CategoricalAccuracy,
    F1Score,
    FBetaScore,
    IoU,
    MeanIoU,
    OneHotIoU,
    OneHotMeanIoU,
    SparseCategoricalAccuracy,
    SparseTopKCategoricalAccuracy,
    TopKCategoricalAccuracy,
)
from tfsafe.metrics._correlation import (
    ConcordanceCorrelation,
    PearsonCorrelation,
    R2Score,
)
from tfsafe.metrics._means import Mean, MeanMetricWrapper, Sum
from tfsafe.metrics._regression import (
    BinaryCrossentropy,
    CategoricalCrossentropy,
    CategoricalHinge,
    CosineSimilarity,
    Hinge,
    KLDivergence,
    LogCoshError,
    MeanAbsoluteError,
    MeanAbsolutePercentageError,
    MeanSquaredError,
    MeanSquaredLogarithmicError,
    Poisson,
    RootMeanSquaredError,
    SparseCategoricalCrossentropy,
    SquaredHinge,
)
from tfsafe.metrics._thresholds import (
    AUC,
    FalseNegatives,
    FalsePositives,
    Precision,
    PrecisionAtRecall,
    Recall,
    RecallAtPrecision,
    SensitivityAtSpecificity,
    SpecificityAtSensitivity,
    TrueNegatives,
    TruePositives,
)

if TYPE_CHECKING:
    from tfsafe.metrics._keras_names import *  # noqa: F403

__all__ = [
    "AUC",
    "Accuracy",
    "BinaryAccuracy",
    "BinaryCrossentropy",
    "BinaryIoU",
    "CategoricalAccuracy",
    "CategoricalCrossentropy",
    "CategoricalHinge",
    "ConcordanceCorrelation",
    "CosineSimilarity",
    "F1Score",
    "FBetaScore",
    "FalseNegatives",
    "FalsePositives",
    "Hinge",
    "IoU",
    "KLDivergence",
    "LogCoshError",
    "Mean",
    "MeanAbsoluteError",
    "MeanAbsolutePercentageError",
    "MeanIoU",
    "MeanMetricWrapper",
    "MeanSquaredError",
    "MeanSquaredLogarithmicError",
    "OneHotIoU",
    "OneHotMeanIoU",
    "PearsonCorrelation",
    "Poisson",
    "Precision",
    "PrecisionAtRecall",
    "R2Score",
    "Recall",
    "RecallAtPrecision",
    "RootMeanSquaredError",
    "SensitivityAtSpecificity",
    "SparseCategoricalAccuracy",
    "SparseCategoricalCrossentropy",
    "SparseTopKCategoricalAccuracy",
    "SpecificityAtSensitivity",
    "SquaredHinge",
    "Sum",
    "TopKCategoricalAccuracy",
    "TrueNegatives",
    "TruePositives",
    "binary_accuracy",
    "binary_crossentropy",
    "binary_focal_crossentropy",
    "categorical_accuracy",
    "categorical_crossentropy",
    "categorical_focal_crossentropy",
    "categorical_hinge",
    "concordance_correlation",
    "hinge",
    "huber",
    "kl_divergence",
    "log_cosh",
    "mean_absolute_error",
    "mean_absolute_percentage_error",
    "mean_squared_error",
    "mean_squared_logarithmic_error",
    "pearson_correlation",
    "poisson",
    "sparse_categorical_accuracy",
    "sparse_categorical_crossentropy",
    "sparse_top_k_categorical_accuracy",
    "squared_hinge",
    "top_k_categorical_accuracy",
]

# Hidden from type checkers, which are to report a misspelled name.
if not TYPE_CHECKING:
    __getattr__, __dir__ = _swap.fall_back_to_keras(__name__, __all__)
