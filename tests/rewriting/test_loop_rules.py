"""Loops carry logarithms of products and sums of exponentials."""

import numpy as np
import pytest
import tensorflow as tf

from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe import stabilize

STEPS = 300


def _loop(step, start, count=STEPS):
    def run(*args):
        return tf.while_loop(
            lambda i, _: i < count,
            lambda i, state: (i + 1, step(i, state, *args)),
            (0, start(*args)),
            maximum_iterations=count,
        )[1]

    return run


def _wide(function, args, mode="graph"):
    """Returns value and gradients in float64, where nothing leaves the range."""
    args = [tf.cast(each, tf.float64) for each in args]
    return modes.value_and_gradients(function, args, mode)


def _same(function, args, mode):
    args = [tf.constant(each, tf.float32) for each in args]
    value, slopes = modes.value_and_gradients(stabilize(function), args, mode)
    exact, right = _wide(function, args)
    why = "rounding of up to 300 steps"
    assert_close(value, exact, 64, why=why)
    for slope, wanted in zip(slopes, right, strict=True):
        assert_close(slope, wanted, 128, why=why, scale=np.abs(wanted).max())


MATRIX = [[0.5, 0.5, 0.0], [0.0, 0.75, 0.25], [0.125, 0.0, 0.875]]
EMISSION = [[-1.0, -2.0, -0.5], [-3.0, -0.25, -1.5]]


def _forward(logits, emission):
    steps = _loop(
        lambda i, a, t, e: tf.linalg.matvec(t, a, transpose_a=True) * e[i % 2],
        lambda t, e: e[0] / 3,
    )
    alpha = steps(tf.nn.softmax(logits), tf.exp(emission))
    return tf.math.log(tf.reduce_sum(alpha))


@pytest.mark.parametrize("mode", modes.MODES)
def test_a_forward_algorithm_learns_its_transitions(mode):
    args = [MATRIX, EMISSION]
    assert np.isinf(_forward(tf.constant(MATRIX), tf.constant(EMISSION)))
    _same(_forward, args, mode)


