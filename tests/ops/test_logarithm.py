import mpmath
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.edges import INF, NAN, documented, same
from tests.support import modes, oracle
from tfsafe import ops
from tfsafe._limits import LIMITS


def _positive(dtype):
    # The whole range, and closely around 1, where the logarithm vanishes.
    limits = LIMITS[dtype.name]
    wide = oracle.grid(dtype, 4 * limits.tiny, limits.max / 4, 40)
    return tf.concat([wide, oracle.grid(dtype, 0.9, 1.1, 20)], 0)


def _both_signs(dtype):
    points = oracle.grid(dtype, 1e-3, min(80.0, -np.log(LIMITS[dtype.name].tiny)), 30)
    return tf.concat([points, -points], 0)


UNARY = [
    pytest.param(
        ops.log,
        _positive,
        mpmath.log,
        lambda x: 1 / x,
        lambda x: -1 / x**2,
        id="log",
    ),
    pytest.param(
        ops.log_sigmoid,
        _both_signs,
        lambda x: -mpmath.log1p(mpmath.exp(-x)),
        lambda x: 1 / (1 + mpmath.exp(x)),
        lambda x: -1 / ((1 + mpmath.exp(x)) * (1 + mpmath.exp(-x))),
        id="log_sigmoid",
    ),
]


@pytest.mark.parametrize(("op", "points", "value", "slope", "second"), UNARY)
def test_it_agrees_with_mpmath_up_to_second_order(
    op, points, value, slope, second, mode, dtype
):
    x = points(dtype)
    budget = oracle.budget(op.__name__, dtype, mode)
    got, (gradient,) = modes.value_and_gradients(op, [x], mode)
    assert got.dtype == gradient.dtype == dtype
    assert oracle.ulp_error(got, oracle.exact(value, x)) <= budget
    assert oracle.ulp_error(gradient, oracle.exact(slope, x)) <= budget
    bent = modes.second_gradient(op, x, mode)
    assert oracle.ulp_error(bent, oracle.exact(second, x)) <= budget


LOG_EDGES = {
    "x = 0": (0.0, -INF, 0.0),
    "x = inf": (INF, INF, 0.0),
    "x < 0": (-2.0, NAN, NAN),
    "x = NaN": (NAN, NAN, NAN),
}
LOG_SIGMOID_EDGES = {
    "x = inf": (INF, 0.0, 0.0),
    "x = -inf": (-INF, -INF, 1.0),
    "x = NaN": (NAN, NAN, NAN),
}


@pytest.mark.parametrize(
    ("op", "edges"), [(ops.log, LOG_EDGES), (ops.log_sigmoid, LOG_SIGMOID_EDGES)]
)
def test_its_edges_are_those_of_its_docstring(op, edges, mode, dtype):
    assert list(edges) == documented(op)
    x, values, slopes = (
        tf.constant(column, dtype) for column in zip(*edges.values(), strict=True)
    )
    got, (gradient,) = modes.value_and_gradients(op, [x], mode)
    assert same(got, values)
    assert same(gradient, slopes)
    for silent in modes.silent_gradients(op, [x], mode):
        assert same(silent, 0.0)


def test_the_second_derivative_of_log_is_nan_outside_the_domain(mode):
    x = tf.constant([-2.0, 0.0])
    assert same(modes.second_gradient(ops.log, x, mode), [NAN, 0.0])


XLOGY_EDGES = {
    "x = 0, y > 0": (0.0, 0.5, 0.0, np.log(0.5), 0.0),
    "x = 0, y = 0": (0.0, 0.0, 0.0, 0.0, 0.0),
    "x > 0, y = 0": (2.0, 0.0, -INF, 0.0, 0.0),
    "x = 0, y < 0": (0.0, -1.0, 0.0, NAN, 0.0),
    "x > 0, y < 0": (2.0, -1.0, NAN, NAN, NAN),
    "x = 0, y = inf": (0.0, INF, 0.0, INF, 0.0),
    "x = 0, y = NaN": (0.0, NAN, NAN, NAN, NAN),
    "x = NaN, y > 0": (NAN, 0.5, NAN, np.log(0.5), NAN),
}


def test_the_edges_of_xlogy_are_those_of_its_docstring(mode, dtype):
    assert list(XLOGY_EDGES) == documented(ops.xlogy)
    x, y, values, *slopes = (
        tf.constant(column, dtype) for column in zip(*XLOGY_EDGES.values(), strict=True)
    )
    got, gradients = modes.value_and_gradients(ops.xlogy, [x, y], mode)
    assert same(got, values, 1e-2)
    assert same(gradients, slopes, 1e-2)
    for silent in modes.silent_gradients(ops.xlogy, [x, y], mode):
        assert same(silent, 0.0)


def test_xlogy_agrees_with_mpmath_up_to_second_order(mode, dtype):
    limits = LIMITS[dtype.name]
    y = oracle.grid(dtype, limits.max ** (-1 / 3), limits.max ** (1 / 3), 40)
    x = tf.reverse(y, [0]) * tf.constant([1.0, -1.0] * 20, dtype)
    budget = oracle.budget("xlogy", dtype, mode)
    got, (in_x, in_y) = modes.value_and_gradients(ops.xlogy, [x, y], mode)
    (in_xx, in_xy), (in_yx, in_yy) = modes.second_gradients(ops.xlogy, [x, y], mode)
    for result, truth in [
        (got, lambda x, y: x * mpmath.log(y)),
        (in_x, lambda x, y: mpmath.log(y)),
        (in_y, lambda x, y: x / y),
        (in_xx, lambda x, y: mpmath.mpf(0)),
        (in_xy, lambda x, y: 1 / y),
        (in_yx, lambda x, y: 1 / y),
        (in_yy, lambda x, y: -x / y**2),
    ]:
        assert oracle.ulp_error(result, oracle.exact(truth, x, y)) <= budget


def test_o27_the_mixed_derivative_of_xlogy_at_x_0_is_one_over_y(mode):
    x, y = tf.constant([0.0]), tf.constant([0.5])
    (_, in_xy), (in_yx, _) = modes.second_gradients(ops.xlogy, [x, y], mode)
    assert same([in_xy, in_yx], 2.0)


numbers = st.floats(-80.0, 80.0, width=32, allow_subnormal=False)
positive = st.floats(2.0**-100, 2.0**100, width=32, allow_subnormal=False)


@settings(deadline=None, derandomize=True, print_blob=True, max_examples=50)
@given(x=numbers)
def test_the_log_odds_of_the_sigmoid_are_its_argument(x):
    x = tf.constant(x)
    yes, no = ops.log_sigmoid(x), ops.log_sigmoid(-x)
    assert yes <= 0
    assert no <= 0
    assert abs(yes - no - x) <= 4e-7 * abs(x) + 1e-37


@settings(deadline=None, derandomize=True, print_blob=True, max_examples=50)
@given(x=positive)
def test_the_logarithm_of_an_inverse_changes_its_sign(x):
    x = tf.constant(x)
    # 1 / x is rounded, which moves the logarithm by half a machine epsilon.
    assert abs(ops.log(x) + ops.log(1 / x)) <= 2e-7 * abs(ops.log(x)) + 1e-7


@settings(deadline=None, derandomize=True, print_blob=True, max_examples=50)
@given(x=positive, y=positive)
def test_xlogy_has_the_sign_of_the_logarithm(x, y):
    x, y = tf.constant(x), tf.constant(y)
    assert tf.sign(ops.xlogy(x, y)) == tf.sign(ops.log(y))
