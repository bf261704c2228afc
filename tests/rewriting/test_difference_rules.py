"""The difference of one function at two points keeps its digits."""

import mpmath
import numpy as np
import pytest
import tensorflow as tf

from tests.ops.edges import INF, NAN, assert_rounded
from tests.rewriting.emitting import fired, rewritten, second_gradients
from tests.rewriting.tables import RULES
from tests.support import modes, oracle
from tests.support.oracle import assert_close
from tfsafe.rewriting.rules.table import all_rules


def _sigmoid(x):
    return 1 / (1 + mpmath.exp(-x))


def _softplus(x):
    return mpmath.log1p(mpmath.exp(x))


# The function, the truth, and pairs of points: near, in a tail, and far apart.
FUNCTIONS = {
    "log": (tf.math.log, mpmath.log, [(1000.0, 1000.5), (2.0, 3.0), (1e-6, 1e4)]),
    "log1p": (tf.math.log1p, mpmath.log1p, [(9.0, 9.001), (1e-9, 2e-9), (0.5, 30.0)]),
    "exp": (tf.exp, mpmath.exp, [(3.0, 3.002), (-30.0, -30.1), (2.0, -3.0)]),
    "sin": (tf.sin, mpmath.sin, [(1.5, 1.502), (1.0, 1.01), (2.0, -3.0)]),
    "cos": (tf.cos, mpmath.cos, [(0.1, 0.102), (1.0, 1.01), (2.0, -3.0)]),
    "tan": (tf.tan, mpmath.tan, [(1.0, 1.002), (0.3, 0.301), (0.7, -1.0)]),
    "atan": (tf.atan, mpmath.atan, [(100.0, 101.0), (-3.0, -3.01), (2.0, -3.0)]),
    "sqrt": (tf.sqrt, mpmath.sqrt, [(1e4, 1.0001e4), (2.0, 3.0), (0.01, 9.0)]),
    "power": (
        lambda x: x**2.5,
        lambda x: x ** mpmath.mpf(2.5),
        [(1e3, 1.001e3), (2.0, 3.0), (0.01, 9.0)],
    ),
    "reciprocal": (
        lambda x: 3.0 / x,
        lambda x: 3 / x,
        [(1e3, 1.001e3), (-2.0, -2.01), (2.0, -3.0)],
    ),
    "sigmoid": (tf.sigmoid, _sigmoid, [(12.0, 11.0), (1.0, 1.01), (2.0, -3.0)]),
    "tanh": (tf.tanh, mpmath.tanh, [(-12.0, -11.0), (1.0, 1.01), (2.0, -3.0)]),
    "erf": (tf.math.erf, mpmath.erf, [(-5.0, -4.0), (1.0, 1.01), (2.0, -0.3)]),
    "softplus": (tf.nn.softplus, _softplus, [(1.0, 1.01), (-9.0, -9.1), (2.0, -3.0)]),
}
# The exponential of a square, of which an erf is made, multiplies its rounding.
_MOST = {"erf": 32}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_keeps_its_digits(name, mode):
    function, truth, pairs = FUNCTIONS[name]

    def difference(a, b):
        return 0.5 * (function(a) - function(b))

    def exact(a, b):
        return (truth(a) - truth(b)) / 2

    a, b = (tf.constant(each) for each in zip(*pairs, strict=True))
    assert "difference-of-function" in fired(RULES, difference, a, b)
    value, slopes = modes.value_and_gradients(
        rewritten(RULES, difference), [a, b], mode
    )
    assert oracle.ulp_error(value, oracle.exact(exact, a, b)) <= _MOST.get(name, 10)
    for sign, x, slope in zip((1, -1), (a, b), slopes, strict=True):
        wanted = oracle.exact(lambda x: mpmath.diff(truth, x) / 2, x).astype(float)
        assert_rounded(slope, sign * wanted)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_of_a_step_value_and_slope_keep_their_digits(name, mode):
    function, truth, pairs = FUNCTIONS[name]
    x = tf.constant([pair[0] for pair in pairs])

    def difference(x):
        return function(x) - function(0.0078125 + x)

    value, (slope,) = modes.value_and_gradients(rewritten(RULES, difference), [x], mode)

    def exact(x):
        return truth(x) - truth(x + mpmath.mpf("0.0078125"))

    assert oracle.ulp_error(value, oracle.exact(exact, x)) <= _MOST.get(name, 10)
    wanted = oracle.exact(lambda x: mpmath.diff(exact, x), x)
    assert_close(slope, wanted, 12, why="a difference of derivatives")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_step_of_0_has_a_slope(name, mode):
    function, truth, pairs = FUNCTIONS[name]
    x = tf.constant([pair[0] for pair in pairs])

    def difference(step, x):
        return function(x + step) - function(x)

    value, (slope, _) = modes.value_and_gradients(
        rewritten(RULES, difference), [tf.zeros_like(x), x], mode
    )
    assert_close(value, np.zeros(len(pairs)), 0)
    wanted = oracle.exact(lambda x: mpmath.diff(truth, x), x)
    assert_close(slope, wanted, 8, why="TensorFlow's own derivative")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_half_precision_double_precision_and_second_gradients_work(name):
    function, truth, pairs = FUNCTIONS[name]

    def difference(a, b):
        return function(a) - function(b)

    def exact(a, b):
        return truth(a) - truth(b)

    for dtype, most in ((tf.float16, 2.5), (tf.float64, 400)):
        a, b = (tf.constant(each[1:], dtype) for each in zip(*pairs, strict=True))
        if dtype == tf.float16 and name in {"exp", "log", "log1p"}:
            a, b = tf.constant([3.0], dtype), tf.constant([3.01], dtype)
        value = rewritten(RULES, difference)(a, b)
        assert oracle.ulp_error(value, oracle.exact(exact, a, b)) <= most
    a, b = (tf.constant(each[1:]) for each in zip(*pairs, strict=True))
    (second, _) = second_gradients(RULES, difference, [a, b], "graph")
    wanted = oracle.exact(lambda x: mpmath.diff(truth, x, 2), a).astype(float)
    assert_rounded(second, wanted)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nan_infinity_and_equal_points_come_out_as_before(name):
    function = FUNCTIONS[name][0]
    a = tf.constant([NAN, INF, -INF, INF, 1.0, 1e30, 1e-40])
    b = tf.constant([1.0, 1.0, 1.0, INF, 1.0, 1e30, 2e-40])

    def difference(a, b):
        return function(a) - function(b)

    assert_rounded(rewritten(RULES, difference)(a, b), difference(a, b))


