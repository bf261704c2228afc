"""A bad step is undone as a whole: rows P11 and Y57 of the catalogue, and more."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.callbacks import training
from tests.callbacks.training import compiled, fit, warns
from tests.support.oracle import assert_close
from tfsafe.callbacks import NumericsMonitor, _commit
from tfsafe.graph import bodies
from tfsafe.optimizers import SafeOptimizer


def layers():
    # Layers draw the seeds of their initializers where they are made.
    keras.utils.set_random_seed(0)
    return (
        keras.layers.Dense(4, trainable=False, name="frozen"),
        keras.layers.BatchNormalization(name="norm"),
        keras.layers.Dropout(0.5, seed=3),
    )


def watched(model, data, restore_state=True, **options):
    logs = training.Script()
    monitor = NumericsMonitor(restore_state=restore_state)
    with warns("gradients"):
        history = fit(model, data, monitor, logs, **options)
    return history, logs.batches


def state(model):
    kept = [*model.variables, *model.metrics_variables]
    return [v.numpy() for v in [*kept, *model.optimizer.inner_optimizer.variables]]


def moving_mean(model):
    return model.get_layer("norm").moving_mean.numpy()


@pytest.mark.parametrize("options", training.MODES.values(), ids=training.MODES)
def test_a_skipped_step_leaves_no_trace_bit_for_bit(options):
    def make():
        metrics = ["mae", keras.metrics.RootMeanSquaredError()]
        optimizer = SafeOptimizer("adam", "skip")
        return compiled(optimizer, *layers(), metrics=metrics, **options)

    model, never = make(), make()
    history, _ = watched(model, training.data_with_a_bad_batch(), epochs=2)
    clean = fit(never, training.data_without_the_bad_batch(), epochs=2)
    for ours, theirs in zip(state(model), state(never), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert history.pop("nonfinite_steps") == [1, 2]
    assert history == clean


def test_a_finite_step_compares_and_restores_no_state():
    model = compiled(SafeOptimizer("adam"), *layers(), metrics=["mae"])
    x, y = map(tf.constant, training.clean_data())
    step = tf.function(_commit.of_training(model), autograph=False)
    graph = step.get_concrete_function((x, y)).graph
    operations = graph.get_operations()
    assert "IsFinite" not in {op.type for op in operations}
    restoring = [op for op in operations if op.type == "If"][-1]
    types = [op.type for body in bodies(restoring) for op in body.get_operations()]
    # Moving mean and variance, the seed, total and count of two metrics.
    assert types.count("AssignVariableOp") == 7


def test_without_it_one_nan_stays_in_the_statistics_and_in_the_metrics():
    model = compiled(SafeOptimizer("adam", "skip"), *layers(), metrics=["mae"])
    data = training.data_with_a_bad_batch()
    history, _ = watched(model, data, restore_state=False)
    assert np.isnan(moving_mean(model)).all()
    assert np.isnan(history["mae"]).all()
    fit(model, training.clean_data(), epochs=3)
    assert np.isnan(model.predict(training.clean_data()[0], verbose=0)).all()


@pytest.mark.parametrize("steps", [1, 5])
def test_y57_inference_is_finite_after_a_nonfinite_batch(steps):
    model = compiled(
        SafeOptimizer("adam"), *layers(), metrics=["mae"], steps_per_execution=steps
    )
    history, _ = watched(model, training.data_with_a_bad_batch())
    assert np.isfinite(model.predict(training.clean_data()[0], verbose=0)).all()
    assert np.isfinite(history["mae"]).all()


def test_the_logs_of_the_nonfinite_batch_show_the_batches_before_it():
    model = compiled(SafeOptimizer("sgd", "skip"), metrics=["mae"])
    _, batches = watched(model, training.data_with_a_bad_batch())
    assert batches[2].pop("nonfinite_steps") == 1
    # The count appears with the first one.
    assert batches[2] == batches[1]


@pytest.mark.parametrize("options", training.MODES.values(), ids=training.MODES)
def test_a_repaired_step_keeps_what_is_finite(options):
    norm = keras.layers.BatchNormalization(name="norm")
    model = compiled(SafeOptimizer("sgd", "replace"), norm, **options)
    x, y = training.data_with_a_bad_batch()
    bad = slice(training.BAD_BATCH * training.BATCH, None)
    watched(model, (x[bad], y[bad]), steps_per_epoch=1)
    # 0.01 of the mean of the batch, but for the feature that holds the NaN.
    mean = x[bad][: training.BATCH].mean(0)
    assert_close(moving_mean(model)[1:], 0.01 * mean[1:])
    assert moving_mean(model)[0] == 0


def test_a_metric_goes_back_as_a_whole_where_its_sum_broke():
    model = compiled(SafeOptimizer("sgd", "replace"), metrics=["mae"])
    _, batches = watched(model, training.data_with_a_bad_batch())
    # The count without the sum would make the mean smaller.
    assert batches[2]["mae"] == batches[1]["mae"]
    assert batches[3]["mae"] != batches[2]["mae"]


@pytest.mark.parametrize("wrap", [lambda layer: layer, keras.layers.Bidirectional])
def test_states_of_a_recurrent_layer_are_those_before_the_nonfinite_batch(wrap):
    def make():
        keras.utils.set_random_seed(0)
        inputs = keras.Input(batch_shape=(training.BATCH, 1, 3))
        rnn = wrap(keras.layers.LSTM(2, stateful=True))
        model = keras.Model(inputs, keras.layers.Dense(1)(rnn(inputs)))
        model.compile(SafeOptimizer("adam", "skip"), "mse", jit_compile=False)
        return model, rnn

    def sequences(data):
        return data[0][:, None], data[1]

    (model, rnn), (never, other) = make(), make()
    watched(model, sequences(training.data_with_a_bad_batch()))
    fit(never, sequences(training.data_without_the_bad_batch()))
    states = zip(
        tf.nest.flatten(rnn.states), tf.nest.flatten(other.states), strict=True
    )
    for ours, theirs in states:
        assert np.any(ours.numpy() != 0)
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


def test_a_step_that_loss_scaling_skips_is_undone_too():
    optimizer = keras.optimizers.LossScaleOptimizer(
        SafeOptimizer("sgd", "replace"), initial_scale=2.0
    )
    norm = keras.layers.BatchNormalization(name="norm")
    model = compiled(optimizer, norm)
    x, y = training.data_with_a_bad_batch()
    history = fit(model, (x, y), NumericsMonitor())
    never = compiled(SafeOptimizer("sgd"), keras.layers.BatchNormalization(name="norm"))
    fit(never, training.data_without_the_bad_batch())
    assert history["nonfinite_steps"] == [0]
    np.testing.assert_array_equal(moving_mean(model), moving_mean(never))
    assert optimizer.dynamic_scale.numpy() == 1.0


def test_p11_mixed_precision_survives_an_overflow_with_its_statistics():
    x, y = training.clean_data()
    x[training.BAD_BATCH * training.BATCH] = 6e4

    def trained(*callbacks):
        norm = keras.layers.BatchNormalization(name="norm", dtype="mixed_float16")
        dense = keras.layers.Dense(8, dtype="mixed_float16", kernel_initializer="ones")
        inner = SafeOptimizer(keras.optimizers.SGD(1e-3), "skip")
        optimizer = keras.optimizers.LossScaleOptimizer(inner)
        model = compiled(optimizer, dense, norm)
        fit(model, (x, y), *callbacks)
        return moving_mean(model)

    assert not np.isfinite(trained()).all()
    assert np.isfinite(trained(NumericsMonitor())).all()


def test_metrics_that_the_first_eager_step_builds_start_from_zero():
    x, y = training.clean_data()
    x[0] = np.nan
    model = compiled(SafeOptimizer("sgd", "skip"), metrics=["mae"], run_eagerly=True)
    history, batches = watched(model, (x, y))
    assert batches[0]["mae"] == 0
    assert np.isfinite(history["mae"]).all()


class TwoPhases(keras.Sequential):
    """A training step that returns logs of its own."""

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self(x, training=True) - y) ** 2)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply(gradients, self.trainable_variables)
        return {"my_loss": loss}


def test_a_training_step_of_the_users_own_keeps_its_logs():
    norm = keras.layers.BatchNormalization(name="norm")
    model = TwoPhases([keras.Input((3,)), norm, keras.layers.Dense(1)])
    model.compile(SafeOptimizer("sgd", "skip"))
    _, batches = watched(model, training.data_with_a_bad_batch())
    assert set(batches[0]) == {"my_loss"}
    assert set(batches[2]) == {"my_loss", "nonfinite_steps"}
    assert np.isnan(batches[2]["my_loss"])
    assert np.isfinite(moving_mean(model)).all()


def test_after_training_the_step_is_keras_own_again():
    model = compiled(SafeOptimizer("sgd", "skip"), *layers())
    watched(model, training.data_with_a_bad_batch())
    fit(model, training.data_with_a_bad_batch())
    assert np.isnan(moving_mean(model)).all()


def test_a_model_recompiled_without_guard_trains_on():
    model = compiled(SafeOptimizer("sgd", "skip"), *layers())
    watched(model, training.data_with_a_bad_batch())
    model.compile("sgd", "mse")
    assert np.isfinite(fit(model, training.clean_data())["loss"]).all()


def test_a_monitored_model_is_saved_and_loaded(tmp_path):
    norm = keras.layers.BatchNormalization()
    model = compiled(SafeOptimizer("adam", "skip"), norm)
    watched(model, training.data_with_a_bad_batch())
    path = str(tmp_path / "model.keras")
    model.save(path)
    again = keras.saving.load_model(path)
    data = training.clean_data()
    assert fit(again, data) == fit(model, data)


def test_frozen_weights_are_not_written():
    model = compiled(SafeOptimizer("sgd", "skip"), *layers())
    watched(model, training.data_with_a_bad_batch())
    batch = tuple(map(tf.constant, training.clean_data()))
    step = tf.function(model.train_step, autograph=False)
    graph = step.get_concrete_function(batch).graph
    written = [o.inputs[0] for o in graph.get_operations() if "Assign" in o.type]
    handles = {id(inner): outer for outer, inner in graph.captures}
    written = {id(handles[id(t)]) for t in written if id(t) in handles}
    norm, frozen = model.get_layer("norm"), model.get_layer("frozen")
    assert id(norm.moving_mean.value.handle) in written
    assert id(frozen.kernel.value.handle) not in written


@pytest.mark.parametrize("value", [None, 1, "yes"])
def test_restore_state_is_a_boolean(value):
    with pytest.raises(TypeError, match=f"`restore_state` must be True.*{value!r}"):
        NumericsMonitor(restore_state=value)


def test_a_wrapper_put_around_the_step_later_survives():
    model = compiled(SafeOptimizer("sgd", "skip"), run_eagerly=True)
    data = training.data_with_a_bad_batch()
    watched(model, data)
    step, calls = model.train_step, []

    @functools.wraps(step)
    def counting(batch):
        calls.append(1)
        return step(batch)

    model.train_step = counting
    model.make_train_function(force=True)
    monitor = NumericsMonitor()
    with warns("gradients"):
        fit(model, data, monitor)
    assert model.train_step is counting
    assert len(calls) == 5
    assert np.isfinite(model.get_weights()[0]).all()
