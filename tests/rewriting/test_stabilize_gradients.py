"""Gradients that a stabilised function takes itself, of what its tapes saw."""

import warnings

import numpy as np
import pytest
import tensorflow as tf

from tests.rewriting.formula import (
    log_softmax,
    logits,
    second,
    with_own_tape,
)
from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe.rewriting import stabilize


def curvature(x):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            value = second(x)
        slope = inner.gradient(value, x)[:, 1]
    return outer.gradient(slope, x)


@pytest.mark.parametrize("where", ["both inside", "one inside"])
def test_the_second_derivative_is_right(where, mode):
    def outside(function):
        def gradient(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                value = function(x)
            return tape.gradient(value, x)

        return gradient

    def slope(x):
        return with_own_tape(x)[1][:, 1]

    if where == "both inside":
        function = stabilize(curvature)
    else:
        function = outside(stabilize(slope))
    got = modes.compile_for(mode, function)(logits())
    # -p (1 - p) for the second of two logits.
    assert_close(got, [[0, 0], [0.19661194, -0.19661194]])


# What a gradient is taken of decides what may be rewritten.
WEIGHTS = tf.Variable([[0.5, -2.0]])
FIXED = tf.constant([[0.5, -2.0]])


def in_an_intermediate(x):
    probs = tf.nn.softmax(x)
    with tf.GradientTape() as tape:
        tape.watch(probs)
        value = tf.reduce_sum(tf.math.log(probs)[:, 1])
    return tape.gradient(value, probs)


def in_an_intermediate_of_another_shape(x):
    with tf.GradientTape() as tape:
        above = tf.sin(x)
        tape.watch(above)
        # The stable form takes no more than the shape of it.
        ratio = tf.squeeze(above[..., None] / x[..., None], -1)
    return ratio, tape.gradient(ratio, above)


def of_what_was_made_before_the_tape(x):
    probs = tf.nn.softmax(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = tf.reduce_sum(tf.math.log(probs) * x)
    return tape.gradient(value, x)


def past_a_pause(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = log_softmax(x)
        with tape.stop_recording():
            frozen = y * 2.0
        value = y * frozen
    return tape.gradient(value, x)


def after_a_reset(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = log_softmax(x)
        tape.reset()
        tape.watch(x)
        value = y * x
    return tape.gradient(value, x)


def many_at_once(x):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = log_softmax(x)
        z = y * WEIGHTS
    upstream = tf.constant([[2.0, -1.0]])
    return [
        tape.gradient(z, {"x": x, "w": WEIGHTS}),
        tape.gradient([z, y], [x], output_gradients=[upstream, -upstream]),
        tape.gradient(y, [WEIGHTS, x]),
        tape.gradient(y, WEIGHTS, unconnected_gradients="zero"),
        tape.gradient(tf.stop_gradient(y), x),
        tape.gradient(y, tf.constant(1.0)),
    ]


def old_policy_outside_the_tape(x):
    old = log_softmax(WEIGHTS)
    with tf.GradientTape() as tape:
        value = tf.reduce_sum(tf.exp(log_softmax(WEIGHTS) - old) * x)
    return tape.gradient(value, WEIGHTS)


def of_rows(x):
    with tf.GradientTape() as tape:
        value = log_softmax(tf.gather(WEIGHTS, [0, 0])) * x
    slices = tape.gradient(value, WEIGHTS)
    assert isinstance(slices, tf.IndexedSlices)
    return tf.convert_to_tensor(slices), slices.indices


def zeros_for_what_it_does_not_watch(x):
    with tf.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch(x)
        y = log_softmax(x * WEIGHTS)
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
        z = log_softmax(WEIGHTS)
    return [
        tape.gradient(y, [x, WEIGHTS], unconnected_gradients="zero"),
        tape.jacobian(y, {"w": WEIGHTS, "x": x}, tf.UnconnectedGradients.ZERO),
        tf.gradients(y, [x, FIXED], unconnected_gradients="zero"),
        accumulator.jvp([z, y], unconnected_gradients="zero"),
    ]


def jacobians(x):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = log_softmax(x)
    return tape.jacobian(y, x), tape.batch_jacobian(y, x)


def a_second_derivative_that_it_does_not_watch(x):
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = log_softmax(x)
        slope = inner.gradient(y, x, output_gradients=tf.ones_like(y) * x)
    return outer.batch_jacobian(slope, x)


def by_tf_gradients(x):
    return tf.gradients(log_softmax(x), x)


@pytest.mark.parametrize(
    "function",
    [
        in_an_intermediate,
        in_an_intermediate_of_another_shape,
        of_what_was_made_before_the_tape,
        past_a_pause,
        after_a_reset,
        many_at_once,
        old_policy_outside_the_tape,
        of_rows,
        zeros_for_what_it_does_not_watch,
        jacobians,
        a_second_derivative_that_it_does_not_watch,
        by_tf_gradients,
    ],
    ids=lambda function: function.__name__,
)
def test_a_gradient_is_of_what_the_tape_saw(function):
    got, right = stabilize(function)(FIXED), tf.function(function)(FIXED)
    tf.nest.assert_same_structure(got, right)
    for one, other in zip(tf.nest.flatten(got), tf.nest.flatten(right), strict=True):
        if other is not None:
            assert_close(
                one, other, 6, why="both are rounded", scale=1.0, dtype="float32"
            )
            assert one.dtype == other.dtype


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (tf.square, lambda z, x: z * z / (z + 1)),
        (tf.square, lambda z, x: z * z / (x + 1)),
        (lambda x: tf.identity(x * x), lambda z, x: z * z / (z * x + 1)),
        # Of these, what is in float64 before the tape begins.
        (lambda x: x * x * x / (x + 1), lambda z, x: z * z / (z + x)),
        (lambda x: x * x * x / (x + 1), lambda z, x: tf.sqrt(z * z + x * x)),
    ],
)
def test_a_formula_out_of_range_begins_with_what_the_gradient_is_by(
    before, after, mode
):
    def slope(x):
        z = before(x)
        with tf.GradientTape() as tape:
            tape.watch(z)
            value = after(z, x)
        return value, tape.gradient(value, z)

    x = tf.constant([2.0, 1e9, 1e12])
    exact = slope(tf.cast(x, tf.float64))
    got = modes.compile_for(mode, stabilize(slope))(x)
    for each, right in zip(got, exact, strict=True):
        assert_close(each, right, 3)


@pytest.mark.parametrize(
    ("formula", "x", "exact"),
    [
        (
            lambda x: tf.reduce_mean(x * x) - tf.reduce_mean(x) ** 2,
            [1000, 1000.25, 999.875],
            np.var,
        ),
        (lambda x: 1 - tf.tanh(x) ** 2, [4.0, 6.0], lambda x: np.cosh(x) ** -2),
        (
            lambda x: tf.math.log(tf.reduce_sum(tf.exp(x))),
            [1000.0, 999.0],
            lambda x: np.logaddexp(*x),
        ),
    ],
    ids=["variance", "slope of tanh", "logsumexp"],
)
def test_a_formula_that_the_gradient_is_by_is_stable_too(formula, x, exact, mode):
    def slope(x):
        z = formula(x)
        with tf.GradientTape() as tape:
            tape.watch(z)
            value = tf.reduce_sum(z * z)
        return z, tape.gradient(value, z)

    value, got = modes.compile_for(mode, stabilize(slope))(tf.constant(x))
    right = exact(np.array(x))
    assert_close(value, right)
    assert_close(got, 2 * right)


def test_a_tape_that_is_asked_in_a_branch_or_from_outside_answers_as_ever():
    tape = tf.GradientTape(persistent=True)

    def function(x):
        with tf.GradientTape(persistent=True) as own:
            own.watch(x)
            y = x * x
        with tape:
            tape.watch(x)
            z = x * 3.0
        in_branch = tf.cond(x[0, 0] > 0, lambda: own.gradient(y, x), lambda: x)
        return in_branch, tape.gradient(z, x)

    doubled, three = stabilize(function)(FIXED)
    assert_close(doubled, 2 * FIXED)
    assert_close(three, tf.fill([1, 2], 3.0))


def a_jacobian(formula, x):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = formula(x * WEIGHTS)
    slow = tape.jacobian(y, x, experimental_use_pfor=False)
    return tape.jacobian(y, {"x": x, "w": WEIGHTS}), slow


def a_batch_jacobian(formula, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = formula(x)
    return tape.batch_jacobian(y, x)


def gradients_of_the_graph(formula, x):
    y = formula(x * WEIGHTS)
    return [
        tf.gradients(y, [x, WEIGHTS], grad_ys=tf.ones_like(y) * [0.0, 1.0]),
        tf.gradients(y * x, x, stop_gradients=[y]),
    ]


def forward_over_reverse(formula, x):
    tangent = tf.ones_like(x) * [0.0, 1.0]
    with tf.autodiff.ForwardAccumulator(x, tangent) as accumulator:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = formula(x)
        slope = tape.gradient(y, x, output_gradients=tangent)
    return accumulator.jvp([y, slope])


@pytest.mark.parametrize(
    "function",
    [a_jacobian, a_batch_jacobian, gradients_of_the_graph, forward_over_reverse],
    ids=lambda function: function.__name__,
)
def test_every_derivative_asked_inside_is_that_of_the_stable_form(function, mode):
    got = modes.compile_for(mode, stabilize(lambda x: function(log_softmax, x)))
    right = tf.function(lambda x: function(tf.nn.log_softmax, x))(logits())
    tf.nest.assert_same_structure(got(logits()), right)
    for one, other in zip(
        tf.nest.flatten(got(logits())), tf.nest.flatten(right), strict=True
    ):
        assert_close(one, other, scale=1.0)


def test_a_gradient_that_computes_the_function_again_is_stable_too():
    x = tf.constant([[100.0, 0.0], [1.0, 2.0]])
    total = stabilize(
        tf.recompute_grad(lambda x: tf.math.log(tf.reduce_sum(tf.exp(x), -1)))
    )
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = total(x)
    assert_close(tape.gradient(value, x), tf.nn.softmax(x))


def test_equal_constants_have_a_gradient_each(mode):
    def function(x):
        a, b = tf.constant(2.0), tf.constant(2.0)
        with tf.GradientTape() as tape:
            tape.watch([a, b])
            value = tf.math.log(tf.exp(100 * a * x) + tf.exp(200 * x)) + 3 * b * x
        return tape.gradient(value, [a, b])

    got = modes.compile_for(mode, stabilize(function))(tf.constant(1.0))
    assert [float(each) for each in got] == [50.0, 3.0]


def of_the_second(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = log_softmax(x)[:, 1]
    return tape.gradient(value, x)


@pytest.mark.parametrize("jit_compile", [False, True], ids=["called", "compiled"])
def test_each_call_of_a_function_has_a_gradient_of_its_own(jit_compile, mode):
    slope = tf.function(of_the_second, jit_compile=jit_compile)

    def function(x):
        first = slope(x)
        return first, slope(x + first)

    got = modes.compile_for(mode, stabilize(function))(logits())
    first = [0.0, 1.0] - tf.nn.softmax(logits())
    assert_close(got[0], first)
    assert_close(got[1], [0.0, 1.0] - tf.nn.softmax(logits() + first))


def test_a_formula_of_the_gradient_of_a_called_function_is_stable():
    slope = tf.function(of_the_second)

    def direction(x):
        grad = 1e-30 * slope(x)
        return 0.1 * grad / tf.norm(grad)

    got = stabilize(direction)(FIXED)
    assert_close(got, [[-0.1 * 0.5**0.5, 0.1 * 0.5**0.5]])


@pytest.mark.parametrize("is_used", [False, True])
@pytest.mark.parametrize("is_nested", [False, True])
def test_the_effects_of_a_gradient_happen_once(is_nested, is_used):
    weight, steps = tf.Variable([1.0, 2.0]), tf.Variable(0)

    @tf.custom_gradient
    def counted(x):
        def gradient(upstream):
            steps.assign_add(1)
            return 2.0 * upstream

        return tf.identity(x), gradient

    inner = tf.function(counted) if is_nested else counted

    def step():
        with tf.GradientTape() as tape:
            loss = tf.math.log(tf.reduce_sum(tf.exp(inner(weight))))
        slope = tape.gradient(loss, weight)
        return slope if is_used else 2 * tf.nn.softmax(weight)

    slope = stabilize(tf.function(step))()
    assert_close(slope, 2 * tf.nn.softmax(weight))
    assert int(steps) == 1


def test_the_gradient_of_a_python_function_is_taken_once():
    weight = tf.Variable([1.0, 2.0])

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            square = tf.py_function(lambda x: x**2, [weight], tf.float32)
            square.set_shape([2])
            loss = tf.reduce_sum(square) - tf.math.log(tf.reduce_sum(tf.exp(weight)))
        return tape.gradient(loss, weight)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        slope = stabilize(step)()
    assert_close(slope, 2 * weight - tf.nn.softmax(weight))
