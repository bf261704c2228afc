"""A stabilised function that is called while another function is traced."""

import numpy as np
import pytest
import tensorflow as tf

from tests.rewriting.formula import (
    GRADIENT,
    LOGITS,
    VALUE,
    log_softmax,
    logits,
    second,
)
from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe.rewriting import stabilize

CALLS = {"PartitionedCall", "StatefulPartitionedCall"}

stable = stabilize(second)


def calls_in(function, *args):
    graph = tf.function(function).get_concrete_function(*args).graph
    return [op.type for op in graph.get_operations() if op.type in CALLS]


def gradient_of(function, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = function(x)
    return tape.gradient(value, x)


@pytest.mark.parametrize("jit_compile", [False, True], ids=["graph", "xla"])
def test_a_tape_in_the_same_trace_gives_the_stable_gradient(jit_compile):
    @tf.function(jit_compile=jit_compile)
    def step(x):
        return gradient_of(stable, x * 1.0)

    assert_close(step(logits()), GRADIENT)


def test_it_is_no_call_of_its_own_so_that_xla_sees_its_constants():
    assert calls_in(lambda x: gradient_of(stable, x), logits()) == []


def test_options_of_its_own_make_it_a_call():
    compiled = stabilize(tf.function(second, jit_compile=True))
    signed = stabilize(tf.function(second, [tf.TensorSpec([None, 2], tf.float32)]))
    for function in (compiled, signed):
        assert len(calls_in(function, logits())) == 1
        step = tf.function(lambda x, f=function: gradient_of(f, x))
        assert_close(step(logits()), GRADIENT)


@pytest.mark.parametrize("jit_compile", [False, True], ids=["graph", "xla"])
def test_the_second_derivative_is_right_with_tapes_around(jit_compile):
    x = tf.constant([[0.0, -200.0], [0.5, 1.0]])
    step = tf.function(
        lambda x: gradient_of(lambda each: gradient_of(stable, each)[1, 0], x),
        jit_compile=jit_compile,
    )
    p = 1 / (1 + np.exp(0.5))
    bend = p * (1 - p)
    assert_close(step(x), [[0.0, 0.0], [-bend, bend]])
    # One of the tapes inside.
    inside = stabilize(lambda each: gradient_of(second, each)[1, 0])
    assert_close(
        tf.function(lambda x: gradient_of(inside, x), jit_compile=jit_compile)(x),
        [[0.0, 0.0], [-bend, bend]],
    )


@pytest.mark.parametrize("jit_compile", [False, True], ids=["graph", "xla"])
def test_loops_and_branches_around_and_within(jit_compile):
    def repeated(x):
        def body(i, total):
            return i + 1, total + second(x) * tf.cast(i, tf.float32)

        return tf.while_loop(lambda i, _: i < 3, body, (0, 0.0), maximum_iterations=3)[
            1
        ]

    within = stabilize(repeated)

    @tf.function(jit_compile=jit_compile)
    def step(x):
        def body(i, total):
            chosen = tf.cond(i > 0, lambda: stable(x), lambda: 2 * stable(x))
            return i + 1, total + chosen + within(x)

        with tf.GradientTape() as tape:
            tape.watch(x)
            _, total = tf.while_loop(
                lambda i, _: i < 2, body, (0, 0.0), maximum_iterations=2
            )
        return total, tape.gradient(total, x)

    total, gradient = step(logits())
    assert_close(total, 9 * -200.3132617)
    assert_close(gradient, 9 * np.array(GRADIENT))


def test_variables_are_watched_and_written_in_order():
    weights, count = tf.Variable(LOGITS), tf.Variable(1.0, trainable=False)

    @stabilize
    def loss():
        count.assign_add(1.0)
        return second(weights) * count

    @tf.function
    def step():
        # Read before the tape records, so that its handle is known in this trace.
        before = weights.read_value()
        with tf.GradientTape(persistent=True) as tape:
            value = loss() + loss()
        assert tape.watched_variables() == (weights,)
        return before, value, tape.gradient(value, weights), count.read_value()

    _, value, gradient, after = step()
    assert_close(value, 5 * -200.3132617)
    assert_close(gradient, 5 * np.array(GRADIENT))
    assert float(after) == 3


def test_a_gradient_of_ones_own_stays():
    @tf.custom_gradient
    def doubled(x):
        return tf.identity(x), lambda upstream: 2 * upstream

    function = stabilize(lambda x: second(doubled(x)))
    step = tf.function(lambda x: gradient_of(function, x))
    assert_close(step(logits()), 2 * np.array(GRADIENT))


def test_a_forward_accumulator_sees_it():
    @tf.function
    def step(x):
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x) * [0.0, 1.0]) as forward:
            value = stable(x)
        return forward.jvp(value)

    assert_close(step(logits()), 1.26894143)


def test_a_tape_that_does_not_record_stays_blind():
    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            with tape.stop_recording():
                value = stable(x)
        return tape.gradient(value, x) is None

    assert bool(step(logits()))


def test_autograph_of_the_function_and_of_the_one_around():
    @stabilize
    def choice(x, flag):
        if flag:
            return second(x)
        return -second(x)

    @tf.function
    def step(x, flag):
        total = 0.0
        for _ in tf.range(2):
            total += choice(x, flag)
        return total

    assert_close(step(logits(), tf.constant(True)), 2 * -200.3132617)
    assert_close(step(logits(), tf.constant(False)), 2 * 200.3132617)


def test_arrays_and_python_values_are_arguments_inside_too():
    @stabilize
    def scaled(x, factor, *, shift=None):
        assert isinstance(x, tf.Tensor)
        assert isinstance(factor, float)
        return {"value": log_softmax(x) * factor, "shift": shift}

    @tf.function
    def step():
        found = scaled(np.array(LOGITS, np.float32), 1.0)
        assert found["shift"] is None
        return found["value"]

    assert_close(step(), VALUE)


class Model(tf.Module):
    def __init__(self):
        super().__init__()
        self.weights = None

    @stabilize
    def loss(self, x):
        if self.weights is None:
            self.weights = tf.Variable(tf.zeros([2, 2]))
        return second(x @ self.weights + x)


def test_a_method_that_makes_its_variables_when_it_is_first_called():
    model = Model()

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            value = model.loss(x)
        return value, tape.gradient(value, model.weights)

    for _ in range(2):
        value, gradient = step(logits())
        assert_close(value, -200.3132617)
        assert_close(gradient, tf.transpose(logits()) @ tf.constant(GRADIENT))


def test_it_is_called_in_a_graph_of_old():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        assert_close(session.run(stable(logits())), -200.3132617)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_constants_are_multiplied_in_a_graph_of_old():
    @stabilize
    @tf.function
    def function(x):
        six = tf.raw_ops.Mul(x=tf.raw_ops.Neg(x=tf.constant(-2.0)), y=tf.constant(3.0))
        return tf.math.log(six * tf.exp(x))

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        assert_close(session.run(function(tf.constant(100.0))), 100 + np.log(6))


def test_every_mode_agrees(mode):
    assert_close(modes.compile_for(mode, lambda x: stable(x))(logits()), -200.3132617)
