"""Differences of nearly equal numbers keep their digits when they are rewritten."""

import math

import mpmath
import numpy as np
import pytest
import tensorflow as tf

from tests.ops.edges import INF, NAN, assert_rounded
from tests.rewriting.emitting import fired, in_modes, rewritten, second_gradients
from tests.rewriting.tables import RULES
from tests.support import modes, oracle
from tests.support.oracle import assert_close
from tfsafe import stabilize

# The rule, ways to write the formula, the truth, and points where digits are lost.
ELEMENTWISE = {
    "exp-minus-one": (
        [
            lambda x: tf.exp(x) - 1.0,
            lambda x: -1 + tf.exp(x),
            lambda x: -(1.0 - tf.exp(x)),
        ],
        mpmath.expm1,
        [1e-8, -1e-5, 0.5, 3.0],
    ),
    "log-of-one-plus": (
        [
            lambda x: tf.math.log(1 + x),
            lambda x: tf.math.log(x + 1.0),
            lambda x: tf.math.log(1 - (-x)),
            lambda x: tf.math.log((2.0 * x) * 0.5 + 1),
        ],
        mpmath.log1p,
        [1e-8, -1e-5, 0.5, 3.0],
    ),
    "log-of-one-plus of a cosine": (
        [
            lambda x: tf.math.log(1 - tf.cos(x)),
            lambda x: tf.math.log(-tf.cos(x) + 1),
        ],
        lambda x: mpmath.log(2 * mpmath.sin(x / 2) ** 2),
        [1e-8, -1e-3, 0.5, 3.0],
    ),
    "log-of-one-plus of a root": (
        [lambda x: tf.math.log(1 - tf.sqrt(x)), lambda x: tf.math.log(1 - x**0.5)],
        lambda x: mpmath.log(1 - mpmath.sqrt(x)),
        [1 - 6e-8, 0.999, 0.5, 0.03125],
    ),
    "log-of-one-plus of a power": (
        [
            lambda x: tf.math.log(1 - (1 - x) ** 8.0),
            lambda x: tf.math.log(-((1 - x) ** 8.0) + 1),
        ],
        lambda x: mpmath.log(1 - (1 - x) ** 8),
        [1e-8, 1e-3, 0.0625, 0.125],
    ),
    "complement-of-power of a logarithm": (
        [lambda x: tf.math.log1p(-(x**0.25))],
        lambda x: mpmath.log(1 - x**0.25),
        [1 - 6e-8, 0.999, 0.5, 0.25],
    ),
    "complement-of-power of a logarithm of a complement": (
        [lambda x: tf.math.log1p(-((1 - x) ** 8.0))],
        lambda x: mpmath.log(1 - (1 - x) ** 8),
        [1e-8, 1e-3, 0.0625, 0.125],
    ),
    "complement": (
        [
            lambda x: 1 - tf.cos(x),
            lambda x: -tf.cos(x) + 1,
            lambda x: -(tf.cos(x) - 1),
        ],
        lambda x: 2 * mpmath.sin(x / 2) ** 2,
        [1e-8, -1e-3, 0.5, 3.0],
    ),
    "complement of a sigmoid": (
        [lambda x: 1 - tf.sigmoid(x), lambda x: 1.0 - tf.nn.sigmoid(x)],
        lambda x: 1 / (1 + mpmath.exp(x)),
        [20.0, 50.0, -5.0, 0.5],
    ),
    "difference-from-one of a power of a sigmoid": (
        [lambda x: 1 - tf.sigmoid(x) ** 16, lambda x: -(tf.sigmoid(x) ** 16.0 - 1)],
        lambda x: 1 - (1 + mpmath.exp(-x)) ** -16,
        [20.0, 50.0, -1.0, 0.5],
    ),
    "difference-from-one of a square of a power of a sigmoid": (
        [
            lambda x: 1 - (tf.sigmoid(x) ** 8) ** 2,
            lambda x: 1 - tf.square(tf.sigmoid(x) ** 8),
        ],
        lambda x: 1 - (1 + mpmath.exp(-x)) ** -16,
        [20.0, 50.0, -1.0, 0.5],
    ),
    "difference-from-one of a product of sigmoids": (
        [lambda x: 1 - tf.sigmoid(x) * tf.sigmoid(2 * x)],
        lambda x: 1 - 1 / ((1 + mpmath.exp(-x)) * (1 + mpmath.exp(-2 * x))),
        [20.0, 40.0, -1.0, 0.5],
    ),
    "complement of a latitude": (
        [
            lambda x: 2 * tf.atan(tf.exp(x)) - math.pi / 2,
            lambda x: math.pi / 2 - 2 * tf.atan(tf.exp(-x)),
        ],
        lambda x: mpmath.atan(mpmath.sinh(x)),
        [1e-6, -1e-3, 0.5, 3.0],
    ),
    "complement of a shifted square": (
        [
            lambda x: 1 - (1 - x) ** 2,
            lambda x: -(tf.square(1 - x) - 1),
            lambda x: 1 - (1 + (-x)) * (1 + (-x)),
        ],
        lambda x: x * (2 - x),
        [1e-8, -1e-3, 0.5, 3.0],
    ),
    "complement-of-power of a quotient": (
        [lambda x: 1 - (x / 3.0) ** 0.25, lambda x: -((x / 3.0) ** 0.25 - 1)],
        lambda x: 1 - (x / 3) ** 0.25,
        [3.0000002, 2.999, 3.5, 1e-4],
    ),
    "complement of a squared tanh": (
        [
            lambda x: 1 - tf.tanh(x) ** 2,
            lambda x: 1 - tf.square(tf.tanh(x)),
            lambda x: 1 - tf.tanh(x) * tf.tanh(x),
        ],
        lambda x: 1 / mpmath.cosh(x) ** 2,
        [20.0, -9.0, 1e-3, 0.5],
    ),
    "complement of a tanh": (
        [lambda x: 1 - tf.tanh(x), lambda x: -(tf.tanh(x) - 1)],
        lambda x: 2 / (1 + mpmath.exp(2 * x)),
        [20.0, 9.0, -5.0, 0.5],
    ),
    "complement of a negative tanh": (
        [lambda x: 1 + tf.tanh(x), lambda x: tf.tanh(x) + 1.0],
        lambda x: 2 / (1 + mpmath.exp(-2 * x)),
        [-20.0, -3.0, 5.0, 0.5],
    ),
    "complement of a negative erf": (
        [lambda x: 1 + tf.math.erf(x)],
        lambda x: mpmath.erfc(-x),
        [-5.0, -3.0, 0.5, 2.0],
    ),
    "complement of a erfc": (
        [lambda x: 1 - tf.math.erfc(x)],
        mpmath.erf,
        [1e-8, -1e-3, 0.5, -2.0],
    ),
    "complement of a cosh": (
        [lambda x: tf.cosh(x) - 1, lambda x: -(1 - tf.cosh(x))],
        lambda x: 2 * mpmath.sinh(x / 2) ** 2,
        [1e-8, -1e-3, 0.5, 3.0],
    ),
    "complement of a negative cosine": (
        [
            lambda x: 1 + tf.cos(x),
            lambda x: -(-tf.cos(x) - 1),
            lambda x: 2 * (0.5 + 0.5 * tf.cos(x)),
        ],
        lambda x: 2 * mpmath.cos(x / 2) ** 2,
        [3.1415925, -3.125, 0.5, 1e-8],
    ),
    "complement of a sine": (
        [
            lambda x: 1 - tf.sin(x),
            lambda x: 1 + tf.sin(-x),
            lambda x: 2 * (0.5 - 0.5 * tf.sin(x)),
        ],
        lambda x: 1 - mpmath.sin(x),
        [1.5707963, 1.5, -2.0, 1e-8],
    ),
    "atanh-of-one-minus of a small number": (
        [lambda x: tf.atanh(1 - x), lambda x: -tf.atanh(x - 1)],
        lambda x: mpmath.log((2 - x) / x) / 2,
        [1e-30, 1.9999999, 0.75, 1.25],
    ),
    "log-of-one-plus of a size": (
        [lambda x: tf.math.log(tf.abs(1 + x)), lambda x: tf.math.log(abs(x + 1))],
        lambda x: mpmath.log(abs(1 + x)),
        [1e-10, -1e-3, -3.0, 5.0],
    ),
    "softplus-minus-argument": (
        [
            lambda x: tf.nn.softplus(x) - x,
            lambda x: -(x - tf.nn.softplus(x)),
            lambda x: tf.math.log1p(tf.exp(x)) - x,
            lambda x: tf.math.log(1 + tf.exp(x)) - x,
        ],
        lambda x: mpmath.log1p(mpmath.exp(-x)),
        [50.0, 8.0, 0.5, -3.0],
    ),
    "root-minus-argument": (
        [
            lambda x: tf.sqrt(x * x + 1) - x,
            lambda x: -(x - tf.sqrt(1 + x**2)),
            lambda x: tf.sqrt(tf.square(-x) + 1) + (-x),
        ],
        lambda x: 1 / (mpmath.sqrt(x * x + 1) + x),
        [1e4, 200.0, -1.5, 0.5],
    ),
    "root-minus-argument of a larger square": (
        [lambda x: x - tf.sqrt(x * x - 1)],
        lambda x: 1 / (x + mpmath.sqrt(x * x - 1)),
        [1e4, 200.0, 3.0, 1.5],
    ),
    "inverse-by-hand": (
        [
            lambda x: tf.math.log(x + tf.sqrt(x * x - 1)),
            lambda x: tf.math.log(tf.sqrt((x - 1) * (1 + x)) + x),
            lambda x: tf.math.log(x + tf.sqrt(x + 1) * tf.sqrt(x - 1)),
        ],
        mpmath.acosh,
        [1e25, 1.125, 3.0, 1.5],
    ),
    "inverse-by-hand of a sum with 1": (
        [
            lambda x: tf.math.log((1 + x) + tf.sqrt((1 + x) ** 2 - 1)),
            lambda x: tf.math.log(tf.sqrt(tf.square(x + 1) - 1) + (x + 1)),
            lambda x: tf.math.log((1 + x) + tf.sqrt(((1 + x) - 1) * ((1 + x) + 1))),
            lambda x: tf.math.log(
                (1 + x) + tf.sqrt((1 + x) - 1) * tf.sqrt((1 + x) + 1)
            ),
        ],
        lambda x: 2 * mpmath.asinh(mpmath.sqrt(x / 2)),
        [1e25, 1e-7, 3e-4, 1.5],
    ),
    "function-less-tangent": (
        [lambda x: x - tf.tan(x), lambda x: -(tf.tan(x) - x)],
        lambda x: x - mpmath.tan(x),
        [1e-4, 0.01, 0.5, 1.0],
    ),
    "complement of a square": (
        [lambda x: 1 - x**2, lambda x: 1.0 - tf.square(x), lambda x: -(x * x - 1)],
        lambda x: 1 - x * x,
        [1 - 6e-8, 0.999, 1e-8, 3.0],
    ),
    "sqrt1pm1": (
        [lambda x: tf.sqrt(1 + x) - 1, lambda x: (x + 1) ** 0.5 - 1.0],
        lambda x: mpmath.sqrt(1 + x) - 1,
        [1e-8, -1e-5, 0.5, 3.0],
    ),
    "difference-from-one of a root": (
        [lambda x: 1 - tf.sqrt(x), lambda x: -(tf.sqrt(x) - 1)],
        lambda x: 1 - mpmath.sqrt(x),
        [1 - 6e-8, 0.999, 0.03125, 4.0],
    ),
}


