"""Gradients of gradients of ops in a loop, which TensorFlow takes in other graphs."""

import numpy as np
import pytest
import tensorflow as tf

from tests.support.oracle import assert_close
from tfsafe import ops

TABLE = {
    "divide": (lambda x: ops.divide(1.0, x), lambda x: 1 / x),
    "log": (ops.log, tf.math.log),
    "pow": (lambda x: ops.pow(x, 2.5), lambda x: x**2.5),
    "sqrt": (ops.sqrt, tf.sqrt),
    "squareplus": (ops.squareplus, lambda x: (x + tf.sqrt(x * x + 4)) / 2),
    "tanh": (ops.tanh, tf.tanh),
    "log_softmax": (ops.log_softmax, tf.nn.log_softmax),
    "logsumexp": (ops.logsumexp, tf.reduce_logsumexp),
    "norm": (ops.norm, tf.norm),
    "softmax": (ops.softmax, tf.nn.softmax),
}


def _looped(function):
    """Returns a function of cubes that are summed in a loop."""

    def run(x):
        def body(i, total):
            factor = 1 + 0.1 * tf.cast(i, x.dtype)
            return i + 1, total + tf.reduce_sum(function(factor * x) ** 3)

        start = 0, tf.zeros([], x.dtype)
        return tf.while_loop(lambda i, _: i < 2, body, start, maximum_iterations=2)[1]

    return run


def _carried(function):
    """Returns a function that a loop applies twice."""

    def run(x):
        def body(i, y):
            return i + 1, 0.5 * y + function(y + 0.3)

        y = tf.while_loop(lambda i, _: i < 2, body, (0, x), maximum_iterations=2)[1]
        return tf.reduce_sum(y)

    return run


@tf.function(autograph=False)
def _gradients(function, x):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = function(x)
        first = inner.gradient(y, x)
        total = tf.reduce_sum(first * first)
    return first, outer.gradient(total, x)


def _check(loop, pair):
    x = tf.constant([0.7, 1.3, 2.1], tf.float64)
    found, right = (_gradients(loop(function), x) for function in pair)
    for got, exact in zip(found, right, strict=True):
        assert np.any(np.abs(exact) > 1e-3)
        assert_close(got, exact, 24, why="second derivatives of a loop", scale=1.0)


@pytest.mark.parametrize("name", TABLE)
def test_it_is_that_of_the_plain_function(name):
    _check(_looped, TABLE[name])


@pytest.mark.parametrize("name", ["log", "sqrt"])
def test_it_goes_through_what_the_loop_carries(name):
    _check(_carried, TABLE[name])
