"""A softplus by hand has the slopes of a softplus where its maximum has a tie."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.rewriting.emitting import fired
from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe import stabilize
from tfsafe.rewriting.rules.table import all_rules

log, log1p, exp, relu = tf.math.log, tf.math.log1p, tf.exp, tf.nn.relu
X, Y = np.array([0.0, 1.5, -2.0, 0.0, 30.0, 0.5]), np.array([1.0, 1.5, 0, 0, 1, -1])
CROSS_ENTROPY = lambda x, y: tf.nn.softplus(x) - x * y  # noqa: E731
TOGETHER = lambda x, y: tf.reduce_logsumexp([x, y], 0)  # noqa: E731
# Each with the same by functions that have no tie.
FORMULAS = {
    "a cross-entropy": (
        lambda x, y: tf.maximum(x, 0) - x * y + log(1 + exp(-tf.abs(x))),
        CROSS_ENTROPY,
    ),
    "a cross-entropy by relu": (
        lambda x, y: relu(x) - x * y + log1p(exp(-tf.abs(x))),
        CROSS_ENTROPY,
    ),
    "a cross-entropy by softplus": (
        lambda x, y: (
            tf.nn.softplus(-tf.abs(x)) + (tf.maximum(tf.zeros_like(x), x) - x * y)
        ),
        CROSS_ENTROPY,
    ),
    "a cross-entropy of the other sign": (
        lambda x, y: (1 - y) * x + log1p(exp(-tf.abs(-x))) + relu(-x),
        CROSS_ENTROPY,
    ),
    "a cross-entropy by Keras": (
        lambda x, y: (
            keras.ops.relu(x)
            - x * y
            + keras.ops.log(1 + keras.ops.exp(-keras.ops.abs(x)))
        ),
        CROSS_ENTROPY,
    ),
    "a mean cross-entropy": (
        lambda x, y: tf.reduce_mean(
            tf.maximum(x, 0) - x * y + log(1 + exp(-tf.abs(x)))
        ),
        lambda x, y: tf.reduce_mean(CROSS_ENTROPY(x, y)),
    ),
    "a likelihood": (
        lambda x, y: x * y - relu(x) - log1p(exp(-tf.abs(x))),
        lambda x, y: -CROSS_ENTROPY(x, y),
    ),
    "the logarithm of a sigmoid": (
        lambda x, y: tf.minimum(x, 0) - log1p(exp(-tf.abs(x))) - y,
        lambda x, y: tf.math.log_sigmoid(x) - y,
    ),
    "half a softplus of twice x": (
        lambda x, y: 0.5 * (relu(2 * x) + log1p(exp(-2 * tf.abs(x)))) - y,
        lambda x, y: 0.5 * tf.nn.softplus(2 * x) - y,
    ),
    "exponentials of two": (
        lambda x, y: tf.maximum(x, y) - x / 4 + log1p(exp(-tf.abs(y - x))),
        lambda x, y: TOGETHER(x, y) - x / 4,
    ),
    "exponentials of the larger and the smaller": (
        lambda x, y: (
            tf.maximum(x, y) + log(1 + exp(tf.minimum(x, y) - tf.maximum(x, y)))
        ),
        TOGETHER,
    ),
}
# Beside such a logarithm another maximum keeps its slopes, and so do other factors.
NEAR_MISSES = {
    "a maximum of another tensor": lambda x, y: relu(y) + log1p(exp(-tf.abs(x))),
    "a maximum with 1": lambda x, y: tf.maximum(x, 1) + log1p(exp(-tf.abs(x))),
    "twice the maximum": lambda x, y: 2 * relu(x) + log1p(exp(-tf.abs(x))),
    "the other sign": lambda x, y: relu(x) - log1p(exp(-tf.abs(x))),
    "a minimum": lambda x, y: tf.minimum(x, 0) + log1p(exp(-tf.abs(x))),
    "a rising exponential": lambda x, y: relu(x) + log1p(exp(tf.abs(x))),
    "a distance of another scale": lambda x, y: relu(x) + log1p(exp(-2 * tf.abs(x))),
    "no distance": lambda x, y: relu(x) + log1p(exp(-x * x)),
    "a pair that is turned": lambda x, y: (
        tf.maximum(x, y) + log1p(exp(tf.minimum(x, y) - tf.maximum(y, x)))
    ),
    "another pair": lambda x, y: tf.maximum(x, y) + log1p(exp(-tf.abs(x - 2 * y))),
}


@pytest.mark.parametrize("mode", modes.MODES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("name", FORMULAS)
def test_slopes_at_a_tie_are_those_of_the_smooth_function(name, dtype, mode):
    function, smooth = FORMULAS[name]
    args = [tf.constant(each, dtype) for each in (X, Y)]
    value, slopes = modes.value_and_gradients(stabilize(function), args, mode)
    wide = [tf.cast(each, tf.float64) for each in args]
    exact, right = modes.value_and_gradients(smooth, wide, "eager")
    for got, want in zip([value, *slopes], [exact, *right], strict=True):
        assert_close(got, want, 8, why="the truth is of float64 too", scale=1.0)


@pytest.mark.parametrize("name", FORMULAS)
def test_only_the_slopes_at_a_tie_change(name):
    function, _ = FORMULAS[name]
    args = [tf.constant(each, tf.float32) for each in (X, Y)]
    rules = ["softplus-by-hand"]
    value, slopes = modes.value_and_gradients(
        stabilize(function, rules=rules), args, "graph"
    )
    plain, plain_slopes = modes.value_and_gradients(function, args, "graph")
    np.testing.assert_array_equal(value, plain)
    is_tie = (X == 0) | (X == Y)
    for got, as_written in zip(slopes, plain_slopes, strict=True):
        assert_close(got[~is_tie], as_written[~is_tie], 1, scale=1.0)


def test_the_second_slope_at_a_tie_is_that_of_the_smooth_function():
    function, smooth = FORMULAS["half a softplus of twice x"]
    x, y = tf.constant([0.0, 0.5, -3.0]), tf.zeros(3)
    got = modes.second_gradient(stabilize(lambda x: function(x, y)), x, "graph")
    right = modes.second_gradient(lambda x: smooth(x, y), x, "eager")
    assert_close(got, right)


def test_a_sum_of_such_sums_is_made_smooth_once():
    function, smooth = FORMULAS["a cross-entropy"]
    args = [tf.constant(each, tf.float32) for each in (X, Y)]
    whole = stabilize(lambda x, y: function(x, y) + y * y + 3 * x)
    _, (slope, _) = modes.value_and_gradients(whole, args, "graph")
    _, (right, _) = modes.value_and_gradients(
        lambda x, y: smooth(x, y) + 3 * x, args, "eager"
    )
    assert_close(slope, right)


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_another_maximum_keeps_its_slopes(name):
    args = [tf.constant(each, tf.float32) for each in (X, Y)]
    assert "softplus-by-hand" not in fired(all_rules(), NEAR_MISSES[name], *args)