@pytest.mark.parametrize(
    "function",
    [
        lambda x: 1 - tf.exp(x) / tf.reduce_max(tf.exp(x)),
        lambda x: 1 - tf.exp(x) / tf.exp(x[1]),
    ],
)
def test_a_quotient_of_exponentials_less_1_is_right_where_both_overflow(function, mode):
    x = tf.constant([99.0, 100.0, -200.0])
    value, (slope,) = modes.value_and_gradients(stabilize(function), [x], mode)
    assert_close(value, [1 - np.exp(-1), 0.0, 1.0])
    assert_close(slope, [-np.exp(-1), np.exp(-1), 0.0])


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_a_difference_keeps_its_digits(name, mode):
    functions, truth, points = ELEMENTWISE[name]
    x = tf.constant(points)
    value, (gradient,) = modes.value_and_gradients(
        rewritten(RULES, functions[0]), [x], mode
    )
    assert oracle.ulp_error(value, oracle.exact(truth, x)) <= 6
    slope = oracle.exact(lambda x: mpmath.diff(truth, x), x)
    assert_close(gradient, slope, 12, why="a difference of derivatives")


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_it_is_recognised_however_it_is_written(name):
    functions, truth, points = ELEMENTWISE[name]
    x = tf.constant(points, tf.float64)
    for function in functions:
        assert name.split(" of a ")[0] in fired(RULES, function, x)
        value = rewritten(RULES, function)(x)
        assert oracle.ulp_error(value, oracle.exact(truth, x)) <= 6


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_second_gradients_and_half_precision_work(name):
    functions, truth, points = ELEMENTWISE[name]
    x = tf.constant(points[1:], tf.float32)
    (second,) = second_gradients(RULES, functions[0], [x], "graph")
    wanted = oracle.exact(lambda x: mpmath.diff(truth, x, 2), x)
    assert_close(second, wanted, 820, why="a difference of second derivatives")
    half = tf.constant(points[2:], tf.float16)
    value = rewritten(RULES, functions[0])(half)
    assert oracle.ulp_error(value, oracle.exact(truth, half)) <= 0.51


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_nan_and_infinity_from_outside_come_out_as_before(name):
    function = ELEMENTWISE[name][0][0]
    x = tf.constant([NAN, INF, -INF])
    assert_rounded(rewritten(RULES, function)(x), function(x))