def test_logarithms_that_other_rules_know_better_are_left_to_them():
    def of_sums(x, y):
        return tf.math.log(1 + x) - tf.math.log(1 + y)

    def of_probabilities(x, y):
        return tf.math.log(tf.sigmoid(x)) - tf.math.log(tf.sigmoid(y))

    x, y = tf.constant([1e-9]), tf.constant([2e-9])
    assert_rounded(rewritten(RULES, of_sums)(x, y), [-1e-9])
    x, y = tf.constant([-150.0]), tf.constant([-151.0])
    assert_rounded(rewritten(all_rules(), of_probabilities)(x, y), [1.0])


def test_logarithms_of_multiples_keep_their_digits():
    a, b = tf.constant([1000.0]), tf.constant([1000.5])
    value = rewritten(RULES, lambda a, b: tf.math.log(2 * a) - tf.math.log(2 * b))(a, b)
    assert_rounded(value, np.log1p(-0.5 / np.float64(b)))


def test_points_of_other_shapes_are_broadcast(mode):
    a, b = tf.constant([[1.0], [2.0]]), tf.constant([1.0, 1.001, 5.0])
    value, (in_a, in_b) = modes.value_and_gradients(
        rewritten(RULES, lambda a, b: tf.exp(a) - tf.exp(b)), [a, b], mode
    )
    wide_a, wide_b = np.float64(a), np.float64(b)
    assert_rounded(value, np.exp(wide_a) - np.exp(wide_b))
    assert_rounded(in_a, 3 * np.exp(wide_a))
    assert_rounded(in_b, -2 * np.exp(wide_b))


# The function less its value at 0, which is a number; and the truth.
LESS_NUMBERS = {
    "sqrt": (lambda x: tf.sqrt(x + 3) - 1.7320508, lambda x: mpmath.sqrt(x + 3)),
    "root": (lambda x: (16 + x) ** 0.25 - 2, lambda x: (16 + x) ** mpmath.mpf(0.25)),
    "log": (lambda x: tf.math.log(x + 2) - 0.6931472, lambda x: mpmath.log(x + 2)),
    "softplus": (lambda x: tf.nn.softplus(x) - 0.6931472, _softplus),
    "sigmoid": (lambda x: 0.5 - tf.sigmoid(x), lambda x: -_sigmoid(x)),
}


@pytest.mark.parametrize("name", LESS_NUMBERS)
def test_less_its_value_at_a_number_it_keeps_its_digits(name, mode):
    function, truth = LESS_NUMBERS[name]
    x = tf.constant([1e-9, -1e-4, 0.25, 5.0])
    assert "difference-of-function" in fired(RULES, function, x)
    value, (slope,) = modes.value_and_gradients(rewritten(RULES, function), [x], mode)
    exact = oracle.exact(lambda x: truth(x) - truth(mpmath.mpf(0)), x)
    assert oracle.ulp_error(value, exact) <= 6
    wanted = oracle.exact(lambda x: mpmath.diff(truth, x), x).astype(float)
    assert_rounded(slope, wanted)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tf.sqrt(x + 3) - 1.732,
        lambda x: tf.sqrt(x) - 1.7320508,
        lambda x: tf.nn.softplus(x) - 0.7,
        lambda x: tf.sigmoid(x) + 0.5,
        # The value at the number is beyond float64.
        lambda x: tf.nn.softplus(x + 1000) - 1000,
        lambda x: tf.sigmoid(x - 1000) - 0.25,
        lambda x: (x + 1e30) ** 12 - 1,
        lambda x: x**3 - (x + 1) ** 2.5,
    ],
)
def test_less_another_number_or_power_it_is_left_alone(function):
    found = fired(RULES, function, tf.constant([0.5, 2.0]))
    assert "difference-of-function" not in found
