"""An overflow that a division turns into 0 is found where every operation is seen."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe.debugging.state import deferred_writes

PIXELS = np.full([2, 64], 200.0, "float16")


def unit(t):
    return t / tf.sqrt(tf.reduce_sum(t * t, -1, keepdims=True))


def unit_by_rsqrt(t):
    return t * tf.math.rsqrt(tf.reduce_sum(tf.square(t / 8), -1, keepdims=True))


def sigmoid(x):
    return 1 / (1 + tf.exp(-x))


def masked(x):
    scores = tf.where([True, False], x, -np.inf)
    return tf.exp(scores) / tf.reduce_sum(tf.exp(scores))


@pytest.mark.parametrize("checks", ["domain", "full"])
def test_an_overflow_behind_a_division_is_found(mode, checks):
    function = tfsafe.checked(modes.compile_for(mode, unit), checks=checks)
    with pytest.raises(tfsafe.NumericsError) as caught:
        function(tf.constant(PIXELS))
    finding = caught.value.findings[0]
    # The first product that is too large: 200 * 200 fits, their sum does not.
    assert finding.op_type == "Sum"
    assert finding.kind == "+Inf"
    assert "`RealDiv` at test_absorbed.py" in finding.cause
    assert "turns it into 0" in finding.cause
    ours = tfsafe.ops.l2_normalize(tf.constant(PIXELS), axis=-1)
    assert_close(ours, np.full([2, 64], 0.125), 0.5)


def test_a_reciprocal_root_of_an_overflow_is_found(mode):
    function = tfsafe.checked(modes.compile_for(mode, unit_by_rsqrt), checks="full")
    with pytest.raises(tfsafe.NumericsError, match="`Rsqrt`"):
        function(tf.constant(PIXELS * 5))


@pytest.mark.parametrize("checks", ["watch", "domain", "full"])
def test_an_infinity_whose_quotient_is_0_is_no_finding(mode, checks):
    for function, x in ((sigmoid, [-200.0, 1.0]), (masked, [1.0, 2.0])):
        checked = tfsafe.checked(modes.compile_for(mode, function), checks=checks)
        expected = function(tf.constant(x))
        for _ in range(3):
            assert_close(checked(tf.constant(x)), expected)


def test_results_of_a_watched_function_are_left_alone(mode):
    function = tfsafe.checked(modes.compile_for(mode, unit))
    np.testing.assert_array_equal(function(tf.constant(PIXELS)), 0)


def test_a_step_with_an_absorbed_overflow_is_undone():
    inputs = keras.Input([64], dtype="float16")
    outputs = keras.layers.Dense(1)(keras.layers.Lambda(unit, dtype="float16")(inputs))
    model = keras.Model(inputs, outputs)
    model.compile("sgd", "mse")
    before = [np.array(each) for each in model.get_weights()]
    tfsafe.checked(model, checks="full")
    with pytest.raises(tfsafe.NumericsError, match="turns it into 0"):
        model.fit(PIXELS, np.ones([2, 1]), verbose=0)
    for one, other in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("is_divisor", [False, True])
def test_a_moving_mean_that_overflows_is_found(is_divisor, compiled, monkeypatch):
    shapes = []

    def summed(tensor):
        shapes.append(tuple(tensor.shape))
        return tf.reduce_sum(tensor)

    monkeypatch.setattr(deferred_writes, "summed", summed)
    mean, weight = tf.Variable(tf.fill([4], 3e38)), tf.Variable(tf.ones([4]))

    @tfsafe.checked
    @tf.function(jit_compile=compiled)
    def step(gradient):
        mean.assign(0.9 * mean + gradient)
        weight.assign_sub(1.0 / mean if is_divisor else 1e-3 * mean)
        return tf.reduce_min(gradient)

    with pytest.raises(tfsafe.NumericsError):
        step(tf.fill([4], 3e38))
    np.testing.assert_array_equal(mean, np.full(4, 3e38, "float32"))
    np.testing.assert_array_equal(weight, np.ones(4))
    # The weight shows that the mean is not finite, unless it divides: 1 / inf is 0.
    assert shapes.count((4,)) == (2 if is_divisor else 1)