def test_ones_of_the_same_shape_count_as_the_number():
    x = tf.TensorSpec([None, 3], tf.float32)
    assert fired(RULES, lambda x: tf.ones_like(x) - tf.sigmoid(x), x) == ["complement"]

    def of_first(x):
        return tf.ones_like(x) - tf.sigmoid(x[:1])

    assert "complement" not in fired(RULES, of_first, x)
    rows = np.float32([[3.0, 0.5, -3.0], [1.0, 2.0, 3.0]])
    value = rewritten(RULES, of_first)(tf.constant(rows))
    right = 1 / (1 + np.exp(np.float64(rows[:1])))
    assert_close(value, np.repeat(right, 2, axis=0))


NEAR_MISSES = {
    "another number": lambda x: tf.exp(x) - 1.0001,
    "a sum": lambda x: tf.exp(x) + 1,
    "a number of a shape of its own": lambda x: tf.exp(x) - tf.constant([[1.0], [1.0]]),
    "another factor": lambda x: 1 - 2.001 * tf.cos(x),
    "nearly 1": lambda x: 1.0001 - tf.cos(x),
    "a plus": lambda x: 0.5 + tf.cos(x),
    "a sine": lambda x: 2 - tf.sin(x),
    "a cube": lambda x: 1 + tf.tanh(x) ** 3,
    "a product of two": lambda x: 1 - tf.tanh(x) * tf.sin(x),
    "another number beside the root": lambda x: tf.sqrt(1 + tf.nn.relu(x)) - 2,
    "a logarithm of another sum": lambda x: tf.math.log(1.5 + tf.nn.relu(x)),
    "integers": lambda x: tf.cast(tf.cast(x, tf.int32) ** 2 - 1, tf.float32),
    "complex numbers": lambda x: tf.math.real(tf.exp(tf.complex(x, x)) - 1),
    "a softplus less another tensor": lambda x: tf.nn.softplus(x) - 2 * x,
    "a sum of squares": lambda x: x * x + tf.sin(x) ** 2,
    "a shifted square less another number": lambda x: 1.5 - (1 - x) ** 2,
    "a difference of powers": lambda x: x**3 - tf.sin(x) ** 4,
    "a guard that is exact": lambda x: (1 - x) + 0.5,
    "a guard of a sum": lambda x: (tf.sin(x) + x) + 1e-7,
    "a margin": lambda x: (tf.cos(x) - x) + 0.5,
}


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_a_near_miss_is_left_alone(name):
    found = fired(RULES, NEAR_MISSES[name], tf.constant([0.5, 2.0]))
    assert not set(found) - {"exp"}, found


