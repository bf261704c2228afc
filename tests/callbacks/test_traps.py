"""Known traps of whole trainings: plain Keras fails where ours holds.

The identifiers are those of the catalogue of measured traps. T01 to T03 are in
`test_terminate.py`, T08 in `test_checkpoint.py`, T13 there and in `test_plateau.py`,
and T10 is in the catalogue of the layers. T04 and T11 are right in Keras already. T12,
that processors and kernels flush subnormal numbers to 0, is not for a library to mend.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.callbacks import training
from tests.callbacks.training import compiled, fit, warns
from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe import callbacks, debugging, errors, losses, ops, optimizers

# -- T05: assertions that compile to nothing -------------------------------------------


def log_of(x):
    return tf.math.log(x)


def test_t05_a_nonfinite_value_is_raised_in_every_mode(mode):
    checked = debugging.checked(modes.compile_for(mode, log_of))
    assert float(checked(tf.constant(1.0))) == 0
    with pytest.raises(errors.NumericsError, match=r"(?s)`Log`.*return tf\.math\.log"):
        checked(tf.constant(0.0))


@pytest.mark.parametrize(
    "assertion",
    [
        lambda x: tf.debugging.check_numerics(x, "bad"),
        lambda x: tf.debugging.assert_all_finite(x, "bad"),
    ],
)
def test_t05_tensorflows_own_compile_to_nothing(assertion):
    def run(x):
        return assertion(tf.math.log(x))

    zero = tf.constant(0.0)
    with pytest.raises(tf.errors.InvalidArgumentError):
        modes.compile_for("graph", run)(zero)
    assert np.isneginf(modes.compile_for("xla", run)(zero))


# -- T06: a gradient that depends on the mode ------------------------------------------

WAYS = {
    "eager": {"run_eagerly": True},
    "graph": {"jit_compile": False},
    "xla": {"jit_compile": True},
}


def trained_on_a_masked_root(sqrt, way) -> float:
    """Returns the weight after a step whose second root, of 0, is masked."""
    model = keras.Sequential([
        keras.Input((1,)),
        keras.layers.Dense(1, use_bias=False, kernel_initializer="ones"),
    ])
    mask = tf.constant([[1.0], [0.0]])
    model.compile(
        keras.optimizers.SGD(0.01), lambda y, p: tf.reduce_mean(mask * sqrt(p)), **way
    )
    x = np.array([[1.0], [0.0]])
    model.fit(x, np.zeros((2, 1)), shuffle=False, verbose=0)
    return float(model.get_weights()[0][0, 0])


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_t06_a_masked_root_has_the_same_gradient_in_every_mode(way):
    # The mean over two has the slope 1/4.
    found = trained_on_a_masked_root(ops.sqrt, way)
    assert_close(found, 1 - 0.01 / 4, dtype="float32")


def test_t06_the_usual_root_makes_nan_under_xla():
    assert np.isnan(trained_on_a_masked_root(tf.sqrt, WAYS["xla"]))
    assert np.isfinite(trained_on_a_masked_root(tf.sqrt, WAYS["graph"]))


# -- T07: a loss whose gradient vanishes where the answer is wrong ---------------------


def moved_bias(loss, policy) -> float:
    """Returns the step of a bias for one sample that is wrong with confidence."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        # The reshaping hides from Keras that the output is a sigmoid's.
        model = keras.Sequential([
            keras.Input((1,)),
            keras.layers.Dense(1, "sigmoid", kernel_initializer="ones"),
            keras.layers.Reshape((1,)),
        ])
        sgd = keras.optimizers.SGD(0.01)
        model.compile(sgd, loss, jit_compile=False)
        model.fit(np.array([[-20.0]]), np.ones((1, 1)), verbose=0)
    finally:
        keras.config.set_dtype_policy(before)
    return float(model.get_weights()[1][0])


def test_t07_a_wrong_answer_is_learnt_from():
    # The sigmoid is 2e-9: rounded, but not to 0.
    found = moved_bias(losses.BinaryCrossentropy(), "float32")
    assert_close(found, 0.01, dtype="float32")


def test_t07_plain_keras_does_not_learn_from_it():
    assert moved_bias("binary_crossentropy", "float32") == 0


# -- T09: one bad sample ---------------------------------------------------------------


@pytest.mark.parametrize("policy", ["replace", "skip"])
@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_t09_one_nonfinite_sample_costs_one_step(name, policy):
    model = compiled(optimizers.SafeOptimizer(name, policy))
    data = training.data_with_a_bad_batch()
    with warns("Step 3: the gradients of"):
        history = fit(model, data, callbacks.NumericsMonitor(), epochs=2)
    assert training.is_finite(model)
    assert np.isfinite(history["loss"]).all()
    assert history["nonfinite_steps"] == [1, 2]


@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_t09_it_costs_plain_keras_the_model(name):
    model = compiled(name)
    history = fit(model, training.data_with_a_bad_batch(), epochs=2)
    assert not training.is_finite(model)
    assert np.isnan(history["loss"]).all()


# -- T14: a custom loop in float16 -----------------------------------------------------


def step_in_a_custom_loop(optimizer) -> float:
    """Returns a step for a true gradient of 1e-9, in mixed precision."""
    layer = keras.layers.Dense(1, use_bias=False, dtype="mixed_float16")
    layer.build((1, 1))
    optimizer.build([layer.kernel])
    with tf.GradientTape() as tape:
        output = tf.cast(layer(tf.ones((1, 1))), tf.float32)
        loss = optimizer.scale_loss(1e-9 * tf.reduce_sum(output))
    before = float(layer.kernel.numpy()[0, 0])
    optimizer.apply(tape.gradient(loss, [layer.kernel]), [layer.kernel])
    return before - float(layer.kernel.numpy()[0, 0])


def test_t14_a_custom_loop_keeps_gradients_that_underflow_in_float16():
    # A rate of 1e9 makes a step of 1 of it.
    guard = optimizers.SafeOptimizer(keras.optimizers.SGD(1e9))
    scaled = optimizers.LossScaleOptimizer(guard)
    assert_close(step_in_a_custom_loop(scaled), 1, dtype="float16")


def test_t14_without_a_loss_scale_they_are_lost():
    assert step_in_a_custom_loop(keras.optimizers.SGD(1e9)) == 0
