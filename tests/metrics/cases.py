"""Every metric of labels and predictions, with data that it is made for."""

import dataclasses
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfsafe import metrics

NAN = float("nan")
RNG = np.random.default_rng(0)
SIZE = 8

REAL = RNG.normal(size=(SIZE, 3)).astype("float32")
POSITIVE = RNG.uniform(0.5, 2.0, size=(SIZE, 3)).astype("float32")
OTHERS = RNG.uniform(0.5, 2.0, size=(SIZE, 3)).astype("float32")
SCORES = RNG.uniform(size=(SIZE, 3)).astype("float32")
SHARES = SCORES / SCORES.sum(-1, keepdims=True)
INDICES = RNG.integers(3, size=SIZE)
ROWS = np.eye(3, dtype="float32")[INDICES]
TARGETS = (RNG.uniform(size=(SIZE, 1)) < 0.5).astype("float32")
PROBS = RNG.uniform(size=(SIZE, 1)).astype("float32")
CLASSES = RNG.integers(3, size=(SIZE, 2)).astype("float32")


@dataclasses.dataclass(frozen=True)
class Case:
    """A metric of Keras and of tfsafe, and a batch for it."""

    name: str
    y_true: np.ndarray
    y_pred: np.ndarray
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    in_old_keras: bool = True

    def __str__(self) -> str:
        return self.name

    def ours(self, **options: Any) -> Any:
        return getattr(metrics, self.name)(**self.options, **options)

    def theirs(self) -> Any:
        return getattr(keras.metrics, self.name)(**self.options)