def test_a_root_of_a_quadratic_equation_keeps_its_digits(mode):
    def root(b, c):
        return (-b + tf.sqrt(b * b - 4 * c)) / 2

    b, c = tf.constant([1e4, 1e25, -3.0]), tf.constant([1.0, 1e20, 2.0])
    assert "root-minus-argument" in fired(RULES, root, b, c)
    value, (in_b, in_c) = modes.value_and_gradients(
        rewritten(RULES, root), [b, c], mode
    )
    wide_b, wide_c = (
        np.float64(b).astype(np.longdouble),
        np.float64(c).astype(np.longdouble),
    )
    length = np.sqrt(wide_b**2 - 4 * wide_c)
    wanted = np.where(
        wide_b > 0, -2 * wide_c / (wide_b + length), (length - wide_b) / 2
    )
    assert_rounded(value, wanted.astype(float))
    assert_rounded(in_b, (-wanted / length).astype(float))
    assert_rounded(in_c, (-1 / length).astype(float))


def test_a_length_less_one_side_keeps_its_digits(mode):
    def function(x, y):
        return tf.sqrt(x * x + y * y) - x

    x, y = tf.constant([1e4, 1e25, 0.0]), tf.constant([1.0, 1e20, 0.0])
    assert fired(RULES, function, x, y)[-1] == "root-minus-argument"
    value, (in_x, in_y) = modes.value_and_gradients(
        rewritten(RULES, function), [x, y], mode
    )
    assert_rounded(value, [5e-5, 5e14, 0.0])
    assert_rounded(in_x, [-5e-9, -5e-11, 0.0])
    assert_rounded(in_y, [1e-4, 1e-5, 0.0])


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y, z: tf.sqrt(x * x + y * y + z) - x,
        lambda x, y, z: -tf.sqrt(y * y + x**2 + z) * -1 - x,
        lambda x, y, z: 2 * (tf.sqrt(z + x**2 + y * y) + -x) / 2,
    ],
)
def test_a_root_of_three_terms_less_one_keeps_its_digits(function, mode):
    x, y, z = (tf.constant(each) for each in ([1e4, -3.0], [1.0, 1.0], [4.0, 6.0]))
    assert "root-minus-argument" in fired(RULES, function, x, y, z)
    value, slopes = modes.value_and_gradients(
        rewritten(RULES, function), [x, y, z], mode
    )
    assert function(x, y, z)[0] != value[0]
    assert_rounded(value, [2.5e-4, 7.0])
    for slope, right in zip(
        slopes, ([-2.5e-8, -1.75], [1e-4, 0.25], [5e-5, 0.125]), strict=True
    ):
        assert_rounded(slope, right)


