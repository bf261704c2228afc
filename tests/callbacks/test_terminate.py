"""Ending a training that broke: rows T01, T02 and T03 of the catalogue."""

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.callbacks import training
from tests.callbacks.training import eager, fit, warns
from tests.support.warned import ours
from tfsafe.callbacks import NumericsMonitor, TerminateOnNaN, TerminateOnNonFinite
from tfsafe.optimizers import SafeOptimizer


def distance(y_true, y_pred):
    return tf.norm(y_pred - y_true, axis=-1)


def exact(**options):
    """A model whose predictions are right: the slope of `distance` there is NaN."""
    model = eager("sgd", loss=distance, **options)
    model.set_weights([np.ones((3, 1), "float32"), np.zeros(1, "float32")])
    return model


@pytest.mark.parametrize("steps", [1, 5])
def test_t01_a_training_ends_before_its_weights_are_damaged(steps):
    data = training.data_with_a_bad_batch()
    keras_own = eager("sgd", steps_per_execution=steps, run_eagerly=False)
    fit(keras_own, data, keras.callbacks.TerminateOnNaN(), epochs=2)
    assert not training.is_finite(keras_own)

    model = eager(
        SafeOptimizer("sgd", "skip"), steps_per_execution=steps, run_eagerly=False
    )
    with warns("the gradients of .*head/kernel, .*head/bias"):
        history = fit(model, data, TerminateOnNonFinite(), epochs=2)
    assert training.is_finite(model)
    assert len(history["loss"]) == 1
    assert model.optimizer.steps == {1: 3, 5: 5}[steps]


@pytest.mark.parametrize("options", training.MODES.values(), ids=training.MODES)
def test_t02_a_nonfinite_gradient_under_a_finite_loss_in_the_last_batch(options):
    x, y = training.clean_data()
    if options == training.MODES["eager"]:
        keras_own = exact(**options)
        fit(keras_own, (x, y), keras.callbacks.TerminateOnNaN(), batch_size=len(x))
        assert not keras_own.stop_training

    model = exact(**options)
    with warns(r"Batch 0: .*head/kernel.*hold NaN"):
        fit(model, (x, y), TerminateOnNonFinite(watch="weights"), batch_size=len(x))
    assert model.stop_training


def test_t03_a_validation_loss_that_is_nan():
    data, bad = training.clean_data(), training.data_with_a_bad_batch()
    history = fit(
        eager(),
        data,
        keras.callbacks.TerminateOnNaN(),
        validation_data=bad,
        epochs=3,
    )
    assert len(history["val_loss"]) == 3

    model, callback = eager(), TerminateOnNonFinite()
    with warns("Epoch 1: val_loss is nan") as caught:
        history = fit(model, data, callback, validation_data=bad, epochs=3)
    assert len(history["val_loss"]) == 1
    assert len(ours(caught)) == 1


def test_a_loss_that_is_nan_is_named_once_with_what_it_broke():
    model, data = eager(), training.data_with_a_bad_batch()
    with warns("loss is nan") as caught:
        history = fit(
            model, data, TerminateOnNonFinite(), validation_data=data, epochs=3
        )
    kernel, bias = (weight.path for weight in model.weights)
    assert [str(w.message) for w in ours(caught)] == [
        f"Batch 2: loss is nan; {kernel}, {bias} hold NaN or infinity. Training ends "
        "here. To see which line makes the first non-finite value, train once with "
        "`tfsafe.checked(model)`."
    ]
    assert len(history["loss"]) == 1


def test_a_slot_of_the_optimizer_counts_before_it_reaches_the_weights():
    model = eager("adam", loss=lambda y, p: 1e20 * tf.reduce_mean(p, axis=-1))
    with warns("velocity"):
        fit(model, training.clean_data(), TerminateOnNonFinite())
    assert model.optimizer.iterations.numpy() == 1


def test_a_clean_training_runs_to_its_end_and_the_callback_can_be_used_again():
    callback = TerminateOnNonFinite()
    model = eager(SafeOptimizer("adam"), metrics=["mae"])
    for _ in range(2):
        history = fit(model, training.clean_data(), callback, epochs=2)
        assert len(history["loss"]) == 2
    with warns("gradients"):
        fit(model, training.data_with_a_bad_batch(), callback, epochs=2)
    history = fit(model, training.clean_data(), callback, epochs=2)
    assert len(history["loss"]) == 2


@pytest.mark.parametrize("error", [tfsafe.NumericsError, RuntimeError])
@pytest.mark.parametrize("kind", [TerminateOnNonFinite, TerminateOnNaN])
def test_it_raises_where_it_is_asked_to(kind, error):
    with pytest.raises(error, match="Batch 2: loss is nan"):
        fit(eager(), training.data_with_a_bad_batch(), kind(raise_error=True))


def test_keras_name_lets_a_training_go_on_whose_nonfinite_steps_are_dealt_with():
    model = eager(SafeOptimizer("sgd", "skip"))
    data = training.data_with_a_bad_batch()
    with warns("counted as"):
        history = fit(model, data, NumericsMonitor(), TerminateOnNaN(), epochs=2)
    assert len(history["loss"]) == 2


def test_keras_name_ends_a_training_as_keras_does():
    with warns("Batch 2: loss is nan"):
        fit(eager(), training.data_with_a_bad_batch(), TerminateOnNaN(), epochs=2)


def test_what_is_not_watched_does_not_end_the_training():
    model = eager(SafeOptimizer("sgd", "skip"))
    callback = TerminateOnNonFinite(watch=["weights", "val_loss"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(model, training.data_with_a_bad_batch(), callback, epochs=2)
    assert model.optimizer.steps == 10


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"watch": "val"}, ValueError, r"`watch` must be one of 'loss'.*watch='val'"),
        ({"watch": ["loss", "acc"]}, ValueError, "watch='acc'"),
        ({"watch": ()}, ValueError, r"`watch` must name at least one.*watch=\(\)"),
        ({"raise_error": "yes"}, TypeError, "`raise_error` must be True or False"),
    ],
)
def test_arguments_are_refused_with_what_to_do(arguments, error, message):
    with pytest.raises(error, match=message):
        TerminateOnNonFinite(**arguments)


def test_an_error_has_the_words_of_keras_too():
    model = keras.Sequential([keras.Input([1]), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x, y = np.ones([2, 1]), np.array([[1.0], [np.inf]])
    guard = TerminateOnNaN(raise_error=True)
    with pytest.raises(RuntimeError, match="NaN or Inf loss encountered at batch 1"):
        model.fit(x, y, batch_size=1, shuffle=False, verbose=0, callbacks=[guard])
