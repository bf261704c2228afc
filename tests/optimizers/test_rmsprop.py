"""RMSprop: Keras' own, without the NaN of the centered form."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.optimizers import harness
from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe.optimizers import RMSprop, SafeOptimizer

RATE = 1e-3
# Constant gradients of every size.
GRADIENTS = np.exp(np.random.default_rng(0).uniform(-20, 30, 500)).astype("float32")


def after_steps(make, count=300, mode="graph", dtype="float32", **arguments):
    """Returns the weights after as many steps of constant gradients, from 0 on."""
    weights = keras.Variable(np.zeros(len(GRADIENTS)), dtype=dtype)
    optimizer = make(learning_rate=RATE, centered=True, **arguments)
    optimizer.build([weights])
    largest = 6e4 if dtype == "float16" else 1e14
    gradients = tf.cast(np.minimum(GRADIENTS, largest), dtype)

    def step(index):
        optimizer.apply([gradients], [weights])
        return index + 1

    def steps():
        tf.while_loop(lambda index: index < count, step, [tf.constant(0)])

    modes.compile_for(mode, steps)()
    return weights.numpy()


@pytest.mark.parametrize("mode", ["graph", "xla"])
@pytest.mark.parametrize("rho", [0.5, 0.9, 0.99])
def test_p06_a_constant_gradient_never_makes_nan(rho, mode):
    weights = after_steps(RMSprop, mode=mode, rho=rho)
    assert np.isfinite(weights).all()
    # They go down, by 520 learning rates a step at most.
    assert ((weights < 0) & (weights > -520 * RATE * 300)).all()


def test_p06_plain_keras_makes_nan_of_a_constant_gradient():
    weights = after_steps(keras.optimizers.RMSprop)
    assert np.isnan(weights).sum() > 10


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_p06_in_other_dtypes_within_a_safe_optimizer(dtype):
    def make(**arguments):
        return SafeOptimizer(RMSprop(**arguments))

    weights = after_steps(make, count=150, dtype=dtype)
    assert np.isfinite(weights.astype("float32")).all()


@pytest.mark.parametrize(
    "arguments",
    [{}, {"centered": True}, {"centered": True, "momentum": 0.9, "weight_decay": 0.1}],
)
def test_gradients_that_scatter_are_stepped_as_in_keras(arguments, mode):
    clean = harness.clean_gradients(20)
    states = [
        harness.Training(make(learning_rate=RATE, **arguments), mode).run(clean)
        for make in (RMSprop, keras.optimizers.RMSprop)
    ]
    why = "XLA computes another way round what is longer"
    assert_close(*states, 16 if mode == "xla" else 0, why=why)


def test_it_survives_in_the_config_and_in_a_file(tmp_path):
    model = harness.small_model(SafeOptimizer(RMSprop(RATE, centered=True), "skip"))
    data = harness.small_data(bad_batches=[2])
    harness.fit(model, *data)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    inner = loaded.optimizer.inner_optimizer
    assert type(inner) is RMSprop
    assert inner.centered
    for each in (model, loaded):
        harness.fit(each, *data)
    assert harness.same_bits(model.get_weights(), loaded.get_weights())