def test_a_root_of_three_terms_less_twice_one_is_left_alone():
    def function(x, y, z):
        return tf.sqrt(x * x + y * y + z) - 2 * x

    found = fired(RULES, function, *(tf.constant([0.5, 2.0]) for _ in range(3)))
    assert "root-minus-argument" not in found


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: a * a - b * b,
        lambda a, b: tf.square(a) - b**2,
        lambda a, b: -(b * b) + a * a,
    ],
)
def test_a_difference_of_squares_is_a_product(function, mode):
    a, b = tf.constant([1.0, 3e19, INF, NAN]), tf.constant([1 - 6e-8, 3e19, 1.0, 1.0])
    assert fired(RULES, function, a, b)[-1] == "difference-of-squares"
    value, (in_a, in_b) = modes.value_and_gradients(
        rewritten(RULES, function), [a, b], mode
    )
    wanted = np.float64(a) ** 2 - np.float64(b) ** 2
    assert_rounded(value, wanted)
    assert_rounded(in_a, 2 * np.float64(a))
    assert_rounded(in_b, -2 * np.float64(b))


# --- variance ----------------------------------------------------------------------

# The formula, the axis and whether it is kept.
VARIANCES = {
    "mean of squares": (
        lambda x: tf.reduce_mean(x * x) - tf.reduce_mean(x) ** 2,
        None,
        False,
    ),
    "rows": (
        lambda x: (
            tf.reduce_mean(tf.square(x), axis=1) - tf.square(tf.reduce_mean(x, axis=1))
        ),
        1,
        False,
    ),
    "rows that keep their axis": (
        lambda x: (
            tf.reduce_mean(x**2, -1, keepdims=True) - tf.reduce_mean(x, -1, True) ** 2
        ),
        1,
        True,
    ),
    "the other way round": (
        lambda x: -(tf.reduce_mean(x, 0) ** 2) + tf.reduce_mean(x * x, 0),
        0,
        False,
    ),
    "sums over a number": (
        lambda x: tf.reduce_sum(x * x, 1) / 3.0 - (tf.reduce_sum(x, 1) / 3.0) ** 2,
        1,
        False,
    ),
}


