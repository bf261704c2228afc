"""The hazard of a normal distribution less its asymptote keeps its digits."""

import math

import mpmath
import numpy as np
import pytest
import tensorflow as tf

from tests.rewriting.emitting import fired, second_gradients
from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe import stabilize
from tfsafe.rewriting.rules.table import all_rules

ROOT = math.sqrt(2.0)
NAME = "function-less-tangent"
DIFFERENCE = "beside the tail a difference of the ratio and x"


def _density(x):
    return tf.exp(-0.5 * tf.square(x)) / math.sqrt(2 * math.pi)


def _by_erf(x):
    return 0.5 * (1 + tf.math.erf(x / ROOT))


def _by_erfc(x):
    return 0.5 * tf.math.erfc(-x / ROOT)


def _shifted(t):
    x = t - 0.25
    return _density(x) / _by_erf(x) + t - 0.25


# `pdf(x) / cdf(x) + x`, however it is written, of x or -x.
FORMULAS = {
    "erf": (lambda x: _density(x) / _by_erf(x) + x, 1, 0),
    "erfc": (lambda x: x + _density(x) / _by_erfc(x), 1, 0),
    "a power": (lambda x: _density(-x) / (1 - _by_erf(-x)) + x, 1, 0),
    "of the complement": (
        lambda x: tf.exp(-(x**2) / 2) / 2.5066282746 / (1 - _by_erf(x)) - x,
        -1,
        0,
    ),
    "another scale": (
        lambda x: tf.exp(-x * x) / tf.math.erfc(x) - math.sqrt(math.pi) * x,
        -ROOT,
        0,
    ),
    "a difference": (_shifted, 1, -0.25),
}
POINTS = [-20.0, -8.0, -3.0, -1.0, 0.5, 3.0]


def _exact(sign, shift, x):
    x = sign * (mpmath.mpf(x) + shift)
    size = abs(mpmath.mpf(sign)) if abs(sign) != 1 else 1
    scale = mpmath.sqrt(mpmath.pi / 2) if size != 1 else 1
    return scale * (mpmath.npdf(x) / mpmath.ncdf(x) + x)


@pytest.mark.parametrize("name", FORMULAS)
def test_value_and_slope_keep_their_digits_in_the_tail(name, mode):
    formula, sign, shift = FORMULAS[name]
    points = [x if sign > 0 else -x for x in POINTS]
    x = tf.constant(points)
    value, (slope,) = modes.value_and_gradients(stabilize(formula), [x], mode)
    with mpmath.workdps(300):
        wanted = [_exact(sign, shift, each) for each in points]
        slopes = [mpmath.diff(lambda x: _exact(sign, shift, x), x) for x in points]
    assert_close(value, np.array(wanted, float), 24, why=DIFFERENCE)
    assert_close(slope, np.array(slopes, float), 92, why=DIFFERENCE)


def test_the_second_derivative_is_right():
    x = tf.constant(POINTS)
    (second,) = second_gradients(all_rules(), FORMULAS["erf"][0], [x], "graph")
    with mpmath.workdps(300):
        wanted = [mpmath.diff(lambda x: _exact(1, 0, x), x, 2) for x in POINTS]
    assert_close(second, np.array(wanted, float), 215, why=DIFFERENCE)


def test_infinities_and_nan_come_out():
    x = tf.constant([math.inf, math.nan])
    assert np.isnan(stabilize(FORMULAS["erf"][0])(x)[1])
    np.testing.assert_array_equal(stabilize(FORMULAS["erf"][0])(x)[0], math.inf)


NEAR_MISSES = {
    "another sign": lambda x: _density(x) / _by_erf(x) - x,
    "another number": lambda x: _density(x) / _by_erf(x) + 1.1 * x,
    "another argument": lambda x: _density(x) / _by_erf(2 * x) + x,
    "another exponent": lambda x: tf.exp(-x * x) / _by_erf(x) + x,
    "a sum that is no cdf": lambda x: _density(x) / (0.4 + 0.5 * tf.math.erf(x)) + x,
}


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_another_sum_stays(name):
    assert NAME not in fired(all_rules(), NEAR_MISSES[name], tf.constant([0.5, 2.0]))