FORMULAS = {
    # A weight of 0, whose slope is not.
    "a mask that is differentiable": (
        lambda k, mask: tf.math.log(
            tf.reduce_sum(
                _loop(lambda i, s, k, m: s * tf.exp(k) * m + m, lambda k, m: m, 40)(
                    k, mask
                )
            )
        ),
        [[-9.0, -2.0, -3.0], [0.0, 0.5, 0.75]],
    ),
    # The weights grow as fast as the exponentials vanish.
    "plain factors that compensate": (
        lambda k, x: tf.math.log(
            _loop(lambda i, s, k, x: s * tf.exp(k) * x, lambda k, x: x)(k, x)
        ),
        [[-3.0], [20.0]],
    ),
    "a state that changes its sign": (
        lambda k, x: (
            _loop(lambda i, s, k, x: x - s * tf.exp(k), lambda k, x: x, 7)(k, x)
            / _loop(lambda i, s, k, x: s + tf.exp(k), lambda k, x: tf.exp(k), 7)(k, x)
        ),
        [[0.5], [-2.0]],
    ),
    "no iteration": (
        lambda k, x: tf.math.log(
            _loop(lambda i, s, k, x: s * tf.exp(k), lambda k, x: x * tf.exp(k), 0)(k, x)
        ),
        [[-90.0], [1.5]],
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_value_and_slopes_are_those_in_float64(name):
    function, args = FORMULAS[name]
    _same(function, args, "graph")


def _noisy(x):
    step = _loop(lambda i, s, x: s * tf.exp(x) * tf.random.uniform([]), tf.exp)
    return tf.math.log(step(x))


def _fired(function, *args):
    report = stabilize.report(function, *map(tf.constant, args))
    return "log-of-product" in str(report)


def test_the_rule_is_reported():
    assert _fired(
        lambda x: tf.math.log(_loop(lambda i, s, x: s * tf.exp(x), tf.exp)(x)), [1.0]
    )


def _written(emission, transitions, start):
    """The forward algorithm, whose first row is written before the loop."""
    written = tf.TensorArray(emission.dtype, 40).write(0, start * tf.exp(emission[0]))
    ends = tf.while_loop(
        lambda t, *_: t < 40,
        lambda t, alpha, rows: (
            t + 1,
            row := tf.linalg.matvec(transitions, alpha) * tf.exp(emission[t]),
            rows.write(t, row),
        ),
        (1, start * tf.exp(emission[0]), written),
    )
    return tf.math.log(tf.reduce_sum(ends[2].stack(), -1))


@pytest.mark.parametrize("function", [tf.identity, tf.nn.softmax])
def test_the_rows_of_a_forward_algorithm_are_kept_in_a_list(function):
    rng = np.random.default_rng(0)
    emission = rng.normal(size=(40, 3)) * 2 - 6
    args = [emission, rng.uniform(0.5, 1, (3, 3)), rng.uniform(0.5, 1, 3)]
    plain = _written(*(tf.constant(each, tf.float32) for each in args))
    assert np.isinf(plain).any()
    _same(lambda e, a, s: _written(e, function(a), function(s)), args, "graph")


NEAR_MISSES = {
    "random numbers": _noisy,
    "no exponential": lambda x: tf.math.log(
        _loop(lambda i, s, x: s * x + 1.0, lambda x: x)(x)
    ),
    "a condition on the state": lambda x: tf.math.log(
        tf.while_loop(lambda s: s > 0.01, lambda s: [s * tf.sigmoid(x[0])], [x[0]])[0]
    ),
    "an exponential of the state": lambda x: tf.math.log(
        _loop(lambda i, s, x: tf.sin(s) + tf.exp(s), lambda x: x)(x)
    ),
}


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_another_loop_is_left_alone(name):
    assert not _fired(NEAR_MISSES[name], [0.5])


def test_a_variable_that_is_written_is_read_once():
    count = tf.Variable(0.0)

    def run(x):
        loop = _loop(lambda i, s, x: s * tf.exp(x + count), tf.exp, 3)
        value = loop(x)
        count.assign_add(1.0)
        return tf.math.log(value)

    assert_close(stabilize(run)(tf.constant(0.5)), 2.0)
    assert count == 1.0


def test_a_long_loop_that_the_program_unrolls_is_no_fault():
    count = 25

    def plan(cost):
        kernel, u, v = tf.exp(-cost), tf.ones_like(cost[:, 0]), tf.ones_like(cost[0])
        for _ in range(count):
            u = 0.25 / tf.linalg.matvec(kernel, v)
            v = 0.25 / tf.linalg.matvec(kernel, u, transpose_a=True)
        return tf.reduce_sum(u[:, None] * kernel * v[None] * cost)

    cost = np.float32(200) * np.random.default_rng(0).random((4, 4), np.float32)
    value, (slope,) = modes.value_and_gradients(
        stabilize(plan), [tf.constant(cost)], "graph"
    )
    # In logarithms, in float64.
    log = np.float64(-cost)
    for _ in range(count):
        for axis in (1, 0):
            log -= np.logaddexp.reduce(log, axis=axis, keepdims=True) + np.log(4)
    assert_close(value, np.sum(np.exp(log) * cost), 16, why="25 rounds of two sums")
    assert np.isfinite(slope).all()


# How far the messages are from each other, and numbers that no logarithm is known of.
SPREAD = [[5.0, -15.0], [-70.0, 54.0], [-10.0, 23.0], [-16.0, 29.0], [1.0, -24.0]]
STEP = [[0.75, 0.25], [0.5, 0.5]]
SIZES = {
    "the largest": tf.reduce_max,
    "the smallest": tf.reduce_min,
    "the median": lambda x: tf.sort(x)[1],
    "the largest by top_k": lambda x: tf.math.top_k(x, 1)[0][0],
    "a constant of the gradient": lambda x: tf.stop_gradient(tf.reduce_max(x)),
}


@pytest.mark.parametrize("mode", modes.MODES)
@pytest.mark.parametrize("is_inverse", [False, True])
@pytest.mark.parametrize("name", SIZES)
def test_messages_divided_by_a_number_made_of_them_stay_in_range(
    name, is_inverse, mode
):
    def messages(x):
        state = tf.ones_like(x[0])
        for i in range(5):
            state = tf.linalg.matvec(tf.cast(STEP, x.dtype), state * tf.exp(x[i]))
            size = SIZES[name](state)
            state = state * (1 / size) if is_inverse else state / size
        return tf.math.log(state + 1)

    x = tf.constant(SPREAD)
    plain = modes.value_and_gradients(messages, [x], mode)[0]
    exact, (right,) = _wide(messages, [x])
    assert_close(plain, exact)
    value, (slope,) = modes.value_and_gradients(stabilize(messages), [x], mode)
    assert_close(value, exact)
    assert_close(slope, right, scale=1.0)


@pytest.mark.parametrize("mode", modes.MODES)
def test_the_largest_of_weighted_exponentials_is_in_range(mode):
    def formula(x, weights):
        largest = tf.reduce_max(tf.nn.relu(weights) * tf.exp(x), -1)
        return tf.math.log(largest)

    x, weights = [[100.0, 99.0, 300.0], [-110.0, -112.0, 20.0]], [[2.0, 3.0, -1.0]]
    _same(formula, [x, weights], mode)


@pytest.mark.parametrize("mode", modes.MODES)
@pytest.mark.parametrize(
    ("reduce", "weights"),
    [(tf.reduce_max, [-1.0, 2.0, 3.0]), (tf.reduce_min, [1.0, 2.0, 3.0])],
)
def test_a_small_extremum_beside_a_large_exponential_is_kept(reduce, weights, mode):
    def formula(x, weights):
        return tf.math.log(reduce(weights * tf.exp(x), -1))

    _same(formula, [[[110.0, 1.0, 0.5]], [weights]], mode)
