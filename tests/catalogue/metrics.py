"""Metrics: NaN, weights of 0, long counts, constants, no data."""

import functools

import keras
import numpy as np
import tensorflow as tf

from tests.catalogue.rows import Row, formula
from tests.metrics.cases import result_of
from tests.support.oracle import ulp_error
from tfsafe import metrics, ops

NAN = float("nan")


def row(id, trap, fixed_by, is_right, **options):
    """Returns the row of a question about a package of metrics."""
    usual = functools.partial(is_right, keras.metrics)
    ours = functools.partial(is_right, metrics)
    return Row(id, trap, f"metrics.{fixed_by}", usual, ours, **options)


def _f32(x):
    return np.array(x, "float32")


def one_bad_value(package, mode):
    mean = package.Mean()
    values = [(_f32(NAN if i == 3 else 1.0),) for i in range(20)]
    return result_of(mean, *values, mode=mode) == 1 and mean.nonfinite.numpy() == 1


def weight_0(package, mode):
    mean = result_of(package.Mean(), (_f32([NAN, 1]), _f32([0, 1])), mode=mode)
    batch = (_f32([[NAN], [1]]), _f32([[2], [2]]), _f32([0, 1]))
    error = result_of(package.MeanSquaredError(), batch, mode=mode)
    return mean == 1 and error == 1


def constant_labels(package, mode):
    labels = np.full([4, 1], 2, "float32")
    wrong = labels + _f32([[0.1], [0], [0], [0]])
    perfect = result_of(package.R2Score(), (labels, labels), mode=mode)
    imperfect = result_of(package.R2Score(), (labels, wrong), mode=mode)
    return perfect == 1 and imperfect == 0 and package.R2Score().result() == 0


def large_labels(package, mode):
    rng = np.random.default_rng(0)
    labels = _f32(1e4 + rng.normal(size=[1000, 1]))
    predictions = labels + _f32(0.5 * rng.normal(size=[1000, 1]))
    batches = zip(np.split(labels, 10), np.split(predictions, 10), strict=True)
    got = result_of(package.R2Score(), *batches, mode=mode)
    wide, errors = labels.astype("float64"), labels.astype("float64") - predictions
    truth = 1 - (errors**2).sum() / ((wide - wide.mean()) ** 2).sum()
    return ulp_error(np.float32(got), truth) <= 4


def constant_row(package, mode):
    labels, predictions = _f32([[1, 2, 3]] * 2), _f32([[2, 2, 2], [1, 2, 3]])
    batch = (labels, predictions)
    got = result_of(package.PearsonCorrelation(), batch, mode=mode)
    return ulp_error(np.float32(got), 0.5) <= 4


def nan_prediction(package, mode):
    labels, predictions = _f32([[0], [1], [1]]), _f32([[0.1], [NAN], [0.9]])
    judges = [
        package.AUC(),
        package.BinaryAccuracy(),
        package.Precision(),
        package.Recall(),
        package.F1Score(threshold=0.5),
        package.CategoricalAccuracy(),
    ]
    results = [result_of(judge, (labels, predictions), mode=mode) for judge in judges]
    batch = (np.zeros(2, int), np.full([2, 3], NAN, "float32"))
    results.append(result_of(package.SparseCategoricalAccuracy(), batch, mode=mode))
    return all(np.isnan(result).all() for result in results)


def long_count(package, mode):
    mean = package.Mean()
    mean.update_state(1.0)
    mean.count.assign(2.0**24)
    mean.total.assign(2.0**24)
    for _ in range(50):
        mean.update_state(0.0)
    return float(mean.count.numpy()) == 2**24 + 50


def same_formulas(package, mode):
    def one(judge, label, prediction):
        return result_of(judge, (_f32([[label]]), _f32([[prediction]])), mode=mode)

    return bool(
        one(package.MeanAbsolutePercentageError(), 0, 1) == 100
        and ulp_error(np.float32(one(package.LogCoshError(), 0, 1e-4)), 5e-9) <= 4
        and np.isfinite(one(package.Poisson(), 3, -0.1))
    )


def before_any_update(package, mode):
    judges = [package.F1Score(), package.FBetaScore(), package.R2Score()]
    return all(judge.result() == 0 for judge in judges)


ROWS = [
    row("M01", "keras.metrics.Mean, one NaN among good values", "Mean", one_bad_value),
    row("M02", "keras.metrics.Mean and MeanSquaredError, NaN with weight 0", "Mean",
        weight_0),
    row("M04", "keras.metrics.R2Score of constant labels", "R2Score", constant_labels),
    row("M05", "keras.metrics.R2Score of labels around 10,000", "R2Score",
        large_labels),
    row("M06", "keras.metrics.PearsonCorrelation of a constant row",
        "PearsonCorrelation", constant_row),
    row("M08", "keras.metrics.AUC, BinaryAccuracy, F1Score of a NaN prediction", "AUC",
        nan_prediction),
    row("M09", "keras.metrics.Mean beyond 2^24 values", "Mean", long_count,
        modes=["eager"], fails_in=["eager"]),
    row("M10", "keras.metrics.LogCoshError, Poisson, MeanAbsolutePercentageError",
        "LogCoshError", same_formulas),
    row("M11", "keras.metrics.F1Score, FBetaScore, R2Score before any update",
        "F1Score", before_any_update, modes=["eager"], fails_in=["eager"]),
    formula("M12", "keras.ops.average with weights that sum to 0", "ops.mean",
            lambda x: keras.ops.average(x, weights=tf.zeros([2])),
            lambda x: ops.mean(x, mask=tf.zeros([2])),
            [[1, 2]], 0, [[0, 0]]),
]  # fmt: skip
