"""NumericsMonitor: what `fit` shows of the bad steps."""

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tfsafe.callbacks import NumericsMonitor
from tfsafe.optimizers import SafeOptimizer

BATCH = 4
# Batch 2 of 5 holds a NaN.
BAD_BATCH = 2


@pytest.fixture
def data():
    generator = np.random.default_rng(0)
    x = generator.normal(size=(5 * BATCH, 3)).astype("float32")
    y = x.sum(-1, keepdims=True)
    x[BAD_BATCH * BATCH + 1, 0] = np.nan
    return x, y


def compiled(optimizer, **options):
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, name="head")])
    model.compile(optimizer, "mse", **options)
    return model


def fit(model, data, **options):
    options = {"batch_size": BATCH, "shuffle": False, "verbose": 0, **options}
    return model.fit(*data, **options).history


class Logs(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.batches = []

    def on_train_batch_end(self, batch, logs=None):
        self.batches.append(dict(logs))


@pytest.mark.parametrize(
    "options",
    [{"run_eagerly": True}, {"jit_compile": False}, {"jit_compile": True}],
    ids=["eager", "graph", "xla"],
)
@pytest.mark.parametrize("policy", ["replace", "skip"])
def test_the_loss_is_the_mean_of_the_finite_batches(data, policy, options):
    model = compiled(SafeOptimizer("sgd", policy), **options)
    logs = Logs()
    with pytest.warns(RuntimeWarning, match="Step 3: the gradients of"):
        history = fit(model, data, epochs=2, callbacks=[NumericsMonitor(), logs])
    assert history["nonfinite_steps"] == [1, 2]
    assert np.isfinite(history["loss"]).all()
    counts = [batch["nonfinite_steps"] for batch in logs.batches]
    assert counts == [0, 0, 1, 1, 1, 1, 1, 2, 2, 2]
    # The bad batch leaves the running mean as it was.
    assert logs.batches[2]["loss"] == logs.batches[1]["loss"]


def test_the_shown_loss_equals_a_run_without_the_bad_batch(data):
    x, y = data
    kept = np.arange(len(x)) // BATCH != BAD_BATCH
    plain = fit(compiled("sgd"), (x[kept], y[kept]))
    with pytest.warns(RuntimeWarning):
        watched = fit(
            compiled(SafeOptimizer("sgd", "skip")), data, callbacks=[NumericsMonitor()]
        )
    np.testing.assert_allclose(watched["loss"], plain["loss"], rtol=1e-6)


def test_plain_keras_shows_nan_for_the_same_run(data):
    history = fit(compiled(SafeOptimizer("sgd", "skip")), data)
    assert np.isnan(history["loss"]).all()


def test_one_warning_names_the_variables_and_the_way_to_the_cause(data):
    model = compiled(SafeOptimizer("sgd"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit(model, data, epochs=3, callbacks=[NumericsMonitor()])
    messages = [str(w.message) for w in caught if w.category is RuntimeWarning]
    assert len(messages) == 1
    for part in ("head/kernel", "head/bias", "put 0", "tfsafe.checked(model)"):
        assert part in messages[0]


def test_a_validation_loss_stays_honest(data):
    x, y = data
    model = compiled(SafeOptimizer("sgd", "skip"))
    with pytest.warns(RuntimeWarning):
        history = fit(
            model, data, epochs=2, validation_data=(x, y), callbacks=[NumericsMonitor()]
        )
    assert np.isnan(history["val_loss"]).all()
    assert np.isfinite(history["loss"]).all()


def test_evaluate_after_training_stays_honest(data):
    model = compiled(SafeOptimizer("sgd", "skip"))
    monitor = NumericsMonitor()
    with pytest.warns(RuntimeWarning):
        fit(model, data, callbacks=[monitor])
    assert np.isnan(model.evaluate(*data, verbose=0, callbacks=[monitor]))
    assert np.isnan(fit(model, data)["loss"]).all()


def test_a_step_traced_before_the_first_monitor_is_built_again_once(data):
    model = compiled(SafeOptimizer("sgd", "skip"))
    fit(model, data)
    with pytest.warns(RuntimeWarning):
        history = fit(model, data, callbacks=[NumericsMonitor()])
    assert np.isfinite(history["loss"]).all()
    step = model.train_function
    with pytest.warns(RuntimeWarning):
        history = fit(model, data, callbacks=[NumericsMonitor()])
    assert np.isfinite(history["loss"]).all()
    assert model.train_function is step


class TwoLosses(keras.Model):
    """A model that keeps its own running means, as VAEs do."""

    def __init__(self):
        super().__init__()
        self.head = keras.layers.Dense(1)
        self.total = keras.metrics.Mean(name="total_loss")

    def call(self, x):
        return self.head(x)

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self(x) - y) ** 2)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply(gradients, self.trainable_variables)
        self.total.update_state(loss)
        return {"total_loss": self.total.result()}


def test_a_mean_of_the_models_own_stays_finite(data):
    model = TwoLosses()
    model.compile(SafeOptimizer("sgd", "skip"))
    with pytest.warns(RuntimeWarning):
        history = fit(model, data, callbacks=[NumericsMonitor()])
    assert np.isfinite(history["total_loss"]).all()


def test_the_total_loss_of_several_outputs_stays_finite(data):
    x, y = data
    keras.utils.set_random_seed(0)
    inputs = keras.Input((3,))
    outputs = {n: keras.layers.Dense(1, name=n)(inputs) for n in ("a", "b")}
    model = keras.Model(inputs, outputs)
    model.compile(SafeOptimizer("sgd", "skip"), {"a": "mse", "b": "mae"})
    with pytest.warns(RuntimeWarning):
        history = fit(model, (x, {"a": y, "b": y}), callbacks=[NumericsMonitor()])
    assert np.isfinite(history["loss"]).all()


def test_the_monitor_finds_the_optimizer_under_loss_scaling(data):
    model = compiled(
        keras.optimizers.LossScaleOptimizer(SafeOptimizer("sgd"), initial_scale=2.0)
    )
    history = fit(model, data, callbacks=[NumericsMonitor()])
    # The loss scaling skips what it finds itself, on its own account.
    assert history["nonfinite_steps"] == [0]


def test_too_many_bad_steps_in_a_row_end_the_training(data):
    x, y = data
    x = np.full_like(x, np.nan)
    model = compiled(SafeOptimizer("sgd", max_consecutive=3))
    with (
        pytest.warns(RuntimeWarning),
        pytest.raises(tfsafe.NumericsError, match="last 3 steps"),
    ):
        fit(model, (x, y), callbacks=[NumericsMonitor()])
    assert model.optimizer.steps == 3


def test_an_optimizer_without_guard_is_refused_with_the_cure(data):
    model = compiled(keras.optimizers.Adam())
    with pytest.raises(ValueError, match=r"SafeOptimizer\(keras.optimizers.Adam\("):
        fit(model, data, callbacks=[NumericsMonitor()])


def test_steps_per_execution_count_every_step(data):
    model = compiled(SafeOptimizer("sgd"), steps_per_execution=5)
    # The bad step is not the last of its five.
    with pytest.warns(RuntimeWarning, match="Step 3: the gradients"):
        history = fit(model, data, epochs=2, callbacks=[NumericsMonitor()])
    assert history["nonfinite_steps"] == [1, 2]
    assert np.isfinite(history["loss"]).all()
