"""Training with a bad batch in the middle, in every way Keras trains."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.optimizers import harness
from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe import NumericsError
from tfsafe.optimizers import SafeOptimizer

WAYS = {
    "graph": {"jit_compile": False},
    "xla": {"jit_compile": True},
    "eager": {"run_eagerly": True},
    "steps_per_execution": {"steps_per_execution": 2},
}


@pytest.fixture(params=["replace", "skip"])
def policy(request) -> str:
    return request.param


def adam(**arguments) -> keras.optimizers.Adam:
    return keras.optimizers.Adam(0.05, **arguments)


@pytest.mark.parametrize("way", WAYS)
def test_a_nonfinite_batch_does_not_reach_the_weights(policy, way):
    optimizer = SafeOptimizer(adam(), policy)
    model = harness.small_model(optimizer, **WAYS[way])
    harness.fit(model, *harness.small_data(bad_batches=[0, 3]), epochs=2)
    assert harness.all_finite(model.get_weights())
    assert optimizer.steps == 12
    assert optimizer.nonfinite_steps == 4
    assert optimizer.last_nonfinite_step == 10


@pytest.mark.parametrize("way", WAYS)
def test_skipping_a_batch_is_training_without_it(way):
    x, y = harness.small_data(bad_batches=[3, 4], count=8)
    guarded = harness.small_model(SafeOptimizer(adam(), "skip"), **WAYS[way])
    harness.fit(guarded, x, y)
    plain = harness.small_model(adam(), **WAYS[way])
    harness.fit(plain, np.delete(x, range(12, 20), 0), np.delete(y, range(12, 20), 0))
    assert harness.same_bits(guarded.get_weights(), plain.get_weights())


@pytest.mark.parametrize("clipping", [{}, {"global_clipnorm": 1.0}])
def test_plain_keras_ends_with_nan_weights(clipping):
    model = harness.small_model(adam(**clipping))
    harness.fit(model, *harness.small_data(bad_batches=[3]))
    assert not any(np.isfinite(weight).all() for weight in model.get_weights()[:2])


def test_a_nonfinite_micro_batch_is_skipped_in_the_accumulated_gradient():
    x, y = harness.small_data(bad_batches=[1])
    guarded = harness.small_model(
        SafeOptimizer(adam(gradient_accumulation_steps=2), "skip")
    )
    harness.fit(guarded, x, y)
    plain = harness.small_model(adam(gradient_accumulation_steps=2))
    harness.fit(plain, np.delete(x, range(4, 8), 0), np.delete(y, range(4, 8), 0))
    assert harness.same_bits(guarded.get_weights(), plain.get_weights())


def test_the_loss_scale_optimizer_of_mixed_precision_goes_around_it(policy):
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_float16")
    try:
        guard = SafeOptimizer(adam(), policy)
        model = harness.small_model(guard)
        assert isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer)
        assert model.optimizer.inner_optimizer is guard
        harness.fit(model, *harness.small_data(bad_batches=[3]))
    finally:
        keras.config.set_dtype_policy(before.name)
    assert harness.all_finite(model.get_weights())
    # The scale optimizer drops the bad batch, and the first ones if its scale is high.
    assert guard.nonfinite_steps == 0
    assert 0 < guard.steps < 6


def test_it_sees_what_a_loss_scale_optimizer_lets_pass(policy):
    variable = keras.Variable([1.0, 1.0])
    guard = SafeOptimizer(keras.optimizers.SGD(0.5), policy)
    optimizer = keras.optimizers.LossScaleOptimizer(guard, initial_scale=2.0)
    optimizer.build([variable])
    step = modes.compile_for("xla", lambda g: optimizer.apply([g], [variable]))
    step(tf.constant([2.0, 1e20]))
    assert guard.was_nonfinite
    expected = {"replace": [0.5, 1.0], "skip": [1.0, 1.0]}
    assert variable.numpy().tolist() == expected[policy]


def test_a_custom_loop_survives(policy, mode):
    optimizer = SafeOptimizer(keras.optimizers.SGD(0.1), policy)
    weights = tf.Variable([1.0, 1.0])

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.sqrt(x) * weights**2)
        gradients = tape.gradient(loss, [weights])
        optimizer.apply_gradients(zip(gradients, [weights], strict=True))
        return loss

    # Builds the optimizer within the function, as many custom loops do.
    step = modes.compile_for(mode, step)
    for x in ([1.0, 1.0], [1.0, -1.0], [1.0, 1.0]):
        step(tf.constant(x))
    expected = {"replace": [0.8**3, 0.8**2], "skip": [0.8**2, 0.8**2]}[policy]
    assert_close(weights.numpy(), expected)
    assert (optimizer.steps, optimizer.nonfinite_steps) == (3, 1)


def test_fit_in_eager_execution_ends_in_the_error():
    optimizer = SafeOptimizer(adam(), max_consecutive=2)
    model = harness.small_model(optimizer, run_eagerly=True)
    with pytest.raises(NumericsError, match=r"The last 2 steps in a row.*dense"):
        harness.fit(model, *harness.small_data(bad_batches=[2, 3]))
    assert harness.all_finite(model.get_weights())


def test_several_optimizers_under_one_wrapper_survive(policy):
    multi = getattr(keras.optimizers, "MultiOptimizer", None)
    if multi is None:
        pytest.skip("This Keras has no MultiOptimizer.")
    inner = multi(
        keras.optimizers.OptimizerMap(
            adam(), {".*bias": keras.optimizers.SGD(0.1, momentum=0.9)}
        )
    )
    optimizer = SafeOptimizer(inner, policy)
    model = harness.small_model(optimizer)
    harness.fit(model, *harness.small_data(bad_batches=[3]))
    assert harness.all_finite(model.get_weights())
    assert optimizer.nonfinite_steps == 1
    assert optimizer.optimizers == inner.optimizers


def test_every_optimizer_under_one_of_several_survives():
    multi = getattr(keras.optimizers, "MultiOptimizer", None)
    if multi is None:
        pytest.skip("This Keras has no MultiOptimizer.")
    biases = SafeOptimizer(keras.optimizers.SGD(0.1), "skip")
    kernels = SafeOptimizer(adam(), "skip")
    model = harness.small_model(
        multi(keras.optimizers.OptimizerMap(kernels, {".*bias": biases}))
    )
    harness.fit(model, *harness.small_data(bad_batches=[3]))
    assert harness.all_finite(model.get_weights())
    assert biases.nonfinite_steps == kernels.nonfinite_steps == 1