CASES = [
    Case("Accuracy", CLASSES, np.roll(CLASSES, 1, axis=0)),
    Case("BinaryAccuracy", TARGETS, PROBS, {"threshold": 0.3}),
    Case("CategoricalAccuracy", ROWS, SCORES),
    Case("SparseCategoricalAccuracy", INDICES, SCORES),
    Case("TopKCategoricalAccuracy", ROWS, SCORES, {"k": 2}),
    Case("SparseTopKCategoricalAccuracy", INDICES, SCORES, {"k": 2}),
    Case("F1Score", ROWS, SCORES, {"average": "macro"}),
    Case("FBetaScore", ROWS, SCORES, {"beta": 2.0, "threshold": 0.5}),
    Case("AUC", TARGETS, PROBS),
    Case("Precision", TARGETS, PROBS),
    Case("Recall", TARGETS, PROBS, {"thresholds": [0.3, 0.6]}),
    Case("TruePositives", TARGETS, PROBS),
    Case("TrueNegatives", TARGETS, PROBS),
    Case("FalsePositives", TARGETS, PROBS),
    Case("FalseNegatives", TARGETS, PROBS),
    Case("SensitivityAtSpecificity", TARGETS, PROBS, {"specificity": 0.5}),
    Case("SpecificityAtSensitivity", TARGETS, PROBS, {"sensitivity": 0.5}),
    Case("PrecisionAtRecall", TARGETS, PROBS, {"recall": 0.5}),
    Case("RecallAtPrecision", TARGETS, PROBS, {"precision": 0.5}),
    Case("BinaryIoU", TARGETS, PROBS, {"threshold": 0.3}),
    Case("OneHotIoU", ROWS, SCORES, {"num_classes": 3, "target_class_ids": [0, 2]}),
    Case("OneHotMeanIoU", ROWS, SCORES, {"num_classes": 3}),
    Case("MeanSquaredError", REAL, OTHERS),
    Case("MeanAbsoluteError", REAL, OTHERS),
    Case("MeanAbsolutePercentageError", POSITIVE, OTHERS),
    Case("MeanSquaredLogarithmicError", POSITIVE, OTHERS),
    Case("RootMeanSquaredError", REAL, OTHERS),
    Case("LogCoshError", REAL, OTHERS),
    Case("CosineSimilarity", REAL, OTHERS),
    Case("R2Score", REAL, REAL + 0.3 * OTHERS),
    Case("Hinge", 2 * ROWS - 1, REAL),
    Case("SquaredHinge", 2 * ROWS - 1, REAL),
    Case("CategoricalHinge", ROWS, REAL),
    Case("KLDivergence", SHARES[::-1].copy(), SHARES),
    Case("Poisson", POSITIVE, OTHERS),
    Case("BinaryCrossentropy", TARGETS, PROBS),
    Case("CategoricalCrossentropy", ROWS, SHARES),
    Case("SparseCategoricalCrossentropy", INDICES, SHARES),
    Case("PearsonCorrelation", REAL, OTHERS, in_old_keras=False),
    Case("ConcordanceCorrelation", REAL, OTHERS, in_old_keras=False),
    Case("Precision", ROWS, SCORES, {"top_k": 2, "thresholds": 0.4}),
    Case("Recall", ROWS, SCORES, {"top_k": 1}),
]
# What else Keras lets one choose.
CHOICES = {
    "AUC": {
        "num_thresholds": [20],
        "curve": ["PR"],
        "summation_method": ["minoring", "majoring"],
        "multi_label": [True],
    },
    "BinaryAccuracy": {"threshold": [0.7]},
    "BinaryCrossentropy": {"label_smoothing": [0.1], "from_logits": [True]},
    "BinaryIoU": {"target_class_ids": [[0], [1]]},
    "CategoricalCrossentropy": {"label_smoothing": [0.1], "from_logits": [True]},
    "F1Score": {"average": [None, "micro", "weighted"], "threshold": [0.4]},
    "FBetaScore": {"average": ["micro", "macro", "weighted"], "beta": [0.5]},
    "FalseNegatives": {"thresholds": [0.3]},
    "FalsePositives": {"thresholds": [0.3, [0.3, 0.6]]},
    "IoU": {"ignore_class": [0], "target_class_ids": [[0, 2]]},
    "MeanIoU": {"ignore_class": [0]},
    "OneHotMeanIoU": {"ignore_class": [1]},
    "Precision": {"thresholds": [0.3, [0.3, 0.6]], "top_k": [2], "class_id": [1]},
    "PrecisionAtRecall": {"num_thresholds": [20], "class_id": [2]},
    "R2Score": {
        "class_aggregation": [None, "variance_weighted_average"],
        "num_regressors": [1],
    },
    "Recall": {"thresholds": [0.3], "top_k": [2], "class_id": [0, -1]},
    "RecallAtPrecision": {"num_thresholds": [20], "class_id": [1]},
    "SensitivityAtSpecificity": {"num_thresholds": [20], "class_id": [1]},
    "SparseCategoricalCrossentropy": {"from_logits": [True]},
    "SparseTopKCategoricalAccuracy": {"k": [1]},
    "SpecificityAtSensitivity": {"class_id": [1]},
    "TopKCategoricalAccuracy": {"k": [1]},
    "TrueNegatives": {"thresholds": [0.3]},
    "TruePositives": {"thresholds": [[0.3, 0.6]]},
}
# Integers, among which there is no NaN.
WHOLE = [
    Case("IoU", CLASSES, CLASSES[::-1], {"num_classes": 3, "target_class_ids": [1]}),
    Case("MeanIoU", CLASSES, CLASSES[::-1], {"num_classes": 3}),
]
# Those for which a row has several classes get rows of them.
_IN_CLASSES = {"class_id", "multi_label", "top_k"}
CHOSEN = [
    dataclasses.replace(
        case,
        options={**case.options, option: value},
        **({"y_true": ROWS, "y_pred": SCORES} if option in _IN_CLASSES else {}),
    )
    for case in {case.name: case for case in [*WHOLE, *CASES[::-1]]}.values()
    for option, values in CHOICES.get(case.name, {}).items()
    for value in values
]


def result_of(metric: Any, *batches: tuple[Any, ...], mode: str = "eager") -> Any:
    """Returns the result of a metric after some batches, updated in `mode`."""

    def update(*batch: Any) -> None:
        metric.update_state(*batch)

    if mode != "eager":
        # Made outside of the function, as a model makes them before it trains.
        metric.update_state(*batches[0])
        metric.reset_state()
        update = tf.function(update, autograph=False, jit_compile=mode == "xla")
    for batch in batches:
        update(*(tf.constant(x) for x in batch))
    return np.asarray(metric.result())