@pytest.mark.parametrize(("name", "mode"), in_modes(*VARIANCES))
def test_a_variance_keeps_its_digits(name, mode):
    function = VARIANCES[name][0]
    x = tf.constant([[1e4, 1e4 + 0.01, 1e4 + 0.02], [1.0, 2.0, 3.0]])
    assert "variance" in fired(RULES, function, x)
    value, (gradient,) = modes.value_and_gradients(
        rewritten(RULES, function), [x], mode
    )
    axis, keepdims = VARIANCES[name][1:]
    exact = np.float64(x)
    assert_rounded(value, exact.var(axis, keepdims=keepdims))
    centred = exact - exact.mean(axis, keepdims=True)
    count = exact.size if axis is None else exact.shape[axis]
    size = np.abs(centred).max(axis, keepdims=True)
    assert np.all(np.abs(gradient - 2 * centred / count) <= 1e-5 * size)


NO_VARIANCES = {
    "other axes": lambda x, y: tf.reduce_mean(x * x, 0)[:2] - tf.reduce_mean(x, 1) ** 2,
    "other tensors": lambda x, y: tf.reduce_mean(x * x) - tf.reduce_mean(y) ** 2,
    "a covariance": lambda x, y: (
        tf.reduce_mean(x * y) - tf.reduce_mean(x) * tf.reduce_mean(y)
    ),
    "half of the mean": lambda x, y: (
        tf.reduce_mean(x * x) - 0.5 * tf.reduce_mean(x) ** 2
    ),
    "a mean without gradient": lambda x, y: (
        tf.reduce_mean(x * x) - tf.stop_gradient(tf.reduce_mean(x)) ** 2
    ),
    "a sum": lambda x, y: tf.reduce_mean(x * x) - tf.reduce_sum(x) ** 2,
    "a sum over another number": lambda x, y: (
        tf.reduce_sum(x * x, 1) / 3.0 - (tf.reduce_sum(x, 1) / 2.0) ** 2
    ),
    "axes that one of them keeps": lambda x, y: (
        tf.reduce_mean(x * x, 0, keepdims=True) - tf.reduce_mean(x, 0) ** 2
    ),
}


@pytest.mark.parametrize("name", NO_VARIANCES)
def test_what_is_no_variance_is_not_taken_for_one(name):
    args = [tf.ones([2, 3]), tf.ones([2, 3])]
    assert "variance" not in fired(RULES, NO_VARIANCES[name], *args)


# --- moments of windows ---------------------------------------------------------------


def _windows(x):
    return tf.nn.avg_pool1d(x[None, :, None], 2, 1, "VALID")[0, :, 0]


def test_a_window_of_two_adjacent_numbers_keeps_its_variance(mode):
    x = tf.constant([1.0, 1 + 2.0**-23, 1.0, 1.0, 1e4, 1e4 + 2.0**-10])

    def variance(x):
        return _windows(x * x) - _windows(x) ** 2

    assert "raw-moments" in fired(RULES, variance, x)
    value, _ = modes.value_and_gradients(rewritten(RULES, variance), [x], mode)
    pairs = np.stack([np.float64(x[:-1]), np.float64(x[1:])])
    assert_rounded(value, (pairs[0] - pairs[1]) ** 2 / 4)


# The moments of a quotient are differences of their own, in float64 as well.
QUOTIENTS_OF_MOMENTS = {
    "correlation": lambda xy, xx, yy: xy / tf.sqrt(xx * yy + 1e-5),
    "its square": lambda xy, xx, yy: xy * xy / (xx * yy + 1e-5),
    "roots apart": lambda xy, xx, yy: xy / (tf.sqrt(xx + 1e-6) * tf.sqrt(yy + 1e-6)),
    "slope": lambda xy, xx, yy: xy * xy / (xx * xx + 1e-5),
}


@pytest.mark.parametrize(("name", "mode"), in_modes(*QUOTIENTS_OF_MOMENTS))
def test_moments_of_a_constant_are_0_in_quotients(name, mode):
    x = tf.fill([6], 1e8 / 3)
    y = tf.constant([1.1e8, 2.3e8, 3.1e8, 0.7e8, 1.9e8, 3.7e8])

    def function(x, y):
        xy = _windows(x * y) - _windows(x) * _windows(y)
        xx, yy = (_windows(a * a) - _windows(a) ** 2 for a in (x, y))
        return QUOTIENTS_OF_MOMENTS[name](xy, xx, yy)

    value, _ = modes.value_and_gradients(rewritten(RULES, function), [x, y], mode)
    assert np.all(value == 0)


