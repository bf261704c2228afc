"""NumericsMonitor under a plain optimizer: what it finds, and how training goes on."""

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.callbacks import training
from tests.callbacks.training import compiled, fit
from tests.support import modes
from tests.support.oracle import assert_close
from tests.support.warned import ours
from tfsafe.callbacks import NumericsMonitor
from tfsafe.optimizers import SafeOptimizer

MODES = [pytest.param(each, id=name) for name, each in training.MODES.items()]
XLA_IS_SLOW = [
    *MODES[:2],
    pytest.param(*MODES[2].values, id="xla", marks=pytest.mark.slow),
]


@pytest.fixture
def data():
    return training.data_with_a_bad_batch()


def layers():
    return keras.layers.BatchNormalization(), keras.layers.Dropout(0.2, seed=1)


def weights(model):
    return [np.array(each) for each in [*model.variables, *model.optimizer.variables]]


def assert_same(one, other):
    # XLA may fuse the step with its checks in another way on a GPU.
    assert_close(weights(one), weights(other), 4 if modes.HAS_GPU else 0)


@pytest.mark.parametrize("options", MODES)
def test_a_finding_is_raised_and_leaves_the_model_as_before_the_step(data, options):
    model = compiled("adam", *layers(), **options)
    with pytest.raises(tfsafe.NumericsError, match="NaN in argument `x`") as caught:
        fit(model, data, NumericsMonitor())
    assert (caught.value.findings[0].row, caught.value.findings[0].index) == (1, (1, 0))
    twin = compiled("adam", *layers(), **options)
    x, y = data
    good = training.BAD_BATCH * training.BATCH
    fit(twin, (x[:good], y[:good]))
    assert_same(model, twin)


@pytest.mark.filterwarnings("ignore:Your input ran out of data")
@pytest.mark.parametrize("kind", ["asserted", "fixed", "open"])
def test_an_epoch_of_unknown_length_has_the_mean_of_its_batches(kind):
    """Where the size of a batch is fixed, compiled Keras counts one batch more."""
    batches = training.clean_data()
    data = tf.data.Dataset.from_tensor_slices(batches)
    data = data.batch(training.BATCH, drop_remainder=kind != "open")
    data = data.filter(lambda x, y: True)
    if kind == "asserted":
        data = data.apply(tf.data.experimental.assert_cardinality(5))
    losses = [
        compiled("sgd", **options)
        .fit(data, verbose=0, shuffle=False, callbacks=list(callbacks))
        .history["loss"][0]
        for options, *callbacks in [
            (training.MODES["eager"],),
            (training.MODES["graph"], NumericsMonitor()),
            (training.MODES["graph"],),
        ]
    ]
    eager, checked, plain = losses
    assert_close(checked, eager, dtype="float32")
    shown = 5 / 6 if kind == "fixed" else 1
    assert_close(plain, shown * eager, dtype="float32")


@pytest.mark.parametrize("options", XLA_IS_SLOW)
def test_a_step_that_is_only_warned_of_is_as_if_it_had_not_been(data, options):
    model, twin = (compiled("adam", *layers(), **options) for _ in range(2))
    monitor = NumericsMonitor(policy="skip")
    with pytest.warns(RuntimeWarning, match="NaN in argument `x`") as caught:
        history = fit(model, data, monitor, epochs=2)
    plain = fit(twin, training.data_without_the_bad_batch(), epochs=2)
    assert_same(model, twin)
    assert history["loss"] == plain["loss"]
    assert history["nonfinite_steps"] == [1, 2]
    assert monitor.nonfinite_steps == 2
    assert monitor.nonfinite_fractions == {}
    # Once for a place, at the line of `model.fit`.
    (warning,) = ours(caught)
    assert "The step is skipped, and training goes on." in str(warning.message)
    assert warning.filename == training.__file__


def test_a_training_may_end_at_the_first_finding(data):
    model, twin = compiled(steps_per_execution=5), compiled()
    with training.warns("The step is skipped, and training ends here."):
        history = fit(model, data, NumericsMonitor(policy="stop"), epochs=3)
    x, y = data
    good = training.BAD_BATCH * training.BATCH
    assert history["loss"] == fit(twin, (x[:good], y[:good]))["loss"]
    assert_same(model, twin)


def test_an_epoch_of_which_nothing_is_left_shows_nan(data):
    x, y = data
    logs = training.Script()
    with training.warns("NaN in argument"):
        history = fit(
            compiled(metrics=["mae"]),
            (np.full_like(x, np.nan), y),
            NumericsMonitor(policy="skip"),
            logs,
        )
    assert np.isnan(history["loss"]).all()
    assert np.isnan(history["mae"]).all()
    assert all(np.isnan(batch["loss"]) for batch in logs.batches)
    assert history["nonfinite_steps"] == [5]


@pytest.mark.parametrize("checks", ["domain", "full"])
def test_every_level_finds_it(data, checks):
    with pytest.raises(tfsafe.NumericsError, match="NaN in argument `x`"):
        fit(compiled(jit_compile=False), data, NumericsMonitor(checks=checks))


