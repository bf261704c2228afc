"""Functions of two numbers: weighted logarithms, sums and differences of logarithms."""

import mpmath
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings, strategies as st

from tests.ops.edges import assert_rounded, documented
from tests.ops.elementwise import INF, NAN, derivatives, edges, errors
from tests.support import modes, oracle
from tests.support.oracle import assert_close
from tfsafe import ops
from tfsafe._limits import LIMITS


def _signed(x):
    return x * tf.cast(tf.where(tf.range(len(x)) % 2 == 0, 1, -1), x.dtype)


def _opposite(dtype):
    # One grows as the other one falls, so that all products stay in range.
    limits = LIMITS[dtype.name]
    y = oracle.grid(dtype, limits.max ** (-1 / 3), limits.max ** (1 / 3), 40)
    return [_signed(tf.reverse(y, [0])), y]


def _above_minus_one(dtype):
    x, y = _opposite(dtype)
    near = -(1 - oracle.grid(dtype, LIMITS[dtype.name].eps, 0.99, 20))
    return [tf.concat([x, x[:20]], 0), tf.concat([y, near], 0)]


def _apart(dtype):
    # Differences of every size, at sums of both signs.
    rng = np.random.default_rng(5)
    y = tf.constant(rng.uniform(-5, 5, 40), dtype)
    return [y + oracle.grid(dtype, 2e-2, 20.0, 40), y]


def _either(dtype):
    x, y = _apart(dtype)
    return [tf.concat([x, y], 0), tf.concat([y, x], 0)]


def _shapes(dtype):
    limits = LIMITS[dtype.name]
    x = oracle.grid(dtype, max(1e-10, limits.eps), min(1e10, limits.max**0.6), 24)
    return [x, tf.reverse(oracle.grid(dtype, 0.05, 1e3, 24), [0])]


def _fraction(x, y):
    return 1 / (1 + mpmath.exp(y - x))


def _log_add(x, y):
    return mpmath.log(mpmath.exp(x) + mpmath.exp(y))


def _log_sub(x, y):
    return x + mpmath.log(-mpmath.expm1(y - x))


def _larger(x, y):
    return max(abs(x), abs(y), abs(_log_add(x, y)))


def _odds(x, y):
    return 1 / mpmath.expm1(x - y)


def _curve(x, y):
    return _odds(x, y) * (1 + _odds(x, y))


ZERO = mpmath.mpf(0)
# For each: the points, and the truths in the order of `derivatives`. Where there are
# two functions, the second one gives the size of the terms.
TRUTHS = {
    "xlogy": (
        _opposite,
        lambda x, y: x * mpmath.log(y),
        lambda x, y: mpmath.log(y),
        lambda x, y: x / y,
        lambda x, y: ZERO,
        lambda x, y: 1 / y,
        lambda x, y: 1 / y,
        lambda x, y: -x / y**2,
    ),
    "xlog1py": (
        _above_minus_one,
        lambda x, y: x * mpmath.log1p(y),
        lambda x, y: mpmath.log1p(y),
        lambda x, y: x / (1 + y),
        lambda x, y: ZERO,
        lambda x, y: 1 / (1 + y),
        lambda x, y: 1 / (1 + y),
        lambda x, y: -x / (1 + y) ** 2,
    ),
    "xdivy": (
        lambda dtype: [_signed(each)[8:-8] for each in _opposite(dtype)[::-1]],
        lambda x, y: x / y,
        lambda x, y: 1 / y,
        lambda x, y: -x / y**2,
        lambda x, y: ZERO,
        lambda x, y: -1 / y**2,
        lambda x, y: -1 / y**2,
        lambda x, y: 2 * x / y**3,
    ),
    "log_add_exp": (
        _either,
        (_log_add, _larger),
        _fraction,
        lambda x, y: _fraction(y, x),
        lambda x, y: _fraction(x, y) * _fraction(y, x),
        lambda x, y: -_fraction(x, y) * _fraction(y, x),
        lambda x, y: -_fraction(x, y) * _fraction(y, x),
        lambda x, y: _fraction(x, y) * _fraction(y, x),
    ),
    "log_sub_exp": (
        _apart,
        (_log_sub, lambda x, y: max(abs(x), abs(y), abs(_log_sub(x, y)))),
        lambda x, y: 1 + _odds(x, y),
        lambda x, y: -_odds(x, y),
        lambda x, y: -_curve(x, y),
        _curve,
        _curve,
        lambda x, y: -_curve(x, y),
    ),
    "log_pochhammer": (
        _shapes,
        lambda x, y: mpmath.loggamma(x + y) - mpmath.loggamma(x),
        lambda x, y: mpmath.digamma(x + y) - mpmath.digamma(x),
        lambda x, y: mpmath.digamma(x + y),
        lambda x, y: mpmath.polygamma(1, x + y) - mpmath.polygamma(1, x),
        lambda x, y: mpmath.polygamma(1, x + y),
        lambda x, y: mpmath.polygamma(1, x + y),
        lambda x, y: mpmath.polygamma(1, x + y),
    ),
}
# The differences of a half precision are exact in float32, those of float32 are not:
# what was rounded there shows in the slopes, as large as the difference.
BUDGETS = {
    ("xlog1py", "float64", "xla"): 60,
    ("log_add_exp", "float32"): 30,
    ("log_add_exp", "float64"): 30,
    ("log_sub_exp", "float32"): 60,
    ("log_sub_exp", "float64"): 60,
    ("log_pochhammer", "float64"): 60,
}
DEFAULTS = {"float16": 0.51, "bfloat16": 0.51, "float32": 5, "float64": 5}


