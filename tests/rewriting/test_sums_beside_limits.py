"""Sums such as `a - b * exp(-v)`, in a product with a limit at v = 0."""

import mpmath
import numpy as np
import pytest
import tensorflow as tf

from tests.rewriting.emitting import fired
from tests.support import contrast, modes
from tests.support.oracle import assert_close
from tfsafe import stabilize
from tfsafe.rewriting.rules.table import all_rules

exp = tf.exp
FORMULAS = {
    "flux of Goldman": (
        lambda p, v, a, b: p * v * (a - b * exp(-v)) / (1 - exp(-v)),
        lambda p, v, a, b: p * v * (a - b * mpmath.exp(-v)) / -mpmath.expm1(-v),
    ),
    "flux, the quotient first": (
        lambda p, v, a, b: p * v / (1 - exp(-v)) * (a - b * exp(-v)),
        lambda p, v, a, b: p * v * (a - b * mpmath.exp(-v)) / -mpmath.expm1(-v),
    ),
    "flux of an ion of charge 2": (
        lambda p, v, a, b: 4 * p * v * (a - b * exp(-2 * v)) / (1 - exp(-2 * v)),
        lambda p, v, a, b: (
            4 * p * v * (a - b * mpmath.exp(-2 * v)) / -mpmath.expm1(-2 * v)
        ),
    ),
    "flux by growing exponentials": (
        lambda p, v, a, b: p * v * (a * exp(v) - b) / (exp(v) - 1),
        lambda p, v, a, b: p * v * (a * mpmath.exp(v) - b) / mpmath.expm1(v),
    ),
    "no factor before the exponential": (
        lambda p, v, a, b: b * p * v * (a / b - exp(-v)) / (1 - exp(-v)),
        lambda p, v, a, b: b * p * v * (a / b - mpmath.exp(-v)) / -mpmath.expm1(-v),
    ),
    "difference with a cosine": (
        lambda p, v, a, b: p * tf.sin(v) / v * (a - b * tf.cos(v)),
        lambda p, v, a, b: p * mpmath.sin(v) / v * (a - b * mpmath.cos(v)),
    ),
}
POTENTIALS = [1e-6, -1e-6, 1e-3, -1e-2, 0.4, -0.8, 3.0, -20.0]
POINTS = [(2.0, v, 3.0, b) for v in POTENTIALS for b in (3.0, 1.0, -3.0, 2.0)]


@pytest.mark.parametrize("name", FORMULAS)
def test_values_are_right_also_of_equal_sides(name, mode):
    function, exact = FORMULAS[name]
    args = [tf.constant(each) for each in zip(*POINTS, strict=True)]
    value, slopes = modes.value_and_gradients(stabilize(function), args, mode)
    with mpmath.workdps(60):
        points = [[mpmath.mpf(float(np.float32(x))) for x in each] for each in POINTS]
        truth = np.float64([exact(*each) for each in points])
        in_sides = [
            np.float64([mpmath.diff(exact, tuple(each), order) for each in points])
            for order in ((0, 0, 1, 0), (0, 0, 0, 1))
        ]
    assert_close(value, truth, 64, why="`3 - 3 * cos(v)` cancels")
    for slope, right in zip(slopes[2:], in_sides, strict=True):
        assert_close(slope, right, 10, why="quotients of numbers near 0", scale=1.0)


@pytest.mark.parametrize("name", FORMULAS)
def test_typed_out_the_digits_are_lost(name):
    function, exact = FORMULAS[name]
    args = [tf.constant([each]) for each in (2.0, -1.3e-3, 3.0, 2.999)]
    with contrast.without_grappler():
        value = modes.value_and_gradients(function, args, "eager")[0]
    with mpmath.workdps(60):
        truth = exact(*(mpmath.mpf(float(x[0])) for x in args))
    assert abs(float(value[0]) / float(truth) - 1) > 3e-6


def test_a_sum_without_a_limit_is_left_as_it_is():
    args = [tf.constant([each]) for each in (0.5, 3.0, 2.0)]

    def function(v, a, b):
        return v * (a - b * tf.cos(v))

    assert fired(all_rules(), function, *args) == []
