import math

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
from tests.support.oracle import assert_close
from tfsafe import ops
from tfsafe._limits import LIMITS


def _unit(dtype):
    # Up to the last number before 1.
    limits = LIMITS[dtype.name]
    small = oracle.grid(dtype, max(1e-20, 4 * limits.tiny), 0.9, 16)
    return tf.concat([small, 1 - oracle.grid(dtype, limits.eps, 0.1, 10)], 0)


def _above_1(dtype):
    limits = LIMITS[dtype.name]
    return 1 + oracle.grid(dtype, limits.eps, min(1e30, limits.max / 4), 25)


def _sinc_points(dtype):
    return tf.concat(
        [oracle.grid(dtype, 1e-4, 0.3, 10), oracle.grid(dtype, 0.35, 900.0, 20)], 0
    )


def _sinc_slope(x):
    return (mpmath.cospi(x) - mpmath.sincpi(x)) / x


def _sinc_amplitude(x):
    return 1 / max(x, 1) if x > 0.3 else mpmath.mpf(0)


TRUTHS = {
    "asin": (
        _unit,
        mpmath.asin,
        lambda x: 1 / mpmath.sqrt(1 - x * x),
        lambda x: x / mpmath.sqrt(1 - x * x) ** 3,
    ),
    "acos": (
        _unit,
        mpmath.acos,
        lambda x: -1 / mpmath.sqrt(1 - x * x),
        lambda x: -x / mpmath.sqrt(1 - x * x) ** 3,
    ),
    "atanh": (
        _unit,
        mpmath.atanh,
        lambda x: 1 / (1 - x * x),
        lambda x: 2 * x / (1 - x * x) ** 2,
    ),
    "acosh": (
        _above_1,
        mpmath.acosh,
        lambda x: 1 / mpmath.sqrt(x * x - 1),
        lambda x: -x / mpmath.sqrt(x * x - 1) ** 3,
    ),
    "sinc": (
        _sinc_points,
        mpmath.sincpi,
        (_sinc_slope, _sinc_amplitude),
        (
            lambda x: -mpmath.pi * mpmath.sinpi(x) / x - 2 * _sinc_slope(x) / x,
            lambda x: 3 * _sinc_amplitude(x),
        ),
    ),
}
# A GPU rounds float32 roots and quotients less well: 6.6 was measured for `hypot`.
FLOAT32 = 7.0 if modes.HAS_GPU else 5.0
BUDGETS = {"float16": 0.51, "bfloat16": 0.51, "float32": FLOAT32, "float64": 5.0}


@each_place_and_xla_float64
@pytest.mark.parametrize("name", TRUTHS)
def test_it_agrees_with_mpmath_up_to_second_order(name, mode, dtype):
    points, *truths = TRUTHS[name]
    worst = errors(getattr(ops, name), [points(dtype)], truths, mode)
    assert max(worst) <= BUDGETS[dtype.name], worst


def _pairs(dtype):
    # Numbers whose squares leave the range, near and far from one another.
    limits = LIMITS[dtype.name]
    low, high = max(1e-300, 64 * limits.tiny), min(1e300, limits.max / 8)
    x = oracle.grid(dtype, low, high, 20)
    y = x * tf.cast(tf.tile([1.0, 1e-3, 1e3, 0.5, 2.0], [4]), dtype)
    y = tf.where((y > low) & (y < high), y, x)
    signs = tf.constant([1, -1] * 10, dtype)
    return x * signs, y * tf.constant([1, 1, -1, -1] * 5, dtype)


def _hypot_slope(x, y):
    return x / mpmath.hypot(x, y)


def _hypot_second(x, y):
    return (y / mpmath.hypot(x, y)) ** 2 / mpmath.hypot(x, y)


def _hypot_mixed(x, y):
    root = mpmath.hypot(x, y)
    return -(x / root) * (y / root) / root


HYPOT = (
    mpmath.hypot,
    _hypot_slope,
    lambda x, y: _hypot_slope(y, x),
    _hypot_second,
    _hypot_mixed,
    _hypot_mixed,
    lambda x, y: _hypot_second(y, x),
)


@each_place_and_xla_float64
def test_hypot_agrees_with_mpmath_up_to_second_order(mode, dtype):
    worst = errors(ops.hypot, _pairs(dtype), HYPOT, mode)
    assert max(worst) <= BUDGETS[dtype.name], worst


ATAN2 = (
    mpmath.atan2,
    lambda y, x: x / mpmath.hypot(x, y) ** 2,
    lambda y, x: -y / mpmath.hypot(x, y) ** 2,
    lambda y, x: -2 * x * y / mpmath.hypot(x, y) ** 4,
    # Where x and y are equal, this is a difference of two numbers out of range.
    None,
    None,
    lambda y, x: 2 * x * y / mpmath.hypot(x, y) ** 4,
)