def _between_by_erf(a, b):
    return (_density(a) - _density(b)) / (_by_erf(b) - _by_erf(a))


# `(pdf(a) - pdf(b)) / (cdf(b) - cdf(a))`, however it is written.
MEANS = {
    "erf": _between_by_erf,
    "erfc": lambda a, b: (_density(b) - _density(a)) / (_by_erfc(a) - _by_erfc(b)),
    "of another scale, in a product": lambda a, b: _between_by_erf(
        (3 * a + 3) / 3 - 1, (3 * b + 3) / 3 - 1
    ),
    "numbers taken out": lambda a, b: (
        math.sqrt(2 / math.pi)
        * (tf.exp(-(a**2) / 2) - tf.exp(-(b**2) / 2))
        / (tf.math.erf(b / ROOT) - tf.math.erf(a / ROOT))
    ),
}
LIMITS = [
    *((0.5, 0.5), (-1.0, -0.99999), (-30.0, -29.0), (20.0, 25.0), (25.0, 20.0)),
    *((-0.25, 0.25), (-1.0, 2.0), (0.25, 1.5), (5.0, 5.5), (0.75, 2.5), (-9.0, 8.0)),
]


@pytest.mark.parametrize("name", MEANS)
def test_a_mean_between_limits_is_right_far_out_and_at_equal_limits(name, mode):
    args = [tf.constant(each) for each in zip(*LIMITS, strict=True)]
    value, slopes = modes.value_and_gradients(stabilize(MEANS[name]), args, mode)

    def exact(a, b):
        far = mpmath.mpf(10) ** -60
        a, b = mpmath.mpf(a), mpmath.mpf(b) + far
        above, below = mpmath.npdf(a) - mpmath.npdf(b), mpmath.ncdf(b) - mpmath.ncdf(a)
        return above / below

    with mpmath.workdps(400):
        step = mpmath.mpf(10) ** -80
        points = [(float(a), float(b)) for a, b in zip(*args, strict=True)]
        wanted = [float(exact(a, b)) for a, b in points]
        rates = [
            (
                float((exact(a + step, b) - exact(a - step, b)) / (2 * step)),
                float((exact(a, b + step) - exact(a, b - step)) / (2 * step)),
            )
            for a, b in points
        ]
    assert_close(value, wanted, 3, scale=0.25)
    for slope, rate in zip(slopes, zip(*rates, strict=True), strict=True):
        assert_close(slope, rate, 16, why="differences of ratios", scale=1.0)


def test_limits_at_infinity_are_no_limits():
    a, b = tf.constant([-math.inf, 3.0, -math.inf]), tf.constant([math.inf] * 2 + [2.0])
    value = stabilize(_between_by_erf)(a, b)
    wanted = [0, mpmath.npdf(3) / mpmath.ncdf(-3), -mpmath.npdf(2) / mpmath.ncdf(2)]
    assert_close(value, np.array(wanted, float))


OTHER_MEANS = {
    "another sign": lambda a, b: (
        (_density(a) + _density(b)) / (_by_erf(b) - _by_erf(a))
    ),
    "another limit": lambda a, b: (
        (_density(a) - _density(b)) / (_by_erf(b) - _by_erf(a + 1))
    ),
    "another scale": lambda a, b: (
        (tf.exp(-a * a) - tf.exp(-b * b)) / (_by_erf(b) - _by_erf(a))
    ),
}


@pytest.mark.parametrize("name", OTHER_MEANS)
def test_another_quotient_stays(name):
    x = tf.constant([0.5, 2.0])
    names = fired(all_rules(), OTHER_MEANS[name], x, -x)
    assert "removable-singularity" not in names
