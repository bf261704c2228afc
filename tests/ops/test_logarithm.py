"""Functions of one number: logarithms, exponentials and those of the normal tail."""

import mpmath
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings, strategies as st

from tests.ops.edges import assert_rounded, documented
from tests.ops.elementwise import INF, NAN, edges, errors
from tests.support import modes, oracle
from tfsafe import ops
from tfsafe._limits import LIMITS

ONE = mpmath.mpf(1)


def _positive(dtype):
    # The whole range, and closely around 1, where the logarithm vanishes.
    limits = LIMITS[dtype.name]
    wide = oracle.grid(dtype, 4 * limits.tiny, limits.max / 4, 30)
    return tf.concat([wide, oracle.grid(dtype, 0.9, 1.1, 16)], 0)


def _above_minus_one(dtype):
    limits = LIMITS[dtype.name]
    wide = oracle.grid(dtype, 4 * limits.tiny, limits.max / 4, 25)
    negative = -oracle.grid(dtype, 4 * limits.tiny, 1 - 4 * limits.eps, 20)
    return tf.concat([wide, negative], 0)


def _probabilities(dtype):
    limits = LIMITS[dtype.name]
    low = oracle.grid(dtype, 4 * limits.tiny, 0.5, 20)
    middle = 0.5 + oracle.grid(dtype, 4 * limits.eps, 0.4, 10)
    return tf.concat([low, middle, 1 - oracle.grid(dtype, limits.eps, 0.5, 20)], 0)


def _both_signs(dtype):
    high = min(80.0, -np.log(LIMITS[dtype.name].tiny))
    points = oracle.grid(dtype, 4 * LIMITS[dtype.name].tiny, high, 25)
    return tf.concat([points, -points], 0)


def _exponents(dtype):
    limits = LIMITS[dtype.name]
    return oracle.grid(dtype, limits.max**-0.4, -np.log(limits.tiny) / 2, 40)


def _tails(dtype):
    limits = LIMITS[dtype.name]
    far = oracle.grid(dtype, 4 * limits.tiny, min(limits.max**0.4, 1e6), 30)
    # Both sides of the switches, at 1/2 and at 8.
    near = tf.constant([0.499, 0.501, 7.9, 8.0, 8.1], dtype)
    return tf.concat([far, near, -oracle.grid(dtype, 1e-4, 20.0, 12)], 0)


def _interval(dtype):
    limits = LIMITS[dtype.name]
    small = oracle.grid(dtype, 4 * limits.tiny, 0.9, 20)
    return tf.concat([small, -(1 - oracle.grid(dtype, limits.eps, 0.6, 20))], 0)


def _log_erfc(x):
    if x < 1:
        return mpmath.log1p(-mpmath.erf(x))
    if x < 1000:
        return mpmath.log(mpmath.erfc(x))
    # Beyond, mpmath's own is 0: by the confluent hypergeometric function.
    return mpmath.log(mpmath.hyperu(0.5, 0.5, x * x) / mpmath.sqrt(mpmath.pi)) - x * x


def _hazard(x):
    if x < 1000:
        return 2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-x * x) / mpmath.erfc(x)
    return 2 / mpmath.hyperu(0.5, 0.5, x * x)


def _erfinv_slope(x):
    return mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(mpmath.erfinv(x) ** 2)