def test_the_validation_is_checked(data):
    good = training.clean_data()
    with pytest.raises(tfsafe.NumericsError, match="NaN in argument `x`"):
        fit(compiled(), good, NumericsMonitor(), validation_data=data)


def test_a_validation_that_is_warned_of_shows_its_nan(data):
    good = training.clean_data()
    monitor = NumericsMonitor(policy="skip")
    with training.warns("Its numbers are shown unchanged"):
        history = fit(compiled(), good, monitor, epochs=2, validation_data=data)
    assert np.isnan(history["val_loss"]).all()
    assert np.isfinite(history["loss"]).all()
    assert history["nonfinite_steps"] == [0, 0]


def test_evaluate_and_predict_are_checked_where_they_are_given_the_callback(data):
    x, y = data
    model, monitor = compiled(), NumericsMonitor()
    with pytest.raises(tfsafe.NumericsError, match="reach: the loss"):
        model.evaluate(x, y, verbose=0, callbacks=[monitor])
    with pytest.raises(tfsafe.NumericsError, match="output"):
        model.predict(x, verbose=0, callbacks=[monitor])
    assert np.isnan(model.evaluate(x, y, verbose=0))
    assert np.isnan(model.predict(x, verbose=0)).any()
    clean = training.clean_data()[0]
    assert np.isfinite(model.predict(clean, verbose=0, callbacks=[monitor])).all()