# --- guards ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        lambda p: (1 - p) + 1e-7,
        lambda p: 1e-7 + (1.0 - p),
        lambda p: -((p - 1) - 1e-7),
    ],
)
def test_a_guard_is_kept_from_being_merged(function, mode):
    p = tf.constant([1.0, 0.25])
    assert "guard" in fired(RULES, function, p)
    value, (gradient,) = modes.value_and_gradients(
        rewritten(RULES, function), [p], mode
    )
    assert value[0] == np.float32(1e-7)
    assert value[1] == np.float32(0.75 + 1e-7)
    assert_rounded(gradient, -1.0)


def _min_max(x):
    low = tf.reduce_min(x, -1, keepdims=True)
    high = tf.reduce_max(x, -1, keepdims=True)
    return (x - low) / (high - low + 1e-7)


# Formulas of an x whose elements are equal, and their values.
GUARDED = {
    "a range": (_min_max, 0.0),
    "logarithm of a difference": (
        lambda x: tf.math.log(tf.reduce_max(x, -1) - tf.reduce_min(x, -1) + 1e-7),
        np.log(np.float32(1e-7)),
    ),
    "guard in front": (
        lambda x: 1e-7 + (tf.reduce_max(x, -1) - tf.reduce_min(x, -1)),
        1e-7,
    ),
    "difference by negation": (
        lambda x: (tf.reduce_max(x, -1) + -tf.reduce_min(x, -1)) + 1e-7,
        1e-7,
    ),
    "guard subtracted": (
        lambda x: tf.reduce_max(x, -1) - tf.reduce_min(x, -1) - 1e-7,
        -1e-7,
    ),
    "guard of a row": (
        lambda x: tf.reduce_max(x, -1) - tf.reduce_min(x, -1) + tf.fill([1], 1e-7),
        1e-7,
    ),
    "root of a variance": (
        lambda x: tf.sqrt(
            tf.reduce_mean(x * x, -1) - tf.reduce_mean(x, -1) ** 2 + 1e-6
        ),
        1e-3,
    ),
}


@pytest.mark.parametrize("name", GUARDED)
def test_a_guard_of_any_difference_survives(name, mode):
    function, wanted = GUARDED[name]
    x = tf.constant([[3.0, 3.0, 3.0], [1e4, 1e4, 1e4]])
    value, (gradient,) = modes.value_and_gradients(
        rewritten(RULES, function), [x], mode
    )
    assert_close(value, np.full(value.shape, wanted))
    assert np.isfinite(gradient).all()


def test_without_the_rule_the_optimiser_drops_the_guard_of_a_range():
    # The reason for the rule; if this fails, TensorFlow has changed.
    plain = tf.function(_min_max, autograph=False)
    assert np.isnan(plain(tf.constant([[3.0, 3.0, 3.0]]))).all()


def test_without_the_rule_the_guard_is_merged():
    # The reason for the rule; if this fails, TensorFlow has changed.
    plain = tf.function(lambda p: (1 - p) + 1e-7, autograph=False)
    assert plain(tf.constant([1.0]))[0] != np.float32(1e-7)


def test_a_scaled_function_less_its_tangent_keeps_its_slopes_far_from_there(mode):
    def way(x, s):
        return x - s * tf.math.log(1 + x / s)

    s = np.float64([1e-12, 1e-8, 1e-4, 0.1, 3.0, 1e3, 1e5])
    x = tf.ones(s.shape)
    assert "function-less-tangent" in fired(RULES, way, x, tf.constant(s, tf.float32))
    value, (in_x, in_s) = modes.value_and_gradients(
        rewritten(RULES, way), [x, tf.constant(s, tf.float32)], mode
    )
    with mpmath.workdps(40):
        wide = [mpmath.mpf(float(np.float32(each))) for each in s]
        logs = [mpmath.log1p(1 / each) for each in wide]
        pairs = list(zip(wide, logs, strict=True))
        wanted = [float(1 - each * log) for each, log in pairs]
        slopes = [float(1 / (1 + each) - log) for each, log in pairs]
    assert_rounded(value, wanted)
    assert_rounded(in_x, (1 / (1 + s)).tolist())
    assert_rounded(in_s, slopes)