# For each: the points, the value, the slope and the second derivative. Where there are
# two functions, the second one gives the size of the terms.
TRUTHS = {
    "log": (_positive, mpmath.log, lambda x: 1 / x, lambda x: -1 / x**2),
    "log1p": (
        _above_minus_one,
        mpmath.log1p,
        lambda x: 1 / (1 + x),
        lambda x: -1 / (1 + x) ** 2,
    ),
    "logit": (
        _probabilities,
        lambda x: mpmath.log(x / (1 - x)),
        lambda x: 1 / (x * (1 - x)),
        (
            lambda x: (2 * x - 1) / (x * (1 - x)) ** 2,
            lambda x: 1 / (x * (1 - x)) ** 2,
        ),
    ),
    "log_sigmoid": (
        _both_signs,
        lambda x: -mpmath.log1p(mpmath.exp(-x)),
        lambda x: 1 / (1 + mpmath.exp(x)),
        lambda x: -1 / ((1 + mpmath.exp(x)) * (1 + mpmath.exp(-x))),
    ),
    "expm1": (_both_signs, mpmath.expm1, mpmath.exp, mpmath.exp),
    "log_cosh": (
        _both_signs,
        # Twice the digits, because the cosine of a small number is near 1.
        lambda x: mpmath.log1p(2 * mpmath.sinh(x / 2) ** 2),
        mpmath.tanh,
        lambda x: mpmath.sech(x) ** 2,
    ),
    "log1mexp": (
        lambda dtype: -_exponents(dtype),
        lambda x: (
            mpmath.log(-mpmath.expm1(x)) if x > -1 else mpmath.log1p(-mpmath.exp(x))
        ),
        lambda x: -1 / mpmath.expm1(-x),
        lambda x: -1 / mpmath.expm1(-x) / -mpmath.expm1(x),
    ),
    "log_expm1": (
        _exponents,
        (lambda x: mpmath.log(mpmath.expm1(x)), lambda x: ONE),
        lambda x: -1 / mpmath.expm1(-x),
        lambda x: 1 / mpmath.expm1(-x) / mpmath.expm1(x),
    ),
    "erfinv": (
        _interval,
        mpmath.erfinv,
        _erfinv_slope,
        lambda x: 2 * mpmath.erfinv(x) * _erfinv_slope(x) ** 2,
    ),
    "log_erfc": (
        _tails,
        _log_erfc,
        lambda x: -_hazard(x),
        lambda x: -_hazard(x) * (_hazard(x) - 2 * x),
    ),
}
# In ulps for the value, the slope and the second derivative: TensorFlow's own `log1p`,
# `softplus`, `tanh` and `sigmoid` have more than 3, and those of XLA more than that.
BUDGETS = {
    ("log_sigmoid", "float32"): [5, 6, 9],
    ("log_sigmoid", "float64"): [5, 5, 6],
    ("log_cosh", "float32"): [8, 5, 12],
    ("log_cosh", "float64"): [8, 8, 12],
    ("log1p", "float64", "xla"): [60, 3, 3],
    ("logit", "float64", "xla"): [60, 5, 5],
    ("log_cosh", "float64", "xla"): [60, 8, 12],
    ("log1mexp", "float32", "xla"): [5, 5, 8],
    ("log1mexp", "float64", "xla"): [60, 5, 8],
    ("log_expm1", "float32", "xla"): [5, 5, 8],
    ("log_expm1", "float64", "xla"): [60, 5, 8],
    ("erfinv", "float64"): [10, 100, 200],
    # The second derivative is a difference that cancels as x comes to 8.
    ("log_erfc", "float64"): [10, 10, 600],
    ("log_erfc", "float64", "xla"): [10, 40, 4000],
}
DEFAULTS = {"float16": 0.51, "bfloat16": 0.51, "float32": 5, "float64": 5}


@pytest.mark.parametrize("name", TRUTHS)
def test_it_agrees_with_mpmath_up_to_second_order(name, mode, dtype):
    points, *truths = TRUTHS[name]
    got = errors(getattr(ops, name), [points(dtype)], truths, mode)
    budget = BUDGETS.get((name, dtype.name), [DEFAULTS[dtype.name]] * 3)
    budget = BUDGETS.get((name, dtype.name, mode), budget)
    assert np.all(np.array(got) <= budget), got