@each_place_and_xla_float64
def test_atan2_agrees_with_mpmath_up_to_second_order(mode, dtype):
    worst = errors(ops.atan2, _pairs(dtype), ATAN2, mode)
    assert max(worst) <= BUDGETS[dtype.name], worst


PI = math.pi
EDGES = {
    "asin": {
        "x = 1": (1.0, PI / 2, 0.0),
        "x = -1": (-1.0, -PI / 2, 0.0),
        "x > 1": (1.5, NAN, NAN),
        "x = NaN": (NAN, NAN, NAN),
    },
    "acos": {
        "x = 1": (1.0, 0.0, 0.0),
        "x = -1": (-1.0, PI, 0.0),
        "x > 1": (1.5, NAN, NAN),
        "x = NaN": (NAN, NAN, NAN),
    },
    "acosh": {
        "x = 1": (1.0, 0.0, 0.0),
        "x = inf": (INF, INF, 0.0),
        "x < 1": (0.5, NAN, NAN),
        "x = NaN": (NAN, NAN, NAN),
    },
    "atanh": {
        "x = 1": (1.0, INF, 0.0),
        "x = -1": (-1.0, -INF, 0.0),
        "x > 1": (1.5, NAN, NAN),
        "x = NaN": (NAN, NAN, NAN),
    },
    "sinc": {
        "x = 0": (0.0, 1.0, 0.0),
        "x = 1": (1.0, 0.0, -1.0),
        "x = inf": (INF, 0.0, 0.0),
        "x = NaN": (NAN, NAN, NAN),
    },
    "hypot": {
        "x = 0, y = 0": (0.0, 0.0, 0.0, 0.0, 0.0),
        "x = inf, y = 1": (INF, 1.0, INF, NAN, 0.0),
        "x = NaN, y = 1": (NAN, 1.0, NAN, NAN, NAN),
    },
    "atan2": {
        "y = 0, x = 0": (0.0, 0.0, 0.0, 0.0, 0.0),
        "y = 1, x = inf": (1.0, INF, 0.0, 0.0, 0.0),
        "y = NaN, x = 1": (NAN, 1.0, NAN, NAN, NAN),
    },
}


@each_place
@pytest.mark.parametrize("name", EDGES)
def test_its_edges_are_those_of_its_docstring(name, mode, dtype):
    op = getattr(ops, name)
    assert list(EDGES[name]) == documented(op)
    arguments = 2 if name in {"hypot", "atan2"} else 1
    rows = list(EDGES[name].values())
    got, wanted, silent = edges(op, rows, dtype, mode, arguments)
    assert_rounded(got, wanted)
    for each in silent:
        assert_rounded(each, 0.0)


def test_below_minus_1_there_is_no_slope_either(mode):
    x = tf.constant([-1.5])
    for op in (ops.asin, ops.acos, ops.atanh):
        value, (slope,) = modes.value_and_gradients(op, [x], mode)
        assert_rounded(value, NAN)
        assert_rounded(slope, NAN)


def test_the_second_derivative_of_sinc_at_0_is_its_limit(mode):
    x = tf.constant([0.0])
    assert_rounded(modes.second_gradient(ops.sinc, x, mode), -(PI**2) / 3)


def test_the_slopes_of_hypot_are_right_where_it_overflows(mode):
    args = [tf.constant([3e38]), tf.constant([3e38])]
    value, slopes = modes.value_and_gradients(ops.hypot, args, mode)
    assert_rounded(value, INF)
    assert_rounded(slopes, 2**-0.5)


def test_the_arguments_of_atan2_are_checked():
    y = tf.constant([1.0, 2.0])
    with pytest.raises(TypeError, match=r"`y` and `x` must have the same dtype"):
        ops.atan2(y, tf.constant([1.0, 2.0], tf.float16))
    with pytest.raises(ValueError, match=r"`y` and `x` must have shapes that broadca"):
        ops.atan2(y, tf.zeros([3]))


def test_gradients_have_the_shapes_of_the_arguments(mode):
    x, y = tf.ones([3, 1]), tf.constant([[1.0, 0.0]])
    for op in (ops.hypot, ops.atan2):
        _, (in_x, in_y) = modes.value_and_gradients(op, [x, y], mode)
        assert in_x.shape == [3, 1]
        assert in_y.shape == [1, 2]


