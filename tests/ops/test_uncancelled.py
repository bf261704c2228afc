"""Differences that keep their digits."""

import mpmath
import numpy as np
import pytest
import tensorflow as tf

from tests.ops.edges import INF, NAN, assert_rounded
from tests.ops.elementwise import each_place_and_xla_float64, edges, errors
from tests.support import modes, oracle
from tfsafe._limits import LIMITS
from tfsafe.ops.formulas.differences import uncancelled
from tfsafe.ops.formulas.out_of_range import weighted_exponentials


def _signed(dtype, low, high):
    x = oracle.grid(dtype, low, high, 12)
    return tf.concat([-x, x], 0)


def _sech_squared(x):
    return 1 / mpmath.cosh(x) ** 2


# The function, the truths of value, slope and second slope, and the largest argument.
ELEMENTWISE = {
    "one_minus_cos": (
        uncancelled.one_minus_cos,
        (
            lambda x: 2 * mpmath.sin(x / 2) ** 2,
            (mpmath.sin, lambda x: x),
            (mpmath.cos, lambda _: 1),
        ),
        3.0,
    ),
    "sech_squared": (
        uncancelled.sech_squared,
        (
            _sech_squared,
            lambda x: -2 * mpmath.tanh(x) * _sech_squared(x),
            (
                lambda x: _sech_squared(x) * (4 - 6 * _sech_squared(x)),
                lambda x: 10 * _sech_squared(x),
            ),
        ),
        8.0,
    ),
    "sqrt1pm1": (
        uncancelled.sqrt1pm1,
        (
            lambda x: x / (mpmath.sqrt(1 + x) + 1),
            lambda x: 0.5 / mpmath.sqrt(1 + x),
            lambda x: -0.25 / mpmath.sqrt(1 + x) ** 3,
        ),
        0.75,
    ),
}


@each_place_and_xla_float64
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_it_agrees_with_mpmath_up_to_second_order(name, mode, dtype):
    function, truths, largest = ELEMENTWISE[name]
    low = 1e-3 if dtype == tf.float16 else 1e-12
    x = _signed(dtype, low, largest)
    if name != "sqrt1pm1":
        x = x[12:]
    budget = 0.51 if dtype.size == 2 else 6.0
    assert max(errors(function, [x], truths, mode)) <= budget


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("one_minus_cos", [(0, 0, 0), (INF, NAN, NAN), (NAN, NAN, NAN)]),
        ("sech_squared", [(0, 1, 0), (INF, 0, 0), (-INF, 0, 0), (NAN, NAN, NAN)]),
        ("sqrt1pm1", [(-1, -1, 0), (-2, NAN, NAN), (INF, INF, 0), (NAN, NAN, NAN)]),
    ],
)
def test_the_edges_give_zero_gradients(name, rows, mode):
    function = ELEMENTWISE[name][0]
    got, wanted, silent = edges(function, rows, tf.float32, mode)
    for result, column in zip(got, wanted, strict=True):
        assert_rounded(result, column)
    for zero in silent:
        assert_rounded(zero, 0.0)


@each_place_and_xla_float64
def test_a_difference_of_squares_keeps_the_digits_of_near_numbers(mode, dtype):
    a = tf.constant([1.0, 3.0, -7.0, 100.0], dtype)
    b = a * (1 + tf.constant([1, -2, 3, 0], dtype) * 2 * LIMITS[dtype.name].eps)
    value = modes.compile_for(mode, uncancelled.difference_of_squares)(a, b)
    truth = oracle.exact(lambda a, b: a**2 - b**2, a, b)
    assert oracle.ulp_error(value, truth) <= 2


def test_the_slopes_of_a_difference_of_squares_do_not_cancel(mode):
    one, x = tf.constant(1.0), tf.constant([1e-9, 2.0])
    value, (in_one, in_x) = modes.value_and_gradients(
        uncancelled.difference_of_squares, [one, x], mode
    )
    assert_rounded(value, [1.0, -3.0])
    assert_rounded(in_one, 4.0)
    assert_rounded(in_x, [-2e-9, -4.0])


EXP_TIMES = [
    # x, y, value, slopes.
    (1.0, 2.0, 2 * np.e, 2 * np.e, np.e),
    (100.0, 0.0, 0.0, 0.0, INF),
    (400.0, 0.0, 0.0, 0.0, INF),
    (100.0, 1e-10, np.exp(100.0) * 1e-10, np.exp(100.0) * 1e-10, INF),
    (INF, 0.0, NAN, NAN, INF),
    (INF, 2.0, INF, INF, INF),
    (-INF, 0.0, 0.0, 0.0, 0.0),
    (NAN, 0.0, NAN, NAN, NAN),
]


