"""Logarithms of 1 plus a weighted exponential keep their digits where that is small."""

import mpmath as mp
import numpy as np
import pytest
import tensorflow as tf

from tests.support import contrast, modes, oracle
from tests.support.oracle import assert_close
from tfsafe import stabilize

exp, log = tf.exp, tf.math.log
# Weights and exponents: the logarithm is near 0, is not, and leaves float32 inside.
POINTS = [
    *((q, s) for q in (1e-6, 0.01, 0.5) for s in (1e-5, 0.5, 20.0, -0.5, -80.0)),
    *((q, s) for q in (1e-6, 0.5) for s in (95.0, 200.0)),
]
FORMULAS = {
    "log(1 + q * (exp(s) - 1))": (
        lambda q, s: log(1 + q * (exp(s) - 1)),
        lambda q, s: mp.log(1 + q * mp.expm1(s)),
    ),
    "log(1 + q * q * (exp(s) - 1))": (
        lambda q, s: log(1 + q * q * (exp(s) - 1)),
        lambda q, s: mp.log(1 + q * q * mp.expm1(s)),
    ),
    "log(1 - q + q * exp(s))": (
        lambda q, s: log(1 - q + q * exp(s)),
        lambda q, s: mp.log(1 + q * mp.expm1(s)),
    ),
    "log(q * sigmoid(s) + (1 - q))": (
        lambda q, s: log(q * tf.sigmoid(s) + (1 - q)),
        lambda q, s: mp.log(1 - q / (1 + mp.exp(s))),
    ),
    "log(1 + q * exp(s))": (
        lambda q, s: log(1 + q * exp(s)),
        lambda q, s: mp.log(1 + q * mp.exp(s)),
    ),
    "xlogy(3, exp(s) / q + 1)": (
        lambda q, s: tf.math.xlogy(3.0, exp(s) / q + 1),
        lambda q, s: 3 * mp.log(1 + mp.exp(s) / q),
    ),
    "log(1 + sum(q * exp(s)))": (
        lambda q, s: log(1 + tf.reduce_sum(tf.stack([q, q]) * exp(s), 0)),
        lambda q, s: mp.log(1 + 2 * q * mp.exp(s)),
    ),
}


def _truth(exact):
    with mp.workdps(250):
        points = [(mp.mpf(float(np.float32(q))), mp.mpf(s)) for q, s in POINTS]
        values = [exact(*point) for point in points]
        slopes = [
            [mp.diff(exact, point, order) for point in points]
            for order in ((1, 0), (0, 1))
        ]
    return np.array(values, object), [np.array(each, object) for each in slopes]


@pytest.mark.parametrize("formula", FORMULAS.values(), ids=list(FORMULAS))
def test_values_and_slopes_are_right_near_1_and_far_from_it(formula, mode):
    function, exact = formula
    args = [tf.constant(each) for each in zip(*POINTS, strict=True)]
    value, slopes = modes.value_and_gradients(stabilize(function), args, mode)
    values, exact_slopes = _truth(exact)
    assert oracle.ulp_error(value, values) <= 32
    for slope, right in zip(slopes, exact_slopes, strict=True):
        assert oracle.ulp_error(slope, right) <= 64


@pytest.mark.parametrize("formula", FORMULAS.values(), ids=list(FORMULAS))
def test_typed_out_the_digits_are_lost(formula):
    function, exact = formula
    args = [tf.constant(each) for each in zip(*POINTS, strict=True)]
    with contrast.without_grappler():
        value, _ = modes.value_and_gradients(function, args, "eager")
    assert oracle.ulp_error(value, _truth(exact)[0]) > 1e3


@pytest.mark.parametrize("q", [0.5, 0.9, 0.9999999])
def test_a_part_of_a_probability_of_exactly_1_has_its_slopes(q, mode):
    args = [tf.constant([q]), tf.constant([0.0])]
    function = stabilize(lambda q, s: log(1 - q * exp(s)))
    value, slopes = modes.value_and_gradients(function, args, mode)
    q = float(np.float32(q))
    assert_close(value, [np.log1p(-q)])
    assert_close(slopes[0], [-1 / (1 - q)])
    assert_close(slopes[1], [-q / (1 - q)])


