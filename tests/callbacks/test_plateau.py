"""Waiting for an improvement: row T13 of the catalogue."""

import keras
import numpy as np
import pytest

from tests.callbacks import training
from tests.callbacks.training import BreakWeights, Script, eager, fit, warns
from tests.support.oracle import assert_close
from tfsafe import callbacks

NAN, INF = float("nan"), float("inf")
# Better and better, after a NaN.
VALUES = [NAN, 3.0, 2.0, 1.0, 0.5, 0.4]


def run(callback, values=VALUES, *others):
    model = eager(keras.optimizers.SGD(0.01))
    history = fit(
        model,
        training.clean_data(),
        Script(values),
        *others,
        callback,
        batch_size=20,
        epochs=len(values),
    )
    return model, history


def stopping(package=callbacks, **options):
    return package.EarlyStopping(**{"patience": 3, "mode": "min", **options})


def plateau(package=callbacks, **options):
    options = {"patience": 2, "mode": "min", "factor": 0.1, **options}
    return package.ReduceLROnPlateau(**options)


def test_t13_early_stopping_finds_the_best_epoch_behind_a_nan():
    theirs = stopping(keras.callbacks)
    _, history = run(theirs)
    # Older Keras starts from infinity instead, which is right.
    assert (len(history["loss"]) < len(VALUES)) == np.isnan(theirs.best)

    ours = stopping()
    _, history = run(ours)
    assert len(history["loss"]) == len(VALUES)
    assert (ours.best, ours.best_epoch) == (0.4, 5)


@pytest.mark.parametrize(
    ("mode", "values"), [("min", [-INF, 2, 1, 3]), ("max", [INF, 1, 2, 0])]
)
def test_an_infinity_is_never_the_best(mode, values):
    ours = stopping(mode=mode)
    run(ours, values)
    assert ours.best == values[2]


def test_epochs_without_a_finite_value_use_up_the_patience():
    ours = stopping(patience=2)
    _, history = run(ours, [NAN] * 6)
    assert len(history["loss"]) == 2
    assert ours.stopped_epoch == 1
    _, history = run(stopping(patience=2), [1.0, NAN, INF, 0.5, 0.4])
    assert len(history["loss"]) == 3


def test_epochs_before_the_start_do_not_use_up_the_patience():
    _, history = run(stopping(patience=1, start_from_epoch=2), [NAN] * 6)
    assert len(history["loss"]) == 3


def test_one_epoch_never_stops_a_training():
    _, history = run(stopping(patience=0), [NAN, 1.0])
    assert len(history["loss"]) == 2


def test_broken_weights_are_never_restored():
    ours = stopping(restore_best_weights=True, patience=9)
    # The best value of all stands at the epoch that broke.
    model, _ = run(ours, [3.0, 0.1, 2.0, 2.5], BreakWeights(1))
    assert (ours.best, ours.best_epoch) == (2.0, 2)
    assert training.is_finite(model)


def test_without_a_finite_epoch_no_weights_are_restored():
    ours = stopping(restore_best_weights=True, patience=9)
    model, _ = run(ours, [NAN, NAN, NAN])
    other, _ = run(stopping(patience=9), [NAN, NAN, NAN])
    for left, right in zip(model.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_array_equal(left, right)


def test_t13_a_rate_does_not_fall_without_a_plateau():
    theirs = plateau(keras.callbacks)
    model, _ = run(theirs)
    fell = float(model.optimizer.learning_rate.numpy()) < 0.009
    assert fell == np.isnan(theirs.best)

    ours = plateau()
    model, history = run(ours)
    assert_close(model.optimizer.learning_rate.numpy(), 0.01)
    assert ours.best == 0.4
    assert len(history["learning_rate"]) == len(VALUES)


def test_nan_after_a_finite_value_is_no_improvement():
    model, _ = run(plateau(), [1.0, NAN, NAN, 0.5])
    assert_close(model.optimizer.learning_rate.numpy(), 0.001)


@pytest.mark.parametrize("make", [stopping, plateau])
def test_a_value_that_is_missing_is_left_to_keras(make):
    with warns("`val_loss` which is not available", UserWarning):
        fit(eager(), training.clean_data(), make())


@pytest.mark.parametrize("weights", [7, {"a": [1.0, keras.Variable(2.0)]}])
def test_early_stopping_takes_a_model_whose_weights_are_any_objects(weights):
    class Model:
        stop_training = False

        def get_weights(self):
            return self.weights

        def set_weights(self, weights):
            self.weights = weights

    callback = callbacks.EarlyStopping("loss", patience=1, restore_best_weights=True)
    model = Model()
    model.weights = weights
    callback.set_model(model)
    callback.on_train_begin()
    callback.on_epoch_end(0, {"loss": 1.0})
    callback.on_epoch_end(1, {"loss": 2.0})
    assert model.stop_training
    assert callback.best_epoch == 0


def test_early_stopping_finds_nan_in_nested_weights():
    class Model:
        stop_training = False

    callback = callbacks.EarlyStopping("loss", patience=9)
    model = Model()
    model.weights = {"a": [3, keras.Variable(NAN)]}
    callback.set_model(model)
    callback.on_train_begin()
    callback.on_epoch_end(0, {"loss": 1.0})
    assert callback.best_epoch == 0
    assert callback.wait == 1
    # Keras 3.3 has none before there is one.
    assert getattr(callback, "best", None) != 1.0