@pytest.mark.parametrize("name", TRUTHS)
def test_it_agrees_with_mpmath_up_to_second_order(name, mode, dtype):
    points, *truths = TRUTHS[name]
    got = errors(getattr(ops, name), points(dtype), truths, mode)
    budget = BUDGETS.get((name, dtype.name), DEFAULTS[dtype.name])
    assert max(got) <= BUDGETS.get((name, dtype.name, mode), budget), got


HALF = np.log(0.5)
EDGES = {
    "xlogy": {
        "x = 0, y > 0": (0.0, 0.5, 0.0, HALF, 0.0),
        "x = 0, y = 0": (0.0, 0.0, 0.0, 0.0, 0.0),
        "x > 0, y = 0": (2.0, 0.0, -INF, 0.0, 0.0),
        "x = 0, y < 0": (0.0, -1.0, 0.0, NAN, 0.0),
        "x > 0, y < 0": (2.0, -1.0, NAN, NAN, NAN),
        "x = 0, y = inf": (0.0, INF, 0.0, INF, 0.0),
        "x = 0, y = NaN": (0.0, NAN, NAN, NAN, 0.0),
        "x = NaN, y > 0": (NAN, 0.5, NAN, HALF, NAN),
    },
    "xlog1py": {
        "x = 0, y > -1": (0.0, -0.5, 0.0, HALF, 0.0),
        "x = 0, y = -1": (0.0, -1.0, 0.0, 0.0, 0.0),
        "x > 0, y = -1": (2.0, -1.0, -INF, 0.0, 0.0),
        "x = 0, y < -1": (0.0, -2.0, 0.0, NAN, 0.0),
        "x > 0, y < -1": (2.0, -2.0, NAN, NAN, NAN),
        "x = 0, y = NaN": (0.0, NAN, NAN, NAN, 0.0),
        "x = NaN, y > -1": (NAN, -0.5, NAN, HALF, NAN),
    },
    "xdivy": {
        "x = 0, y > 0": (0.0, 2.0, 0.0, 0.5, 0.0),
        "x = 0, y = 0": (0.0, 0.0, 0.0, 0.0, 0.0),
        "x > 0, y = 0": (2.0, 0.0, INF, 0.0, 0.0),
        "x = 0, y = NaN": (0.0, NAN, NAN, NAN, NAN),
        "x = NaN, y > 0": (NAN, 2.0, NAN, 0.5, NAN),
    },
    "log_add_exp": {
        "x = -inf": (-INF, 2.0, 2.0, 0.0, 1.0),
        "x = -inf = y": (-INF, -INF, -INF, 0.0, 0.0),
        "x = inf": (INF, 2.0, INF, 1.0, 0.0),
        "x = inf = y": (INF, INF, INF, 0.5, 0.5),
        "x = NaN": (NAN, 2.0, NAN, NAN, NAN),
    },
    "log_sub_exp": {
        "y = x": (2.0, 2.0, -INF, 0.0, 0.0),
        "y = x = -inf": (-INF, -INF, -INF, 0.0, 0.0),
        "y = -inf": (2.0, -INF, 2.0, 1.0, 0.0),
        "y > x": (1.0, 2.0, NAN, NAN, NAN),
        "y = NaN": (1.0, NAN, NAN, NAN, NAN),
    },
    "log_pochhammer": {
        "x > 0, y = 0": (1.0, 0.0, 0.0, 0.0, -np.euler_gamma),
        "x = 0, y > 0": (0.0, 1.0, -INF, 0.0, -np.euler_gamma),
        "x > 0, y = -x": (2.0, -2.0, INF, 0.0, 0.0),
        "x < 0, y > -x": (-1.0, 2.0, NAN, NAN, -np.euler_gamma),
        "x > 0, y < -x": (2.0, -3.0, NAN, NAN, NAN),
        "x = NaN, y > 0": (NAN, 1.0, NAN, NAN, NAN),
    },
}