def test_what_is_no_mixture_with_1_is_not_taken_for_one(mode):
    args = [tf.constant([0.25, 0.5]), tf.constant([0.5, -2.0])]
    for function in (
        lambda q, s: log(1 - q + 2 * q * exp(s)),
        lambda q, s: log(1.5 - q + q * exp(s)),
        lambda q, s: log(2 + q * (exp(s) - 1)),
    ):
        value = modes.value_and_gradients(stabilize(function), args, mode)[0]
        wide = function(*(tf.cast(each, tf.float64) for each in args))
        assert_close(value, wide, 6, why="the logarithm of a sum near 1")


# The exponents of terms whose sum is near 1.
EXPONENTS = [1.0, 3.0, 8.0, 15.0, 40.0, 70.0, -8.0, -40.0]


@pytest.mark.parametrize("part", [0.25, -0.25])
def test_a_sum_that_is_near_1_by_chance_loses_no_digit(part, mode):
    y = np.float32(EXPONENTS)
    x = np.float32(part * np.exp(-np.float64(y)))
    z = np.float32(1 - part + 1e-3) * np.ones_like(y)
    args = [tf.constant(each) for each in (x, y, z)]
    function = stabilize(lambda x, y, z: log(x * exp(y) + z))
    value, slopes = modes.value_and_gradients(function, args, mode)
    with mp.workdps(60):
        exact = [
            mp.log(mp.mpf(float(a)) * mp.exp(mp.mpf(float(b))) + mp.mpf(float(c)))
            for a, b, c in zip(x, y, z, strict=True)
        ]
    assert_close(
        value, np.float64(exact), 760, why="rounding 1.001 may cost 6e-8 of 1e-3"
    )
    wide = (
        np.exp(np.float64(y)),
        np.float64(x) * np.exp(np.float64(y)),
        np.ones(y.shape),
    )
    for slope, right in zip(slopes, wide, strict=True):
        assert_close(slope, right / np.exp(np.float64(exact)))


@pytest.mark.parametrize(
    ("weights", "exponents"),
    [
        ([0.0, 1.0], [-2.0, -100.0]),
        ([0.0, 1e-3], [0.0, -90.0]),
        ([0.0, 1.0], [-50.0, -160.0]),
        ([0.0, 0.0], [-1.0, -80.0]),
        ([0.0, 0.5], [3.0, 0.5]),
    ],
)
def test_a_weight_of_0_beside_1_has_its_slope(weights, exponents, mode):
    args = [tf.constant(weights), tf.constant(exponents)]
    function = stabilize(lambda w, x: log(1 + tf.reduce_sum(w * exp(x))))
    value, slopes = modes.value_and_gradients(function, args, mode)
    w, x = (np.float64(np.float32(each)) for each in (weights, exponents))
    total = np.sum(w * np.exp(x))
    assert_close(value, np.log1p(total))
    right = np.exp(x) / (1 + total), w * np.exp(x) / (1 + total)
    for slope, exact in zip(slopes, right, strict=True):
        assert_close(slope, exact)


@pytest.mark.parametrize("constant", [0.0, 1.0, 2.0])
def test_a_tiny_and_a_huge_divisor_of_an_exponential_have_their_slopes(constant, mode):
    s = np.float32([1, -50, -69, -80, 100, 90])
    q = np.float32([1e-30, 1e-30, 1e-30, 1e-30, 1e-30, 1e30])
    function = stabilize(lambda s, q: log(constant + exp(s) / q))
    args = [tf.constant(s), tf.constant(q)]
    value, slopes = modes.value_and_gradients(function, args, mode)
    s, q = np.float64(s), np.float64(q)
    quotient = np.exp(s) / q
    assert_close(
        value, np.log(constant + quotient), 6, why="the logarithm of a sum near 1"
    )
    right = quotient / (constant + quotient)
    why = "the exponential of a difference of terms of up to 100"
    assert_close(slopes[0], right, 18, why=why)
    assert_close(slopes[1], -right / q, 31, why=why)
