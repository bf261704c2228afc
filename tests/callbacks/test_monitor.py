"""NumericsMonitor: what `fit` shows of the bad steps."""

import re
import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.callbacks import training
from tests.callbacks.training import compiled
from tests.support.oracle import assert_close
from tests.support.warned import ours
from tfsafe.callbacks import NumericsMonitor
from tfsafe.optimizers import SafeOptimizer

BATCH, BAD_BATCH = training.BATCH, training.BAD_BATCH


@pytest.fixture
def data():
    return training.data_with_a_bad_batch()


def fit(model, data, callbacks=(), **options):
    return training.fit(model, data, *callbacks, **options)


@pytest.mark.parametrize("options", training.MODES.values(), ids=training.MODES)
@pytest.mark.parametrize("policy", ["replace", "zero_variable", "skip"])
def test_the_loss_is_the_mean_of_the_finite_batches(data, policy, options):
    model = compiled(SafeOptimizer("sgd", policy), **options)
    logs = training.Script()
    with pytest.warns(RuntimeWarning, match="Step 3: the gradients of"):
        history = fit(model, data, epochs=2, callbacks=[NumericsMonitor(), logs])
    assert history["nonfinite_steps"] == [1, 2]
    assert np.isfinite(history["loss"]).all()
    counts = [batch.get("nonfinite_steps", 0) for batch in logs.batches]
    assert counts == [0, 0, 1, 1, 1, 1, 1, 2, 2, 2]
    # The bad batch leaves the running mean as it was.
    assert logs.batches[2]["loss"] == logs.batches[1]["loss"]


def test_the_shown_loss_equals_a_run_without_the_nonfinite_batch(data):
    x, y = data
    kept = np.arange(len(x)) // BATCH != BAD_BATCH
    plain = fit(compiled("sgd"), (x[kept], y[kept]))
    with pytest.warns(RuntimeWarning):
        watched = fit(
            compiled(SafeOptimizer("sgd", "skip")), data, callbacks=[NumericsMonitor()]
        )
    assert_close(watched["loss"], plain["loss"], dtype="float32")


def test_plain_keras_shows_nan_for_the_same_run(data):
    history = fit(compiled(SafeOptimizer("sgd", "skip")), data)
    assert np.isnan(history["loss"]).all()