@pytest.mark.parametrize("name", EDGES)
def test_its_edges_are_those_of_its_docstring(name, mode, dtype):
    op = getattr(ops, name)
    assert list(EDGES[name]) == documented(op)
    got, wanted, silent = edges(op, list(EDGES[name].values()), dtype, mode, 2)
    for result, truth in zip(got, wanted, strict=True):
        if dtype == tf.float64:
            assert_close(result, truth, 8, why="TensorFlow's digamma")
        else:
            assert_rounded(result, truth)
    for result in silent:
        assert_rounded(result, 0.0)


@pytest.mark.parametrize("name", ["xlogy", "xlog1py"])
def test_the_second_derivatives_at_the_pole_are_0(name, mode):
    pole = 0.0 if name == "xlogy" else -1.0
    x, y = tf.constant([0.0, 2.0]), tf.constant([pole, pole])
    for result in derivatives(getattr(ops, name), [x, y], mode)[3:]:
        assert_rounded(result, 0.0)


def test_o27_the_mixed_derivative_of_xlogy_at_x_0_is_one_over_y(mode):
    x, y = tf.constant([0.0]), tf.constant([0.5])
    (_, in_xy), (in_yx, _) = modes.second_gradients(ops.xlogy, [x, y], mode)
    assert_rounded([in_xy, in_yx], 2.0)


@pytest.mark.parametrize("name", TRUTHS)
def test_it_sums_the_gradients_of_what_was_broadcast(name):
    op = getattr(ops, name)
    x, y = tf.constant([[2.0], [3.0]]), tf.constant([0.5, 1.0, 1.5])
    full = [tf.repeat(x, 3, 1), tf.repeat(y[tf.newaxis], 2, 0)]
    value, slopes = modes.value_and_gradients(op, [x, y], "graph")
    wanted, each = modes.value_and_gradients(op, full, "graph")
    assert_rounded(value, wanted)
    assert_rounded(slopes[0], tf.reduce_sum(each[0], 1, keepdims=True))
    assert_rounded(slopes[1], tf.reduce_sum(each[1], 0))


numbers = st.floats(-80.0, 80.0, width=32, allow_subnormal=False)
positive = st.floats(2.0**-100, 2.0**100, width=32, allow_subnormal=False)
laws = settings(deadline=None, derandomize=True, print_blob=True, max_examples=50)


@laws
@given(x=positive, y=positive)
def test_xlogy_has_the_sign_of_the_logarithm(x, y):
    x, y = tf.constant(x), tf.constant(y)
    assert tf.sign(ops.xlogy(x, y)) == tf.sign(ops.log(y))


@laws
@given(x=numbers, y=numbers)
def test_a_sum_is_symmetric_and_at_least_its_larger_term(x, y):
    x, y = tf.constant(x), tf.constant(y)
    total = ops.log_add_exp(x, y)
    assert total == ops.log_add_exp(y, x)
    assert max(x, y) <= total <= max(x, y) + 0.6931472


@laws
@given(x=numbers, y=numbers)
def test_a_difference_is_at_most_its_first_term(x, y):
    high, low = tf.constant(max(x, y)), tf.constant(min(x, y))
    assert ops.log_sub_exp(high, low) <= high


@laws
@given(x=st.floats(2.0**-10, 2.0**10, width=32))
def test_a_step_of_the_rising_factorial_is_its_first_factor(x):
    step = ops.log_pochhammer(tf.constant(x), 1.0)
    # At x = 1 the result is 0, and float64 leaves its own rounding.
    assert abs(step - np.log(x)) <= 2e-7 * abs(np.log(x)) + 1e-15


@pytest.mark.parametrize("left", [1e-3, 1.0, 5.0, 1e3])
@pytest.mark.parametrize("x", [3.0, 1e4, 1e6, 1e12])
def test_a_rising_factorial_down_to_a_small_number_has_all_digits(x, left, mode):
    y = np.float64(min(left, x / 4)) - x
    truth = mpmath.loggamma(mpmath.mpf(x) + mpmath.mpf(y)) - mpmath.loggamma(x)
    args = tf.constant(x, tf.float64), tf.constant(y, tf.float64)
    got, _ = modes.value_and_gradients(ops.log_pochhammer, args, mode)
    assert_close(got, float(truth), 32, why="a difference of logarithms of gamma")