EXPM1_TIMES = [
    (1.0, 2.0, 2 * (np.e - 1), 2 * np.e, np.e - 1),
    (1e-10, 3.0, 3e-10, 3.0, 1e-10),
    (100.0, 0.0, 0.0, 0.0, INF),
    (100.0, 1e-10, np.exp(100.0) * 1e-10, np.exp(100.0) * 1e-10, INF),
    (INF, 2.0, INF, INF, INF),
    (-INF, 2.0, -2.0, 0.0, -1.0),
    (NAN, 2.0, NAN, NAN, NAN),
]


@pytest.mark.parametrize(
    ("function", "rows"),
    [
        (weighted_exponentials.exp_times, EXP_TIMES),
        (weighted_exponentials.expm1_times, EXPM1_TIMES),
    ],
    ids=["exp", "expm1"],
)
def test_the_edges_of_an_exponential_times_a_number(function, rows, mode):
    got, wanted, silent = edges(function, rows, tf.float32, mode, arguments=2)
    for result, column in zip(got, wanted, strict=True):
        assert_rounded(result, column)
    for zero in silent:
        assert_rounded(zero, 0.0)


def test_where_nothing_overflows_an_exponential_is_multiplied_unchanged(dtype):
    x, y = tf.constant([-3.0, 0.5, 4.0], dtype), tf.constant([[2.0], [-1.5]], dtype)
    truth = oracle.exact(lambda x, y: mpmath.exp(x) * y, *np.broadcast_arrays(x, y))
    value = weighted_exponentials.exp_times(x, y)
    assert oracle.ulp_error(value, truth) <= (0.51 if dtype.size == 2 else 3)


def _exact_distances(a, b):
    difference = np.float64(a)[..., :, None, :] - np.float64(b)[..., None, :, :]
    return np.sum(difference**2, -1)


@pytest.mark.parametrize("is_large", [False, True])
def test_squared_distances_agree_with_float64(is_large, mode, monkeypatch):
    if is_large:
        monkeypatch.setattr(uncancelled, "MOST_DIFFERENCES", 0)
    rng = np.random.default_rng(0)
    a = rng.normal(size=(2, 5, 3)).astype(np.float32) + 100
    b = rng.normal(size=(2, 4, 3)).astype(np.float32) + 100
    b[0, 0] = a[0, 1] + 1e-3
    args = [tf.constant(a), tf.constant(b)]
    value, gradients = modes.value_and_gradients(
        uncancelled.squared_distances, args, mode
    )
    assert_rounded(value, _exact_distances(a, b))
    wanted = 2 * (4 * np.float64(a) - b.astype(np.float64).sum(1, keepdims=True))
    assert_rounded(gradients[0], wanted)
    wanted = 2 * (5 * np.float64(b) - a.astype(np.float64).sum(1, keepdims=True))
    assert_rounded(gradients[1], wanted)


@pytest.mark.parametrize("is_large", [False, True])
def test_the_distance_of_a_vector_from_itself_is_0(is_large, mode, monkeypatch):
    if is_large:
        monkeypatch.setattr(uncancelled, "MOST_DIFFERENCES", 0)
    x = tf.random.stateless_normal([6, 5], [1, 2]) * 50
    value = modes.compile_for(mode, lambda x: uncancelled.squared_distances(x, x))(x)
    assert_rounded(tf.linalg.diag_part(value), 0.0)
    assert np.all(value.numpy() >= 0)


def test_distances_of_unknown_sizes_are_not_written_out_one_by_one():
    spec = tf.TensorSpec([None, 3], tf.float32)
    traced = tf.function(uncancelled.squared_distances).get_concrete_function(
        spec, spec
    )
    assert any("MatMul" in op.type for op in traced.graph.get_operations())


def test_a_negative_rounding_of_a_squared_distance_is_0(monkeypatch):
    monkeypatch.setattr(uncancelled, "MOST_DIFFERENCES", 0)
    x = tf.random.stateless_normal([40, 7], [3, 4]) * 1000
    value = uncancelled.squared_distances(x, tf.identity(x))
    assert np.all(value.numpy() >= 0)
    assert np.all(np.sqrt(tf.linalg.diag_part(value)) < 1e-4)
