"""Going back to the last good state."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.callbacks import training
from tests.callbacks.training import BreakWeights, Script, eager, fit, warns
from tests.support.oracle import assert_close
from tfsafe.callbacks import NumericsMonitor, RollbackOnNonFinite
from tfsafe.optimizers import SafeOptimizer

BACK = "goes back to its last good state"


def rate(model):
    return float(model.optimizer.learning_rate.numpy())


@pytest.mark.parametrize("options", training.MODES.values(), ids=training.MODES)
def test_with_a_state_after_each_batch_a_nonfinite_one_leaves_no_trace(options):
    def make():
        norm = keras.layers.BatchNormalization()
        return eager("adam", norm, keras.layers.Dropout(0.5, seed=3), **options)

    model, never = make(), make()
    rollback = RollbackOnNonFinite(save_freq=1)
    with warns(f"Batch 2: .*gamma.*hold NaN or infinity. The training {BACK}"):
        history = fit(model, training.data_with_a_bad_batch(), rollback, epochs=2)
    fit(never, training.data_without_the_bad_batch(), epochs=2)
    pairs = zip(
        [*model.variables, *model.optimizer.variables],
        [*never.variables, *never.optimizer.variables],
        strict=True,
    )
    for ours, theirs in pairs:
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    assert history["rollbacks"] == [1, 2]


def test_plain_keras_is_broken_after_the_same_run():
    model = eager("adam")
    fit(model, training.data_with_a_bad_batch(), epochs=2)
    assert not training.is_finite(model)


@pytest.mark.parametrize("steps", [1, 5])
def test_by_default_it_goes_back_to_the_start_of_the_epoch(steps):
    x, y = training.data_with_a_bad_batch()
    model = eager("adam", steps_per_execution=steps, run_eagerly=False)
    with warns(BACK):
        history = fit(model, (x, y), RollbackOnNonFinite(), epochs=3)
    # Two batches behind the bad one are left, or none.
    assert model.optimizer.iterations.numpy() == {1: 6, 5: 0}[steps]
    assert history["rollbacks"] == [1, 2, 3]
    # Where none is left, there is no loss of the epoch.
    assert np.isfinite(history["loss"]).all() == (steps == 1)


def test_the_metrics_of_the_epoch_restart_behind_the_nonfinite_batch():
    logs = Script()
    model = eager("sgd", metrics=["mae"])
    rollback = RollbackOnNonFinite()
    with warns(BACK):
        history = fit(model, training.data_with_a_bad_batch(), rollback, logs)
    assert np.isnan(logs.batches[2]["mae"])
    assert np.isfinite(history["mae"]).all()
    assert [b["rollbacks"] for b in logs.batches] == [0, 0, 1, 1, 1]


def test_the_learning_rate_falls_each_time():
    model = eager(keras.optimizers.Adam(0.08))
    rollback = RollbackOnNonFinite(lower_learning_rate=0.5)
    with warns(BACK):
        fit(model, training.data_with_a_bad_batch(), rollback, epochs=3)
    assert_close(rate(model), 0.01, dtype="float32")


@pytest.mark.parametrize(
    "wrap",
    [
        SafeOptimizer,
        lambda o: keras.optimizers.LossScaleOptimizer(o, initial_scale=1.0),
    ],
    ids=["safe", "loss-scale"],
)
def test_the_learning_rate_falls_under_a_wrapper(wrap):
    model = eager(wrap(keras.optimizers.Adam(0.08)))
    rollback = RollbackOnNonFinite(lower_learning_rate=0.5)
    with warns(f"Batch 4: .*{BACK}"):
        fit(model, training.clean_data(), rollback, BreakBatch(4), epochs=1)
    assert_close(rate(model), 0.04, dtype="float32")


@pytest.mark.skipif(
    not hasattr(keras.optimizers, "MultiOptimizer"), reason="this Keras has none"
)
def test_the_learning_rate_of_each_of_several_optimizers_falls():
    parts = [keras.optimizers.SGD(0.1), keras.optimizers.Adam(0.2)]
    optimizer = keras.optimizers.MultiOptimizer(
        lambda variable: parts["kernel" in variable.path]
    )
    model = eager(optimizer)
    rollback = RollbackOnNonFinite(lower_learning_rate=0.5, save_freq=1)
    with warns(BACK):
        fit(model, training.data_with_a_bad_batch(), rollback)
    rates = [float(part.learning_rate.numpy()) for part in parts]
    assert_close(rates, [0.05, 0.1], dtype="float32")
    assert [int(part.iterations.numpy()) for part in parts] == [4, 4]
    assert training.is_finite(model)


class BreakBatch(keras.callbacks.Callback):
    """Writes NaN into a weight in a batch, before the callbacks look."""

    def __init__(self, batch):
        super().__init__()
        self.batch = batch

    def on_train_batch_begin(self, batch, logs=None):
        if batch == self.batch:
            weight = self.model.weights[-1]
            weight.assign(weight + np.nan)


def test_a_schedule_has_no_rate_to_lower():
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.9)
    model = eager(keras.optimizers.SGD(schedule))
    with pytest.raises(ValueError, match=r"`lower_learning_rate` .* a schedule"):
        fit(model, training.clean_data(), RollbackOnNonFinite(0.5))
    fit(model, training.clean_data(), RollbackOnNonFinite())


def test_what_a_safe_optimizer_dealt_with_is_no_reason_to_go_back():
    model = eager(SafeOptimizer("adam", "skip"))
    history = fit(model, training.data_with_a_bad_batch(), RollbackOnNonFinite())
    assert history["rollbacks"] == [0]


def test_nonfinite_steps_in_a_row_are_a_reason_and_stay_counted():
    x, y = training.clean_data()
    x[8:] = np.nan
    # In eager execution the optimizer raises by itself.
    optimizer = SafeOptimizer("adam", max_consecutive=2)
    model = eager(optimizer, run_eagerly=False)
    monitor = NumericsMonitor()
    with warns("Step 3: the gradients"), warns("the last 2 steps were all non-finite"):
        history = fit(model, (x, y), RollbackOnNonFinite(), monitor)
    assert history["rollbacks"] == [1]
    assert history["nonfinite_steps"] == [3]
    assert model.optimizer.last_nonfinite_step == 5
    assert len(model.optimizer.last_nonfinite_variables) == 2
    # Back at the start of the epoch; of the step after it nothing was left.
    assert model.optimizer.iterations.numpy() == 0


def test_too_many_rollbacks_raise_with_a_suggestion():
    x, y = training.clean_data()
    x[:] = np.nan
    model = eager("sgd")
    raised = pytest.raises(
        tfsafe.NumericsError, match=r"2 times and broke again.*max_rollbacks=2"
    )
    with warns(BACK), raised:
        fit(model, (x, y), RollbackOnNonFinite(max_rollbacks=2))
    # Whoever catches the error has the last good state.
    assert training.is_finite(model)


def test_without_a_bound_it_goes_on():
    x, y = training.clean_data()
    x[:] = np.nan
    with warns(BACK):
        rollback = RollbackOnNonFinite(max_rollbacks=None)
        history = fit(eager("sgd"), (x, y), rollback, epochs=3)
    assert history["rollbacks"] == [5, 10, 15]


def test_a_training_that_is_broken_from_the_start_is_refused():
    model = eager("sgd")
    model.set_weights([w * np.nan for w in model.get_weights()])
    with pytest.raises(
        tfsafe.NumericsError, match=r"cannot start.*head.*NaN or infinity"
    ):
        fit(model, training.clean_data(), RollbackOnNonFinite())


def test_weights_that_break_between_epochs_are_not_kept():
    model = eager("sgd")
    with warns(f"Epoch 3: .*head/kernel.*{BACK}"):
        history = fit(
            model,
            training.clean_data(),
            BreakBetweenEpochs(1),
            RollbackOnNonFinite(),
            epochs=3,
        )
    assert training.is_finite(model)
    assert history["rollbacks"] == [0, 0, 1]


class BreakBetweenEpochs(BreakWeights):
    def on_epoch_begin(self, epoch, logs=None):
        """Leaves them broken."""


def test_a_model_that_is_not_built_is_refused():
    model = keras.Sequential([keras.layers.Dense(1)], name="late")
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match=r"Received: model 'late'.*Call it on a"):
        fit(model, training.clean_data(), RollbackOnNonFinite())


def test_states_of_a_recurrent_layer_go_back_too():
    keras.utils.set_random_seed(0)
    inputs = keras.Input(batch_shape=(training.BATCH, 1, 3))
    rnn = keras.layers.GRU(2, stateful=True)
    model = keras.Model(inputs, keras.layers.Dense(1)(rnn(inputs)))
    model.compile("adam", "mse", run_eagerly=True)
    x, y = training.data_with_a_bad_batch()
    with warns(BACK):
        fit(model, (x[:, None], y), RollbackOnNonFinite(save_freq=1))
    assert np.isfinite(tf.nest.flatten(rnn.states)[0].numpy()).all()


@pytest.mark.parametrize("value", [0.0, 1.0, -0.5, float("nan"), "half", True])
def test_the_factor_lies_between_0_and_1(value):
    with pytest.raises(ValueError, match=f"`lower_learning_rate` must be.*{value!r}"):
        RollbackOnNonFinite(lower_learning_rate=value)


@pytest.mark.parametrize("value", [0, -1, 1.5, "often", True])
@pytest.mark.parametrize("name", ["max_rollbacks", "save_freq"])
def test_counts_are_positive_integers(name, value):
    with pytest.raises(ValueError, match=f"`{name}` must be a pos.*{name}={value!r}"):
        RollbackOnNonFinite(**{name: value})
