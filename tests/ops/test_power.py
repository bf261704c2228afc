import mpmath
import numpy as np
import pytest
import tensorflow as tf

from tests.ops.edges import assert_rounded, documented
from tests.ops.elementwise import (
    INF,
    NAN,
    each_place,
    each_place_and_xla_float64,
    edges,
    errors,
)
from tests.support import modes, oracle
from tfsafe import ops
from tfsafe._limits import LIMITS

BUDGETS = {"float16": 0.51, "bfloat16": 0.51, "float32": 4.0, "float64": 4.0}


# 0.3 and -0.7 are rounded, and so is 0.3 - 1 once more.
@pytest.mark.parametrize("exponent", [0.3, 1.5, 2, -0.7, -2.0, 1, 5.25])
def test_a_number_as_exponent_agrees_with_mpmath_up_to_second_order(exponent, mode):
    _check_exponent(exponent, tf.float32, mode)


@each_place
def test_a_number_as_exponent_works_in_every_dtype(mode, dtype):
    _check_exponent(0.5, dtype, mode)


def _check_exponent(exponent, dtype, mode):
    # Half precision is computed in float32, which is where the exponent is rounded.
    wide = np.float64 if dtype == tf.float64 else np.float32
    p = mpmath.mpf(float(wide(exponent)))
    limits = LIMITS[dtype.name]
    x = oracle.grid(dtype, max(1e-6, 4 * limits.tiny), min(1e6, limits.max / 4), 40)
    truths = [
        lambda x: x**p,
        lambda x: p * x ** (p - 1),
        lambda x: p * (p - 1) * x ** (p - 2),
    ]
    worst = errors(lambda x: ops.pow(x, exponent), [x], truths, mode)
    assert max(worst) <= BUDGETS[dtype.name], worst


TRUTHS = (
    lambda x, y: x**y,
    lambda x, y: y * x ** (y - 1),
    lambda x, y: x**y * mpmath.log(x),
    lambda x, y: y * (y - 1) * x ** (y - 2),
    # A sum of two terms, which may cancel.
    (
        lambda x, y: x ** (y - 1) * (1 + y * mpmath.log(x)),
        lambda x, y: x ** (y - 1),
    ),
    (
        lambda x, y: x ** (y - 1) * (1 + y * mpmath.log(x)),
        lambda x, y: x ** (y - 1),
    ),
    lambda x, y: x**y * mpmath.log(x) ** 2,
)


@each_place_and_xla_float64
def test_a_tensor_as_exponent_agrees_with_mpmath_up_to_second_order(mode, dtype):
    x = tf.cast(tf.constant(np.geomspace(1e-3, 30, 24)), dtype)
    y = tf.cast(tf.tile([0.5, -0.7, 2.3, -3.2, 1.7, 0.3, 0.0, 1.0], [3]), dtype)
    worst = errors(ops.pow, [x, y], TRUTHS, mode)
    assert max(worst) <= BUDGETS[dtype.name], worst


EDGES = {
    "x = 0, y = 0": (0.0, 0.0, 1.0, 0.0, 0.0),
    "x = 0, y = 0.5": (0.0, 0.5, 0.0, 0.0, 0.0),
    "x = 0, y = 1": (0.0, 1.0, 0.0, 1.0, 0.0),
    "x = 0, y = 2": (0.0, 2.0, 0.0, 0.0, 0.0),
    "x = 0, y = -1": (0.0, -1.0, INF, 0.0, 0.0),
    "x = -2, y = 3": (-2.0, 3.0, -8.0, 12.0, 0.0),
    "x = -2, y = 0.5": (-2.0, 0.5, NAN, NAN, NAN),
    "x = NaN, y = 0": (NAN, 0.0, NAN, NAN, NAN),
    "x = 1, y = NaN": (1.0, NAN, NAN, NAN, NAN),
}


@each_place
def test_the_edges_of_pow_are_those_of_its_docstring(mode, dtype):
    assert list(EDGES) == documented(ops.pow)
    got, wanted, silent = edges(ops.pow, list(EDGES.values()), dtype, mode, 2)
    assert_rounded(got, wanted)
    for each in silent:
        assert_rounded(each, 0.0)


@pytest.mark.parametrize("row", [row for row in EDGES if "y = NaN" not in row])
def test_a_number_as_exponent_has_the_same_edges(row, mode):
    x, exponent, value, slope, _ = EDGES[row]
    got, wanted, silent = edges(
        lambda x: ops.pow(x, exponent), [(x, value, slope)], tf.float32, mode
    )
    assert_rounded(got, wanted)
    for each in silent:
        assert_rounded(each, 0.0)


def test_an_exponent_that_is_not_finite_is_left_to_the_tensor_form():
    x = tf.constant([0.5, 2.0])
    assert_rounded(ops.pow(x, INF), [0.0, INF])
    assert_rounded(ops.pow(x, NAN), NAN)


def _derivative(function):
    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = function(x)
        return tape.gradient(value, x, unconnected_gradients="zero")

    return slope


@pytest.mark.parametrize("as_tensor", [False, True])
@pytest.mark.parametrize(("exponent", "third"), [(0, 0), (1, 0), (2, 0), (3, 6)])
def test_the_third_derivative_of_a_whole_power_at_0(exponent, third, as_tensor, mode):
    y = tf.constant(float(exponent)) if as_tensor else exponent
    function = _derivative(_derivative(_derivative(lambda x: ops.pow(x, y))))
    x = tf.constant([0.0, 2.0])
    assert_rounded(modes.compile_for(mode, function)(x), third)


def test_the_gradients_of_pow_have_the_shapes_of_its_arguments(mode):
    x, y = tf.constant([[1.0], [2.0], [3.0]]), tf.constant([[1.0, 2.0]])
    got, (in_x, in_y) = modes.value_and_gradients(ops.pow, [x, y], mode)
    assert got.shape == [3, 2]
    assert_rounded(in_x, [[3.0], [5.0], [7.0]])
    log = np.log([1.0, 2.0, 3.0])
    assert_rounded(in_y, [[log @ [1, 2, 3], log @ [1, 4, 9]]])


EXP_EDGES = {
    "x = 1000": (1000.0, INF, INF),
    "x = -inf": (-INF, 0.0, 0.0),
    "x = NaN": (NAN, NAN, NAN),
}


class TestExp:
    @each_place_and_xla_float64
    def test_it_agrees_with_mpmath_up_to_second_order(self, mode, dtype):
        high = 10.0 if dtype == tf.float16 else 80.0
        x = oracle.grid(dtype, 1e-3, high, 30)
        x = tf.concat([x, -x], 0)
        worst = errors(ops.exp, [x], [mpmath.exp] * 3, mode)
        assert max(worst) <= BUDGETS[dtype.name], worst

    @each_place
    def test_its_edges_are_those_of_its_docstring(self, mode, dtype):
        assert list(EXP_EDGES) == documented(ops.exp)
        got, wanted, silent = edges(ops.exp, list(EXP_EDGES.values()), dtype, mode)
        assert_rounded(got, wanted)
        for each in silent:
            assert_rounded(each, 0.0)
