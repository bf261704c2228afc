"""Losses that stay correct when Keras gives NaN, and the others of `keras.losses`.

`__all__` lists the names that tfsafe adds or makes safe; any other public name is
Keras' own object. The package knows masks, weights and reductions. May import
`keras_formulas`, `ops`, `_compat` and the modules at the root of tfsafe.

Strings, as in `compile(loss="mse")` and `get("mse")`, name these losses in a
`tfsafe.keras_scope()` or after `tfsafe.install()`, and else Keras' own.
"""

from typing import TYPE_CHECKING

from tfsafe import _swap
from tfsafe.keras_formulas.crossentropy import (
    binary_crossentropy,
    categorical_crossentropy,
    sparse_categorical_crossentropy,
)
from tfsafe.keras_formulas.ctc import ctc
from tfsafe.keras_formulas.focal import (
    binary_focal_crossentropy,
    categorical_focal_crossentropy,
    categorical_generalized_cross_entropy,
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
from tfsafe.keras_formulas.similarity import (
    categorical_hinge,
    cosine_similarity,
    dice,
    hinge,
    squared_hinge,
    tversky,
)
from tfsafe.losses._agreement import (
    CategoricalHinge,
    CosineSimilarity,
    Dice,
    Hinge,
    SquaredHinge,
    Tversky,
)
from tfsafe.losses._crossentropy import (
    CTC,
    BinaryCrossentropy,
    BinaryFocalCrossentropy,
    CategoricalCrossentropy,
    CategoricalFocalCrossentropy,
    CategoricalGeneralizedCrossEntropy,
    SparseCategoricalCrossentropy,
)
from tfsafe.losses._likelihood import KLDivergence, Poisson
from tfsafe.losses._regression import (
    Huber,
    LogCosh,
    MeanAbsoluteError,
    MeanAbsolutePercentageError,
    MeanSquaredError,
    MeanSquaredLogarithmicError,
)
from tfsafe.losses._stable_cross_entropy import StableCrossEntropy

if TYPE_CHECKING:
    from tfsafe.losses._keras_names import *  # noqa: F403

__all__ = [
    "CTC",
    "BinaryCrossentropy",
    "BinaryFocalCrossentropy",
    "CategoricalCrossentropy",
    "CategoricalFocalCrossentropy",
    "CategoricalGeneralizedCrossEntropy",
    "CategoricalHinge",
    "CosineSimilarity",
    "Dice",
    "Hinge",
    "Huber",
    "KLDivergence",
    "LogCosh",
    "MeanAbsoluteError",
    "MeanAbsolutePercentageError",
    "MeanSquaredError",
    "MeanSquaredLogarithmicError",
    "Poisson",
    "SparseCategoricalCrossentropy",
    "SquaredHinge",
    "StableCrossEntropy",
    "Tversky",
    "binary_crossentropy",
    "binary_focal_crossentropy",
    "categorical_crossentropy",
    "categorical_focal_crossentropy",
    "categorical_generalized_cross_entropy",
    "categorical_hinge",
    "cosine_similarity",
    "ctc",
    "dice",
    "hinge",
    "huber",
    "kl_divergence",
    "log_cosh",
    "mean_absolute_error",
    "mean_absolute_percentage_error",
    "mean_squared_error",
    "mean_squared_logarithmic_error",
    "poisson",
    "sparse_categorical_crossentropy",
    "squared_hinge",
    "tversky",
]

# Hidden from type checkers, which are to report a misspelled name.
if not TYPE_CHECKING:
    __getattr__, __dir__ = _swap.fall_back_to_keras(__name__, __all__)
