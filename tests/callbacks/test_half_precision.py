"""Callbacks that write weights, and float32 copies of weights in half precision."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.callbacks import training
from tests.callbacks.training import compiled, fit, warns
from tests.support.oracle import assert_close
from tfsafe import callbacks
from tfsafe.optimizers import SafeOptimizer


def half_model(optimizer, dtype="bfloat16") -> keras.Model:
    return compiled(optimizer, keras.layers.Dense(3, dtype=dtype, name="half"))


def guarded(**arguments) -> SafeOptimizer:
    return SafeOptimizer(keras.optimizers.Adam(0.01, **arguments), "skip")


def weights_of(model) -> list[np.ndarray]:
    return [tf.cast(v.value, tf.float32).numpy() for v in model.trainable_variables]


class Spy(keras.callbacks.Callback):
    """Keeps the weights that a validation sees."""

    def on_test_batch_end(self, batch, logs=None):
        self.seen = weights_of(self.model)


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("swap_on_epoch", [False, True])
def test_averages_are_validated_with(swap_on_epoch, scaled):
    if keras.__version__.startswith("3.3."):
        pytest.skip("This Keras refuses variables and averages of different dtypes.")
    optimizer = guarded(use_ema=True, ema_momentum=0.9)
    averages = optimizer.inner_optimizer
    if scaled:
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer, initial_scale=1.0)
    model, spy = half_model(optimizer), Spy()
    data = training.clean_data()
    swap = callbacks.SwapEMAWeights(swap_on_epoch=swap_on_epoch)
    fit(model, data, swap, spy, epochs=2, validation_data=data)
    expected = [
        tf.cast(tf.cast(v, variable.dtype), tf.float32).numpy()
        for v, variable in zip(
            averages.variables[2:6], model.trainable_variables, strict=True
        )
    ]
    assert any((weight != 0).any() for weight in expected)
    if not swap_on_epoch:
        for found, weight in zip(spy.seen, expected, strict=True):
            assert_close(found, weight)
    for found, weight in zip(weights_of(model), expected, strict=True):
        assert_close(found, weight)


def test_the_swap_is_that_of_keras_without_a_guard():
    data, results = training.clean_data(), []
    for module in (callbacks, keras.callbacks):
        model = compiled(keras.optimizers.Adam(0.01, use_ema=True))
        history = fit(model, data, module.SwapEMAWeights(), validation_data=data)
        results.append((history, [w.tolist() for w in model.get_weights()]))
    assert results[0] == results[1]


def test_weights_that_were_loaded_are_not_swapped_away():
    model = half_model(guarded(use_ema=True))
    model.optimizer.build(model.trainable_variables)
    model.set_weights([np.full(w.shape, 2.0) for w in model.get_weights()])
    callback = callbacks.SwapEMAWeights()
    callback.set_model(model)
    callback.on_epoch_begin(0)
    assert all((weight == 2.0).all() for weight in weights_of(model))


def test_a_rollback_takes_the_copies_back():
    class Break(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            if epoch == 0:
                copies = [v for v in self.model.optimizer.variables if "half" in v.path]
                self.kept = [v.numpy() for v in copies]

        def on_train_batch_end(self, batch, logs=None):
            if hasattr(self, "kept"):
                head = self.model.get_layer("head").kernel
                head.assign(head * np.nan)

    model, broken = half_model(guarded()), Break()
    rollback = callbacks.RollbackOnNonFinite()
    with warns("goes back to its last good state"):
        fit(model, training.clean_data(), broken, rollback, epochs=2)
    copies = [v for v in model.optimizer.variables if "half" in v.path]
    assert rollback.rollbacks > 0
    for found, kept in zip(copies, broken.kept, strict=True):
        assert np.array_equal(found.numpy(), kept)


def test_a_broken_variable_and_its_copy_are_named_once():
    model, data = half_model(SafeOptimizer("adam")), training.clean_data()
    fit(model, data)
    kernel = model.get_layer("half").kernel
    # A step whose gradients are all NaN is left out, and takes nothing over.
    kernel.assign(kernel * np.nan)
    with model.optimizer.for_the_copies():
        pass
    terminate = callbacks.TerminateOnNonFinite(True, watch="weights")
    with pytest.raises(RuntimeError) as caught:
        fit(model, data, terminate)
    assert any(np.isnan(v.numpy()).any() for v in model.optimizer.variables)
    assert str(caught.value).count(kernel.path) == 1
