"""NumericsMonitor where several steps are one call: one loop, the same findings."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.callbacks import training
from tests.callbacks.training import BATCH, fit
from tests.support.oracle import assert_close
from tfsafe.callbacks import NumericsMonitor
from tfsafe.debugging.checks.traced.compiled import CompiledCheck
from tfsafe.debugging.explain.training.history import LastSteps
from tfsafe.debugging.models.execution import Execution

pytestmark = pytest.mark.skipif(
    not hasattr(keras.layers, "RMSNormalization"),
    reason="Keras 3.3 fails where the data ends within an execution",
)
COMPILED = [
    pytest.param(training.MODES["graph"], id="graph"),
    pytest.param(training.MODES["xla"], id="xla", marks=pytest.mark.slow),
]


def compiled(steps=8, **options):
    layers = keras.layers.BatchNormalization(), keras.layers.Dropout(0.2, seed=1)
    return training.compiled("adam", *layers, steps_per_execution=steps, **options)


def data(*bad, batches=8):
    x = np.random.default_rng(0).normal(size=(batches * BATCH, 3)).astype("float32")
    y = x.sum(-1, keepdims=True)
    for batch in bad:
        x[batch * BATCH + 1, 0] = np.nan
    return x, y


def without(batches, pair):
    kept = ~np.isin(np.arange(len(pair[0])) // BATCH, batches)
    return pair[0][kept], pair[1][kept]


def assert_same(one, other):
    for left, right in zip(one.variables, other.variables, strict=True):
        np.testing.assert_array_equal(left, right)
    pairs = zip(one.optimizer.variables, other.optimizer.variables, strict=True)
    for left, right in pairs:
        np.testing.assert_array_equal(left, right)


@pytest.fixture
def calls(monkeypatch):
    """Counts the calls of the loop, and of single checked steps."""
    counts = {"loop": 0, "step": 0}

    def counted(name, original):
        def call(*args, **kwargs):
            counts[name] += 1
            return original(*args, **kwargs)

        return call

    monkeypatch.setattr(Execution, "take", counted("loop", Execution.take))
    one = counted("step", CompiledCheck.__call__)
    monkeypatch.setattr(CompiledCheck, "__call__", one)
    return counts


def test_steps_of_an_execution_are_one_call(calls):
    model, same = compiled(steps=3, jit_compile=False), compiled(steps=3)
    # Of 8 batches: 3, 3 and 2.
    ours = fit(model, data(), NumericsMonitor(), epochs=2)
    assert calls == {"loop": 6, "step": 0}
    plain = fit(same, data(), epochs=2)
    assert model.optimizer.iterations.numpy() == 16
    assert_close(ours["loss"], plain["loss"], dtype="float32")


def test_a_single_step_draws_its_batch_in_the_compiled_call(calls):
    model, same = (compiled(steps=1, jit_compile=False) for _ in range(2))
    ours = fit(model, data(batches=3), NumericsMonitor(), epochs=2)
    assert calls == {"loop": 0, "step": 0}
    plain = fit(same, data(batches=3), epochs=2)
    assert model.optimizer.iterations.numpy() == 6
    assert_close(ours["loss"], plain["loss"], dtype="float32")


@pytest.mark.parametrize("options", COMPILED)
def test_the_third_of_eight_steps_is_named_and_not_committed(options):
    model, same = (compiled(**options) for _ in range(2))
    with pytest.raises(tfsafe.NumericsError, match="NaN in argument `x`") as caught:
        fit(model, data(2), NumericsMonitor())
    error = caught.value
    assert (error.epoch, error.batch, error.step) == (0, 2, 2)
    assert error.findings[0].index == (1, 0)
    good = 2 * BATCH
    fit(same, [each[:good] for each in data()])
    assert_same(model, same)


@pytest.mark.parametrize("options", COMPILED)
def test_bad_steps_of_an_execution_are_skipped_one_by_one(calls, options):
    model, same = (compiled(**options) for _ in range(2))
    # Two in a row, and the last one of the epoch.
    bad = [2, 3, 7]
    monitor = NumericsMonitor(policy="skip")
    with training.warns("NaN in argument `x`"):
        history = fit(model, data(*bad), monitor, epochs=2)
    assert history["nonfinite_steps"] == [3, 6]
    # The loop goes on after each of them.
    assert calls == {"loop": 6, "step": 0}
    plain = fit(same, without(bad, data()), epochs=2)
    assert history["loss"] == plain["loss"]
    assert_same(model, same)


def test_an_execution_without_a_good_step_shows_nan():
    model = compiled(jit_compile=False)
    with training.warns("NaN in argument"):
        history = fit(model, data(*range(8)), NumericsMonitor(policy="skip"))
    assert np.isnan(history["loss"]).all()
    assert history["nonfinite_steps"] == [8]


def test_a_training_that_stops_takes_no_step_after_the_bad_one():
    model, same = (compiled(jit_compile=False) for _ in range(2))
    with training.warns("training ends here"):
        fit(model, data(2), NumericsMonitor(policy="stop"), epochs=3)
    fit(same, [each[: 2 * BATCH] for each in data()])
    assert_same(model, same)


def test_an_error_of_the_data_within_an_execution_keeps_the_steps_before_it():
    x, y = data()
    batches = tf.data.Dataset.from_tensor_slices((x, y)).map(
        lambda x, y: (tf.debugging.check_numerics(x, "broken data"), y)
    )
    broken = tf.data.Dataset.from_tensor_slices((data(5)[0], y)).map(
        lambda x, y: (tf.debugging.check_numerics(x, "broken data"), y)
    )
    model, same = (compiled(jit_compile=False) for _ in range(2))
    monitor = NumericsMonitor()
    with pytest.raises(tf.errors.InvalidArgumentError, match="broken data"):
        model.fit(broken.batch(BATCH), shuffle=False, verbose=0, callbacks=[monitor])
    fit(same, [each[: 5 * BATCH] for each in (x, y)])
    assert_same(model, same)
    model.fit(batches.batch(BATCH), shuffle=False, verbose=0, callbacks=[monitor])
    fit(same, (x, y))
    assert_same(model, same)


def test_two_models_in_turns_have_their_own_findings():
    one, two = (compiled(jit_compile=False) for _ in range(2))
    monitors = [NumericsMonitor(policy="skip") for _ in range(2)]
    for bad in (1, 4):
        with training.warns("NaN in argument"):
            fit(one, data(bad), monitors[0])
        fit(two, data(), monitors[1])
    assert [monitor.nonfinite_steps for monitor in monitors] == [1, 0]
    assert one.optimizer.iterations.numpy() == 14
    assert two.optimizer.iterations.numpy() == 16


def test_an_evaluation_of_several_steps_is_checked(calls):
    model = compiled(jit_compile=False)
    with pytest.raises(tfsafe.NumericsError, match="reach: the loss"):
        model.evaluate(*data(3), BATCH, verbose=0, callbacks=[NumericsMonitor()])
    assert calls["loop"] == 1
    assert calls["step"] == 0


def test_the_losses_of_several_steps_are_their_mean():
    losses = LastSteps()
    # The running means after 2 and 4 steps, and after 2 of the next epoch.
    for mean, steps in [(2.0, 2), (3.0, 4), (5.0, 2)]:
        losses.add({"loss": tf.constant(mean)}, steps)
    assert losses.values() == [2.0, 4.0, 5.0]