EDGES = {
    "log": {
        "x = 0": (0.0, -INF, 0.0),
        "x = inf": (INF, INF, 0.0),
        "x < 0": (-2.0, NAN, NAN),
        "x = NaN": (NAN, NAN, NAN),
    },
    "log1p": {
        "x = -1": (-1.0, -INF, 0.0),
        "x = inf": (INF, INF, 0.0),
        "x < -1": (-2.0, NAN, NAN),
        "x = NaN": (NAN, NAN, NAN),
    },
    "logit": {
        "x = 0": (0.0, -INF, 0.0),
        "x = 1": (1.0, INF, 0.0),
        "x < 0": (-0.5, NAN, NAN),
        "x > 1": (1.5, NAN, NAN),
        "x = NaN": (NAN, NAN, NAN),
    },
    "log_sigmoid": {
        "x = inf": (INF, 0.0, 0.0),
        "x = -inf": (-INF, -INF, 1.0),
        "x = NaN": (NAN, NAN, NAN),
    },
    "expm1": {
        "x = inf": (INF, INF, INF),
        "x = -inf": (-INF, -1.0, 0.0),
        "x = NaN": (NAN, NAN, NAN),
    },
    "log_cosh": {
        "x = inf": (INF, INF, 1.0),
        "x = -inf": (-INF, INF, -1.0),
        "x = NaN": (NAN, NAN, NAN),
    },
    "log1mexp": {
        "x = 0": (0.0, -INF, 0.0),
        "x = -inf": (-INF, 0.0, 0.0),
        "x > 0": (0.5, NAN, NAN),
        "x = NaN": (NAN, NAN, NAN),
    },
    "log_expm1": {
        "x = 0": (0.0, -INF, 0.0),
        "x = inf": (INF, INF, 1.0),
        "x < 0": (-0.5, NAN, NAN),
        "x = NaN": (NAN, NAN, NAN),
    },
    "erfinv": {
        "x = 1": (1.0, INF, 0.0),
        "x = -1": (-1.0, -INF, 0.0),
        "x > 1": (1.5, NAN, NAN),
        "x = NaN": (NAN, NAN, NAN),
    },
    "log_erfc": {
        "x = inf": (INF, -INF, -INF),
        "x = -inf": (-INF, np.log(2), 0.0),
        "x = NaN": (NAN, NAN, NAN),
    },
}


@pytest.mark.parametrize("name", EDGES)
def test_its_edges_are_those_of_its_docstring(name, mode, dtype):
    op = getattr(ops, name)
    assert list(EDGES[name]) == documented(op)
    got, wanted, silent = edges(op, list(EDGES[name].values()), dtype, mode)
    for result, truth in zip(got, wanted, strict=True):
        assert_rounded(result, truth)
    for result in silent:
        assert_rounded(result, 0.0)


def test_the_second_derivative_of_log_is_nan_outside_the_domain(mode):
    x = tf.constant([-2.0, 0.0])
    assert_rounded(modes.second_gradient(ops.log, x, mode), [NAN, 0.0])


numbers = st.floats(-80.0, 80.0, width=32, allow_subnormal=False)
positive = st.floats(2.0**-100, 2.0**100, width=32, allow_subnormal=False)
laws = settings(deadline=None, derandomize=True, print_blob=True, max_examples=50)


@laws
@given(x=numbers)
def test_the_log_odds_of_the_sigmoid_are_its_argument(x):
    x = tf.constant(x)
    yes, no = ops.log_sigmoid(x), ops.log_sigmoid(-x)
    assert yes <= 0
    assert no <= 0
    assert abs(yes - no - x) <= 5e-7 * max(abs(x), 1)


@laws
@given(x=positive)
def test_the_logarithm_of_an_inverse_changes_its_sign(x):
    x = tf.constant(x)
    # 1 / x is rounded, which moves the logarithm by half a machine epsilon.
    assert abs(ops.log(x) + ops.log(1 / x)) <= 2e-7 * abs(ops.log(x)) + 1e-7


@laws
@given(x=st.floats(2.0**-60, 80.0, width=32))
def test_softplus_takes_back_its_inverse(x):
    x = tf.constant(x)
    assert abs(tf.nn.softplus(ops.log_expm1(x)) - x) <= 3e-6 * x


@laws
@given(x=st.floats(-80.0, -(2.0**-60), width=32))
def test_the_complement_of_the_complement_is_the_probability(x):
    rest = ops.log1mexp(tf.constant(x))
    assert rest <= 0
    # The complement's rounding, seen through the slope of the inverse.
    slack = 1e-6 * abs(x) + 3e-7 * float(abs(rest) * tf.exp(rest) / -tf.math.expm1(x))
    assert rest > -(2.0**-24) or abs(ops.log1mexp(rest) - x) <= slack


@laws
@given(x=numbers)
def test_log_cosh_is_even_and_at_most_the_absolute_value(x):
    value = ops.log_cosh(tf.constant(x))
    assert value == ops.log_cosh(tf.constant(-x))
    assert 0 <= value <= abs(x)