class Interrupt(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        raise KeyboardInterrupt


@pytest.mark.parametrize("end", ["raise", "interrupt", "end", "compile"])
def test_the_next_training_is_not_checked(data, end):
    model, monitor = compiled(), NumericsMonitor()
    if end == "raise":
        with pytest.raises(tfsafe.NumericsError):
            fit(model, data, monitor)
    elif end == "end":
        fit(model, training.clean_data(), monitor)
    else:
        with pytest.raises(KeyboardInterrupt):
            fit(model, data, monitor, Interrupt())
    if end == "compile":
        model.compile("sgd", "mae")
    assert np.isnan(fit(model, data)["loss"]).all()
    assert np.isnan(model.train_on_batch(*data))


def test_a_second_training_uses_the_trace_of_the_first():
    traces = []

    class Spy(keras.layers.Layer):
        def call(self, x):
            traces.append(x)
            return x

    model, monitor = compiled("sgd", Spy(), jit_compile=False), NumericsMonitor()
    fit(model, training.clean_data(), monitor)
    count = len(traces)
    fit(model, training.clean_data(), monitor)
    assert len(traces) == count


class TraceAgain(keras.callbacks.Callback):
    """Asks for another trace, as one does to train more layers."""

    def on_train_batch_end(self, batch, logs=None):
        if batch == 0:
            self.model.make_train_function(force=True)


def test_the_checks_stay_where_the_step_is_traced_again_in_between(data):
    with pytest.raises(tfsafe.NumericsError):
        fit(compiled(jit_compile=False), data, NumericsMonitor(), TraceAgain())


def test_a_checked_model_stays_checked_after_the_monitor(data):
    model = tfsafe.checked(compiled(jit_compile=False))
    fit(model, training.clean_data(), NumericsMonitor())
    with pytest.raises(tfsafe.NumericsError):
        fit(model, data)


class OwnLogs(keras.Model):
    """A model whose steps return what they like."""

    def __init__(self):
        super().__init__()
        self.head = keras.layers.Dense(1)

    def call(self, x):
        return self.head(x)

    def train_step(self, data):
        return {"answer": super().train_step(data)["loss"] * 0.0 + 42.0}


def test_logs_of_the_models_own_are_those_of_the_last_finite_step(data):
    keras.utils.set_random_seed(0)
    model = OwnLogs()
    model.compile("sgd", "mse", jit_compile=False)
    logs = training.Script()
    with training.warns("NaN in argument `x`"):
        fit(model, data, NumericsMonitor(policy="skip"), logs)
    assert [float(batch["answer"]) for batch in logs.batches] == [42.0] * 5


def test_overflow_that_the_loss_scaling_skips_is_no_finding():
    optimizer = keras.optimizers.LossScaleOptimizer(
        keras.optimizers.SGD(0.1), initial_scale=1e38
    )
    model = compiled(optimizer, jit_compile=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        fit(model, training.clean_data(), NumericsMonitor())
    assert float(optimizer.dynamic_scale.numpy()) < 1e38


def test_tensorboard_gets_the_count_of_steps_skipped(data, tmp_path):
    monitor = NumericsMonitor(policy="skip", log_dir=tmp_path)
    with training.warns("NaN in argument"):
        fit(compiled(jit_compile=False), data, monitor)
    (path,) = tmp_path.iterdir()
    events = [
        tf.compat.v1.Event.FromString(each.numpy())
        for each in tf.data.TFRecordDataset(str(path))
    ]
    values = [value for event in events for value in event.summary.value]
    counts = [v for v in values if v.tag == "nonfinite_steps"]
    assert [tf.make_ndarray(each.tensor) for each in counts] == [1]


def test_a_model_with_a_training_function_of_its_own_is_refused(data):
    class Own(keras.Sequential):
        def make_train_function(self, force=False):
            return super().make_train_function(force)

    model = Own([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match="`make_train_function`, which this model"):
        fit(model, data, NumericsMonitor())


def test_the_checks_are_one_of_the_levels():
    with pytest.raises(ValueError, match=r"`checks` must be.*Received: checks='all'"):
        NumericsMonitor(checks="all")


def test_a_finding_leads_to_one_of_three():
    with pytest.raises(ValueError, match="`policy` must be one of 'raise', 'skip'"):
        NumericsMonitor(policy="ignore")


@pytest.mark.parametrize("policy", ["raise", "stop"])
def test_with_a_safe_optimizer_a_policy_ends_at_the_first_nonfinite_step(data, policy):
    model, plain = compiled(SafeOptimizer("sgd")), compiled("sgd")
    monitor = NumericsMonitor(policy=policy)
    x, y = data
    good = training.BAD_BATCH * training.BATCH
    if policy == "raise":
        with pytest.raises(tfsafe.NumericsError, match="NaN in argument `x`"):
            fit(model, data, monitor)
    else:
        with training.warns("Training ends here|training ends here"):
            history = fit(model, data, monitor, epochs=3)
        assert history["nonfinite_steps"] == [1]
    fit(plain, (x[:good], y[:good]))
    for one, other in zip(model.weights, plain.weights, strict=True):
        np.testing.assert_array_equal(one, other)


def with_a_nonfinite_gradient():
    """Returns a model whose loss is finite at 0 and its gradient is not."""
    model = keras.Sequential([
        keras.Input([1]),
        keras.layers.Dense(1, kernel_initializer="zeros"),
    ])
    model.compile(
        SafeOptimizer("sgd"), lambda y, p: tf.sqrt(tf.abs(p)), jit_compile=False
    )
    return model


def test_with_a_safe_optimizer_a_gradient_alone_raises():
    ones = np.ones([4, 1])
    with pytest.raises(tfsafe.NumericsError, match="the gradients of"):
        fit(with_a_nonfinite_gradient(), (ones, ones), NumericsMonitor(policy="raise"))
    with training.warns("Step 1: the gradients of"):
        history = fit(with_a_nonfinite_gradient(), (ones, ones), NumericsMonitor())
    assert history["nonfinite_steps"] == [1]


def test_operations_to_exclude_are_named_by_rules():
    monitor = NumericsMonitor(checks="full", exclude=["op:*"])
    assert monitor.exclude == ("op:*",)
    with pytest.raises(ValueError, match="rule"):
        NumericsMonitor(exclude=["nonsense"])


def log_loss(y, p):
    return tf.math.log(y)


@pytest.mark.parametrize("options", XLA_IS_SLOW)
@pytest.mark.parametrize("checks", ["watch", "domain", "full"])
def test_exclude_suppresses_a_finding(options, checks):
    data = np.ones((4, 3), "float32"), np.zeros((4, 1), "float32")

    def monitored(**arguments):
        model = compiled("sgd", metrics=[log_loss], **options)
        return fit(model, data, NumericsMonitor(checks=checks, **arguments))

    with pytest.raises(tfsafe.NumericsError) as caught:
        monitored()
    assert caught.value.findings[0].op_type == "Log"
    history = monitored(exclude=["op:Log"])
    assert np.isfinite(history["loss"]).all()
    assert history["log_loss"] == [-np.inf]
    assert history["nonfinite_steps"] == [0]


@pytest.mark.parametrize("options", XLA_IS_SLOW)
def test_the_update_of_the_inner_optimizer_is_checked_as_well(options):
    # Finite gradients, of which the step itself makes infinite weights.
    optimizer = SafeOptimizer(keras.optimizers.SGD(3e38))
    model = compiled(optimizer, **options)
    before = model.get_weights()
    with pytest.raises(tfsafe.NumericsError):
        fit(model, training.clean_data(), NumericsMonitor(policy="raise"))
    assert optimizer.nonfinite_steps == 0
    for left, right in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(left, right)


def test_a_training_of_several_workers_runs_unchecked():
    class Workers:
        num_replicas_in_sync = 2

    model = keras.Sequential([keras.Input([2]), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model._distribute_strategy = Workers()
    monitor, logs = NumericsMonitor(), {}
    monitor.set_model(model)
    with pytest.warns(RuntimeWarning, match="under Workers with 2 .* not checked"):
        monitor.on_train_begin()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        monitor.on_epoch_begin(0)
        monitor.on_test_begin()
        monitor.on_test_end()
        monitor.on_epoch_end(0, logs)
        monitor.on_train_end()
    assert logs == {"nonfinite_steps": 0}
    assert model.train_function is None