class TestAngle:
    EDGES = ("x = 0", "x = NaN")

    def test_its_docstring_has_these_rows(self):
        assert tuple(documented(ops.angle)) == self.EDGES

    @pytest.mark.parametrize("dtype", [tf.complex64, tf.complex128])
    def test_it_is_that_of_tensorflow_except_at_0(self, dtype, mode):
        x = tf.constant([1 + 2j, -3 + 1j, -0.5 - 2j, 4.0], dtype)
        got, (slope,) = modes.value_and_gradients(ops.angle, [x], mode)
        truth, (expected,) = modes.value_and_gradients(tf.math.angle, [x], "eager")
        assert got.dtype == truth.dtype
        assert_close(got, truth)
        for part in (tf.math.real, tf.math.imag):
            assert_close(part(slope), part(expected))

    def test_its_gradient_at_0_is_0_and_a_nan_stays(self, mode):
        x = tf.constant([0j, complex(NAN, 1)], tf.complex64)
        value, (slope,) = modes.value_and_gradients(ops.angle, [x], mode)
        assert_rounded(value, [0.0, NAN])
        assert slope[0] == 0
        assert np.isnan(slope[1])

    def test_a_zero_incoming_gradient_gives_a_zero_gradient(self, mode):
        x = tf.constant([0j, complex(NAN, 1), 1 + 1j], tf.complex64)
        _, (slope,) = modes.value_and_gradients(ops.angle, [x], mode, [0.0] * 3)
        assert np.all(slope.numpy() == 0)

    def test_an_empty_tensor_has_an_empty_gradient(self, mode):
        x = tf.zeros([0, 2], tf.complex64)
        value, (slope,) = modes.value_and_gradients(ops.angle, [x], mode)
        assert value.shape == slope.shape == [0, 2]

    def test_real_numbers_are_refused_with_a_suggestion(self):
        with pytest.raises(TypeError, match=r"`x` must have a complex .*`atan2\(y, x"):
            ops.angle(tf.constant(1.0))


class TestAngleBetween:
    def test_its_docstring_has_these_rows(self):
        assert documented(ops.angle_between) == ["a = b", "a = -b", "a = 0", "NaN"]

    @pytest.mark.parametrize("dtype", [tf.float16, tf.float32])
    def test_it_has_these_edges(self, mode, dtype):
        a = [[1, 2, 3], [1, 2, 3], [0, 0, 0], [0, 0, 0], [NAN, 0, 0]]
        b = [[2, 4, 6], [-1, -2, -3], [1, 2, 3], [0, 0, 0], [1, 2, 3]]
        a, b = tf.constant(a, dtype), tf.constant(b, dtype)
        value, (in_a, in_b) = modes.value_and_gradients(ops.angle_between, [a, b], mode)
        assert_rounded(value, [0, PI, PI / 2, 0, NAN])
        assert_rounded(in_a[:4], 0.0)
        assert_rounded(in_b[tf.newaxis, :2], 0.0)
        assert_rounded(in_a[4], NAN)

    def test_a_zero_incoming_gradient_gives_zero_gradients(self):
        a = tf.constant([[1.0, 2.0], [0.0, 0.0], [NAN, 0.0]])
        b = tf.constant([[2.0, 4.0], [1.0, 2.0], [1.0, 2.0]])
        for silent in modes.silent_gradients(ops.angle_between, [a, b], "graph"):
            assert_rounded(silent, 0.0)

    def test_it_keeps_the_digits_of_small_and_of_flat_angles(self, mode):
        tiny = tf.constant([1e-7, 1e-3, 1.0])
        a = tf.stack([tf.ones([3]), tf.zeros([3])], -1)
        b = tf.stack([tf.cos(tiny), tf.sin(tiny)], -1)
        function = modes.compile_for(mode, ops.angle_between)
        assert_rounded(function(a, b), tiny)
        assert_rounded(function(1e20 * a, -1e-20 * b), PI - tiny)

    def test_its_gradient_turns_the_second_vector(self, mode):
        a, b = tf.constant([2.0, 0.0]), tf.constant([0.0, 4.0])
        _, (in_a, in_b) = modes.value_and_gradients(ops.angle_between, [a, b], mode)
        assert_close(in_a, [0.0, -0.5])
        assert_close(in_b, [-0.25, 0.0])

    def test_its_axis_can_be_chosen(self):
        a, b = tf.constant([[1.0], [0.0]]), tf.constant([[1.0, 0.0], [1.0, 1.0]])
        assert_rounded(ops.angle_between(a, b, axis=0), [PI / 4, PI / 2])

    def test_shapes_that_do_not_broadcast_are_refused(self):
        with pytest.raises(ValueError, match=r"`a` and `b` must have shapes that"):
            ops.angle_between(tf.zeros([2, 3]), tf.zeros([2]))