def test_one_warning_names_the_variables_and_the_way_to_the_cause(data):
    model = compiled(SafeOptimizer("sgd"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit(model, data, epochs=3, callbacks=[NumericsMonitor()])
    messages = [str(w.message) for w in ours(caught)]
    assert len(messages) == 1
    for part in (
        "head/kernel",
        "head/bias",
        "replaces non-finite elements by 0",
        "skipped",
        "tfsafe.checked(model)",
    ):
        assert part in messages[0]
    # The line of `model.fit`, not one of Keras'.
    assert ours(caught)[0].filename == training.__file__


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


def test_too_many_nonfinite_steps_in_a_row_end_the_training(data):
    x, y = data
    x = np.full_like(x, np.nan)
    model = compiled(SafeOptimizer("sgd", max_consecutive=3))
    with (
        pytest.warns(RuntimeWarning),
        pytest.raises(tfsafe.NumericsError, match="last 3 steps"),
    ):
        fit(model, (x, y), callbacks=[NumericsMonitor()])
    assert model.optimizer.steps == 3


def test_an_optimizer_without_guard_is_refused_with_a_suggestion(data):
    model = compiled(keras.optimizers.Adam())
    with pytest.raises(ValueError, match=r"SafeOptimizer\(keras.optimizers.Adam\("):
        fit(model, data, callbacks=[NumericsMonitor(checks=None)])


def test_steps_per_execution_count_every_step(data):
    model = compiled(SafeOptimizer("sgd"), steps_per_execution=5)
    # The bad step is not the last of its five.
    with pytest.warns(RuntimeWarning, match="Step 3: the gradients"):
        history = fit(model, data, epochs=2, callbacks=[NumericsMonitor()])
    assert history["nonfinite_steps"] == [1, 2]
    assert np.isfinite(history["loss"]).all()


def test_after_an_error_the_shown_loss_is_plain_again(data):
    model = compiled(SafeOptimizer("sgd", max_consecutive=1))
    with pytest.raises(tfsafe.NumericsError, match="The last step"):
        fit(model, data, [NumericsMonitor()])
    assert np.isnan(model.evaluate(*data, verbose=0))


class Interrupt(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        raise KeyboardInterrupt


@pytest.mark.parametrize("options", training.MODES.values(), ids=training.MODES)
def test_after_an_interrupt_an_evaluation_is_honest(data, options):
    # Keras calls no `on_train_end` then.
    model = compiled(SafeOptimizer("sgd", "skip"), **options)
    with pytest.raises(KeyboardInterrupt):
        fit(model, training.clean_data(), [NumericsMonitor(), Interrupt()])
    assert np.isnan(model.evaluate(*data, verbose=0))


def two_heads(**options):
    keras.utils.set_random_seed(0)
    inputs = {n: keras.Input((3,), name=n) for n in ("x", "z")}
    outputs = [keras.layers.Dense(1, name=f"d{n}")(i) for n, i in inputs.items()]
    model = keras.Model(inputs, keras.layers.Add()(outputs))
    # The loss of the sum spreads a NaN to both; a sum of gradients does not.
    model.compile(
        SafeOptimizer("sgd", "skip"), lambda y, p: p, jit_compile=False, **options
    )
    return model


def test_fractions_show_which_variable_the_nonfinite_steps_hit():
    x, y = training.clean_data()
    bad_x, bad_z = x.copy(), x.copy()
    bad_x[0], bad_x[8], bad_z[8] = np.nan, np.nan, np.nan
    model, monitor = two_heads(), NumericsMonitor()
    with pytest.warns(RuntimeWarning, match="dx/kernel"):
        fit(model, ({"x": bad_x, "z": bad_z}, y), [monitor])
    fractions = {
        path.split("/")[-2]: v for path, v in monitor.nonfinite_fractions.items()
    }
    assert fractions == {"dx": 1.0, "dz": 0.5}
    # Most hit first.
    assert next(iter(monitor.nonfinite_fractions.values())) == 1.0
    fit(model, ({"x": x, "z": x}, y), [monitor])
    assert monitor.nonfinite_fractions == {}


def test_fractions_are_exact_where_several_steps_are_one_call():
    x, y = training.clean_data()
    bad_x, bad_z = x.copy(), x.copy()
    # Of five steps in one call, the first three are bad, the last of them for both.
    bad_x[[0, 4, 8]], bad_z[8] = np.nan, np.nan
    model, monitor = two_heads(steps_per_execution=5), NumericsMonitor()
    with pytest.warns(RuntimeWarning, match="Step 3"):
        fit(model, ({"x": bad_x, "z": bad_z}, y), [monitor])
    fractions = {
        path.split("/")[-2]: v for path, v in monitor.nonfinite_fractions.items()
    }
    assert fractions == {"dx": 1.0, "dz": 1 / 3}


def test_there_are_no_fractions_before_the_first_training():
    assert NumericsMonitor().nonfinite_fractions == {}


def test_outliers_are_shown_where_they_are_looked_for():
    x, y = training.clean_data()
    y = y.copy()
    y[16:] *= 1e6
    norm = keras.layers.BatchNormalization(name="norm")
    optimizer = SafeOptimizer("sgd", outlier_threshold=4.0, outlier_window=2)
    model = compiled(optimizer, norm, metrics=["mae"])
    logs = training.Script()
    history = fit(model, (x, y), [NumericsMonitor(), logs])
    assert history["outlier_steps"] == [1]
    assert history["nonfinite_steps"] == [0]
    # The step is left out as a whole: statistics and metrics as well.
    assert logs.batches[4]["mae"] == logs.batches[3]["mae"]
    never = compiled("sgd", keras.layers.BatchNormalization(name="norm"))
    fit(never, (x[:16], y[:16]))
    pairs = zip(model.get_weights(), never.get_weights(), strict=True)
    assert all(np.array_equal(ours, theirs) for ours, theirs in pairs)


def summaries(log_dir):
    """Reads TensorBoard's file: per epoch, the value of each tag."""
    (path,) = log_dir.iterdir()
    found = {}
    for record in tf.data.TFRecordDataset(str(path)):
        event = tf.compat.v1.Event.FromString(record.numpy())
        for value in event.summary.value:
            found.setdefault(event.step, {})[value.tag] = tf.make_ndarray(value.tensor)
    return found


def test_tensorboard_gets_the_counts_once_per_epoch(data, tmp_path):
    model = compiled(SafeOptimizer("sgd", "skip"))
    monitor = NumericsMonitor(log_dir=tmp_path)
    with pytest.warns(RuntimeWarning, match="Step 3"):
        fit(model, data, [monitor], epochs=2)
    found = summaries(tmp_path)
    assert [found[epoch]["nonfinite_steps"] for epoch in (0, 1)] == [1, 2]
    kernel = model.get_layer("head").kernel.path
    assert found[1][f"nonfinite_fraction/{kernel}"] == 1.0


def test_tensorboard_gets_no_fractions_of_a_clean_training(tmp_path):
    model = compiled(SafeOptimizer("sgd"))
    fit(model, training.clean_data(), [NumericsMonitor(log_dir=str(tmp_path))])
    found = summaries(tmp_path)[0]
    assert found.pop("nonfinite_steps") == 0
    # Two variables that were not hit.
    buckets = found.pop("nonfinite_fractions")
    assert buckets[:, 2].tolist() == [2, *[0] * 10]
    assert found == {}


def test_tensorboard_gets_a_histogram_of_all_fractions(tmp_path):
    x, y = training.clean_data()
    bad_x, bad_z = x.copy(), x.copy()
    bad_x[[0, 4, 8, 12]], bad_z[8] = np.nan, np.nan
    data = {"x": bad_x, "z": bad_z}, y
    with pytest.warns(RuntimeWarning, match="dx/kernel"):
        fit(two_heads(), data, [NumericsMonitor(log_dir=tmp_path)])
    buckets = summaries(tmp_path)[0]["nonfinite_fractions"]
    assert_close(buckets[1:, 0], np.arange(10) / 10)
    assert_close(buckets[1:, 1], np.arange(1, 11) / 10)
    hit = {int(10 * right + 0.5): int(n) for _, right, n in buckets if n}
    # The two biases never, one kernel in one of four bad steps, the other in all.
    assert hit == {0: 2, 3: 1, 10: 1}


def test_a_directory_is_a_path():
    with pytest.raises(TypeError, match=r"`log_dir` must be a path.*log_dir=7"):
        NumericsMonitor(log_dir=7)


def test_the_progress_bar_shows_a_whole_number_once_there_is_one(capsys):
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    y = np.ones([4, 1])
    y[2] = np.nan
    seen = []
    note = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: seen.append(logs.get("nonfinite_steps"))
    )
    with pytest.warns(RuntimeWarning, match="The step is skipped"):
        model_history = model.fit(
            np.ones([4, 1]), y, batch_size=1, shuffle=False, verbose=2,
            callbacks=[NumericsMonitor(policy="skip"), note],
        )  # fmt: skip
    assert seen == [None, None, 1, 1]
    assert model_history.history["nonfinite_steps"] == [1]
    out = capsys.readouterr().out.strip()
    # Keras before 3.13 shows no whole numbers.
    assert re.search(r"nonfinite_steps: 1(\.0000)?( |$)", out)
