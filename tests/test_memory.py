"""A function that was traced, called and dropped leaves nothing of ours in memory."""

import contextlib
import gc

import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.support.oracle import assert_close

_X = np.float32([[0.5, 1.0], [2.0, 3.0]])


def _plain(function):
    return function


def _full(function):
    return tfsafe.checked(function, checks="full")


def _retaining(function):
    @tf.function
    def retaining(x):
        with tfsafe.debugging.retain_gradients() as gradients:
            kept = tfsafe.debugging.retain(x, "x")
            return function(kept), dict(gradients)

    return retaining


@contextlib.contextmanager
def _switches():
    tfsafe.enable_stabilize()
    try:
        with tfsafe.debugging.check_numerics(checks="full"):
            yield
    finally:
        tfsafe.disable_stabilize()


WAYS = {
    "full": (_full, contextlib.nullcontext),
    "stabilize": (tfsafe.stabilize, contextlib.nullcontext),
    "both": (lambda f: _full(tfsafe.stabilize(f)), contextlib.nullcontext),
    "switches": (_plain, _switches),
    "retain": (_retaining, contextlib.nullcontext),
}


def _drop(wrap, count, **options):
    for index in range(count):

        @wrap
        @tf.function(**options)
        def step(x, index=index):
            with tf.GradientTape() as tape:
                tape.watch(x)
                # Every graph differs, and none has a probability of 0.
                logits = x * (1 + index / 1000)
                loss = tf.reduce_sum(tf.math.log(tf.nn.softmax(logits)))
            return loss, tape.gradient(loss, x)

        step(tf.constant(_X))
        del step
    gc.collect()


def _kept():
    """Returns how many graphs and operations exist."""
    objects = gc.get_objects()
    operations = sum(isinstance(each, tf.Operation) for each in objects)
    graphs = sum(isinstance(each, tf.Graph) for each in objects)
    return np.array([graphs, operations])


def _growth(wrap, count, **options):
    _drop(wrap, count // 2, **options)
    before = _kept()
    _drop(wrap, count, **options)
    return _kept() - before


@pytest.mark.parametrize("way", ["full", "stabilize"])
def test_dropped_functions_are_collected(way):
    graphs, operations = _growth(WAYS[way][0], 10)
    assert graphs <= 2
    assert operations <= 100


# `both` has all that `full` and `stabilize` have.
THREE = ["both", "switches", "retain"]


@pytest.mark.slow
def test_two_hundred_dropped_functions_are_collected():
    def drop(count):
        for way in THREE:
            wrap, switched = WAYS[way]
            with switched():
                _drop(wrap, count)

    drop(5)
    before = _kept()
    drop(67)
    graphs, operations = _kept() - before
    assert graphs <= 2
    assert operations <= 100


@pytest.mark.slow
@pytest.mark.parametrize("way", THREE)
def test_dropped_functions_of_xla_are_collected(way):
    wrap, switched = WAYS[way]
    with switched():
        graphs, operations = _growth(wrap, 4, jit_compile=True)
    assert graphs <= 2
    assert operations <= 100


def _nested(x):
    return tf.function(tfsafe.ops.log)(x)


def _branch(x):
    return tf.cond(
        tf.reduce_sum(x) > 0, lambda: tfsafe.ops.log(x), lambda: tfsafe.ops.sqrt(x)
    )


def _loop(x):
    return tf.while_loop(
        lambda i, _: i < 1, lambda i, y: (i + 1, tfsafe.ops.log(y)), [0, x]
    )[1]


@pytest.mark.filterwarnings("ignore:.*is called while a `tf.function` is traced")
@pytest.mark.parametrize("wrap", [_plain, tfsafe.stabilize, _full])
@pytest.mark.parametrize("inner", [_nested, _branch, _loop])
def test_gradients_outlive_the_trace_that_made_them(inner, wrap):
    function = wrap(tf.function(lambda x: inner(x)))
    x = tf.constant([1.0, 2.0, 4.0])
    function(x)
    gc.collect()

    @tf.function
    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)[1:]
            gc.collect()
        return tape.gradient(y, x)

    for take in (slope.python_function, slope):
        assert_close(take(x), [0.0, 0.5, 0.25])
    # Once more after the outer trace is gone.
    del slope
    gc.collect()
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)[1:]
    gc.collect()
    assert_close(tape.gradient(y, x), [0.0, 0.5, 0.25])
