"""Derivatives of loops and cases, of any order, that a stabilised function takes."""

import numpy as np
import pytest
import tensorflow as tf

from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe import stabilize


def _plain(a, x):
    state = x[0]
    for t in tf.range(1, 4):
        state = tf.sin(state) * x[t] + a[0]
    return tf.reduce_sum(state**2)


def _nested(a, x):
    total = tf.zeros([], x.dtype)
    for i in tf.range(2):
        state = x[i]
        for j in tf.range(3):
            state = tf.tanh(state * x[j] + a[1])
        total += tf.reduce_sum(state**3)
    return total


def _forward(a, x):
    """The forward algorithm."""
    alpha = tf.exp(x[0])
    for t in tf.range(1, 4):
        alpha = tf.linalg.matvec(tf.exp(a), alpha) * tf.exp(x[t])
    return tf.math.log(tf.reduce_sum(alpha))


def _scanned(a, x):
    rows = tf.scan(
        lambda alpha, e: tf.linalg.matvec(tf.exp(a), alpha) * e, tf.exp(x), tf.exp(x[0])
    )
    return tf.math.log(tf.reduce_sum(rows[-1]))


def _gated(a, x):
    """A linear recurrence with exponential gates."""
    above = below = tf.zeros_like(x[0])
    total = tf.zeros([], x.dtype)
    for t in tf.range(4):
        gate = tf.exp(x[t])
        above, below = tf.exp(-a[0]) * above + gate * a[1], below + gate
        total += tf.reduce_sum((above / below) ** 2)
    return total


def _mapped(a, x):
    """A loop in each step of another."""
    rows = tf.stack([x, x[::-1]])
    return tf.reduce_sum(tf.map_fn(lambda each: _forward(a, each), rows))


def _in_a_branch(a, x):
    return tf.cond(a[0, 0] > 9.0, lambda: a[0, 0], lambda: _forward(a, x))


def _in_a_case(a, x):
    zero = tf.cast(a[0, 0] > 9.0, tf.int32)
    return tf.switch_case(zero, [lambda: _forward(a, x), lambda: a[0, 0]])


def _chosen(a, x):
    """A case that is not a loop."""
    return tf.switch_case(
        tf.cast(x[0, 0] > 0, tf.int32),
        [lambda: tf.reduce_sum(tf.sin(x) * a[0]), lambda: tf.reduce_sum(x**3)],
    )


def _gradient(function):
    def gradient(a, x):
        with tf.GradientTape() as tape:
            tape.watch([a, x])
            value = function(a, x)
        return value, *tape.gradient(value, [a, x])

    return gradient


def _curvature(function):
    """The gradient of the square of a gradient, such as that of a penalty."""

    def penalty(a, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = function(a, x)
        return tf.reduce_sum(tape.gradient(value, x) ** 2)

    return _gradient(penalty)


def _product(function):
    """The product of the Hessian with the input."""

    def along(a, x):
        _, _, slope = _gradient(function)(a, x)
        return tf.reduce_sum(slope * tf.stop_gradient(x))

    return _gradient(along)


def _unrolled(function):
    """Through two steps of gradient descent."""

    def after_two_steps(a, x):
        inner = x
        for _ in range(2):
            inner -= 0.1 * _gradient(function)(a, inner)[2]
        return function(a, inner)

    return _gradient(after_two_steps)


def _hessian(function):
    """The Jacobian of the gradient, row by row."""

    def hessian(a, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            _, _, slope = _gradient(function)(a, x)
        return [tape.jacobian(slope, x, experimental_use_pfor=False)]

    return hessian


ORDINARY = [_plain, _nested, _chosen]
EXPONENTIAL = [_forward, _scanned, _gated]
A = np.random.default_rng(0).normal(size=(3, 3)) / 2
X = np.random.default_rng(1).normal(size=(4, 3))


def _assert_same(function, x, mode):
    exact = tf.function(function)(tf.constant(A), tf.constant(x))
    args = tf.constant(A, tf.float32), tf.constant(x, tf.float32)
    got = modes.compile_for(mode, stabilize(function))(*args)
    for each, wanted in zip(got, exact, strict=True):
        why = "sums of exponents of up to 100 and more are rounded before `exp`"
        assert_close(each, wanted, 800, why=why, scale=np.abs(wanted).max())


@pytest.mark.parametrize(
    ("function", "derivative"),
    [
        *((function, _curvature) for function in (*ORDINARY, *EXPONENTIAL, _mapped)),
        *((function, _product) for function in ORDINARY),
        *((function, _unrolled) for function in (_plain, _forward)),
        *((function, _hessian) for function in (_plain, _chosen)),
    ],
)
def test_a_derivative_of_higher_order_is_that_of_the_plain_function(
    function, derivative
):
    _assert_same(derivative(function), X, "graph")


@pytest.mark.parametrize("mode", modes.MODES)
@pytest.mark.parametrize(
    ("function", "shift"),
    [
        *((function, shift) for function in EXPONENTIAL for shift in (-60.0, 100.0)),
        (_mapped, 100.0),
    ],
)
def test_a_loop_whose_gradient_is_taken_inside_carries_logarithms(
    function, shift, mode
):
    _assert_same(_gradient(function), X + shift, mode)


@pytest.mark.parametrize("function", [_in_a_branch, _in_a_case])
def test_so_does_one_in_a_branch(function):
    """XLA has no gradient of it."""
    _assert_same(_gradient(function), X + 100.0, "graph")
