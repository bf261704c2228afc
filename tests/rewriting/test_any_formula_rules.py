"""Formulas that no rule knows: holes, zeros of higher order, and sums that cancel."""

import functools

import mpmath
import numpy as np
import pytest
import tensorflow as tf

from tests.rewriting.emitting import (
    fired,
    in_modes,
    rewritten,
    second_gradients,
    silent_gradients,
)
from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe.rewriting.rules.table import all_rules

exp = tf.exp
HOLE, SUM = "hole-in-formula", "sum-that-cancels"


def _exchanger(x, m):
    return (1 - m.exp(2 * (x - 1))) / (1 - x * m.exp(2 * (x - 1)))


def _third(x, m):
    return (m.exp(x) - 1 - x - x**2 / 2) / x**3


def _integrated(x, m):
    return (2 * x - 3 + 4 * m.exp(-x) - m.exp(-2 * x)) / (2 * x**3)


def _growth(x, m):
    return ((m.exp(2 * x) - 1) / x - 2) / x


def _cubic(x, m):
    return m.exp(x) - 1 - x - x**2 / 2


def _gamma(x, m):
    return 1 - m.exp(-x) - x * m.exp(-x)


def _waves(x, m):
    return m.cosh(x) - m.cos(x)


def _squares(x, m):
    return m.sinh(x) ** 2 - m.sin(x) ** 2


def _final(x, m):
    return 1 - x - m.exp(-1.5 * x)


def _fifth(x, m):
    return m.sin(x) - x + x**3 / 6


def _sixth(x, m):
    return m.sqrt(1 + x**2) - 1 - x**2 / 2 + x**4 / 8


def _damping(x, m):
    term = total = 1
    for k in range(1, 7):
        term = term * 2 * x / k
        total = total + term
    return 1 - m.exp(-2 * x) * total


def _damped(x, m):
    return _damping(x, m) / x**6


def _grating(x, m):
    return (1 - m.cos(8 * x)) / (1 - m.cos(x))


def _frank(x, m):
    joint = (m.exp(-0.25 * x) - 1) * (m.exp(-0.5 * x) - 1) / (m.exp(-x) - 1)
    return -1 / x * m.log(1 + joint)


def _frank_density(x, m):
    u, v = (1 - m.exp(-k * x) for k in (0.25, 0.5))
    below = 1 - m.exp(-x) - u * v
    return x * (1 - m.exp(-x)) * m.exp(-0.75 * x) / below**2


def _clayton_density(x, m):
    # In plain TensorFlow it is finite at 0, where `1 ** -inf` is 1.
    total = 0.25 ** (-x) + 0.5 ** (-x) - 1
    return (1 + x) * 0.125 ** (-1 - x) * total ** (-1 / x - 2)


# By name: the formula, where it has a hole or a zero, and the rule.
FORMULAS = {
    "a heat exchanger": (_exchanger, 1.0, HOLE),
    "the third function of an exponential integrator": (_third, 0.0, HOLE),
    "an integrated process that reverts to its mean": (_integrated, 0.0, HOLE),
    "a rate of growth": (_growth, 0.0, None),
    "an exponential less three terms": (_cubic, 0.0, SUM),
    "a gamma distribution": (_gamma, 0.0, SUM),
    "a hyperbolic less a circular function": (_waves, 0.0, SUM),
    "a hyperbolic less a circular square": (_squares, 0.0, SUM),
    "a final size": (_final, 0.0, SUM),
    "a sine less two terms": (_fifth, 0.0, SUM),
    "a root less three terms": (_sixth, 0.0, SUM),
    "Tang and Toennies' damping": (_damping, 0.0, SUM),
    "a damped dispersion": (_damped, 0.0, HOLE),
    "a grating of eight slits": (_grating, 0.0, HOLE),
    "Frank's copula": (_frank, 0.0, HOLE),
    "the density of Frank's copula": (_frank_density, 0.0, HOLE),
    "the density of Clayton's copula": (_clayton_density, 0.0, HOLE),
}
# Their slope is 0 at the hole: that of a polynomial through values of about 1.
FLAT = {"a grating of eight slits", "the density of Frank's copula"}
OFFSETS = [0.0, 1e-6, -1e-5, 1e-4, -3e-3, 0.03, 0.2, -0.4, 0.9]


@functools.cache
def _exact(formula, points, order):
    def one(x):
        with mpmath.workdps(250):
            x = mpmath.mpf(x) + mpmath.mpf(10) ** -25
            return float(mpmath.diff(lambda y: formula(y, mpmath), x, order, h=1e-16))

    return np.array([one(x) for x in points])


def _points(point):
    x = np.float32(point) + np.float32(OFFSETS)
    return tf.constant(x), tuple(map(float, x))


@pytest.mark.parametrize(("name", "mode"), in_modes(*FORMULAS))
def test_value_and_slope_are_right_around_the_point(name, mode):
    formula, point, rule = FORMULAS[name]
    x, points = _points(point)
    if mode == "graph" and rule is not None:
        assert rule in fired(all_rules(), lambda x: formula(x, tf.math), x)
    function = rewritten(all_rules(), lambda x: formula(x, tf.math))
    value, (slope,) = modes.value_and_gradients(function, [x], mode)
    # What is exact is taken 1e-25 above the point, which a zero of order 2 feels.
    assert_close(value, _exact(formula, points, 0), scale=1e-18)
    assert_close(
        slope, _exact(formula, points, 1), scale=1e-5 if name in FLAT else 1e-11
    )


@pytest.mark.parametrize("name", FORMULAS)
def test_the_second_derivative_is_right_around_the_point(name):
    formula, point, _ = FORMULAS[name]
    x, points = _points(point)
    (second,) = second_gradients(
        all_rules(), lambda x: formula(x, tf.math), [x], "graph"
    )
    assert_close(second, _exact(formula, points, 2), scale=1.0)


@pytest.mark.parametrize("name", FORMULAS)
def test_the_plain_formula_loses_its_digits(name):
    formula, point, _ = FORMULAS[name]
    x, points = _points(point)
    exact = _exact(formula, points, 0)
    off = np.abs(formula(x, tf.math).numpy() - exact) / (np.abs(exact) + 1e-24)
    assert not (off < 1e-4).all()


@pytest.mark.parametrize("name", FORMULAS)
def test_no_upstream_gives_no_slope(name):
    formula, point, _ = FORMULAS[name]
    x = tf.constant([point, point + 0.1, np.inf, 1e4])
    for each in silent_gradients(all_rules(), lambda x: formula(x, tf.math), [x]):
        assert not np.any(each)


@pytest.mark.parametrize("name", FORMULAS)
def test_half_precision_rounds_once(name):
    formula, point, _ = FORMULAS[name]
    x = tf.constant(np.float16(point) + np.float16([0.0, 1e-3, 0.03, 0.2]), tf.float16)
    value = rewritten(all_rules(), lambda x: formula(x, tf.math))(x)
    exact = _exact(formula, tuple(map(float, x.numpy())), 0)
    assert_close(value, exact, 1)


def test_each_element_has_a_scale_of_its_own(mode):
    def integrated(k, t):
        return (k * t - 1 + exp(-k * t)) / k**2 * t

    k = tf.constant([[1e-9], [1e-4], [0.01], [2.0]])
    t = tf.constant([0.01, 1.0, 30.0])
    value, slopes = modes.value_and_gradients(
        rewritten(all_rules(), integrated), [k, t], mode
    )

    def exact(k, t):
        with mpmath.workdps(60):
            k, t = mpmath.mpf(float(k)), mpmath.mpf(float(t))
            return float((k * t - 1 + mpmath.exp(-k * t)) / k**2 * t)

    wanted = np.vectorize(exact)(*np.broadcast_arrays(k, t))
    assert_close(value, wanted)
    assert all(np.isfinite(each).all() for each in slopes)


def test_a_pole_next_to_the_hole_is_kept(mode):
    def formula(x, c):
        return (exp(x) - 1 - x - x**2 / 2) / x**3 / (x + c)

    x = tf.constant([0.0, 0.01, 0.01, -0.1])
    c = tf.constant([2.0, 0.02, 1e-3, 0.1001])
    value, _ = modes.value_and_gradients(rewritten(all_rules(), formula), [x, c], mode)
    third = _exact(_third, tuple(map(float, x)), 0)
    wanted = third / (np.float64(x) + np.float64(c))
    assert_close(value, wanted)


def test_a_function_without_values_on_one_side_is_continued(mode):
    def formula(x):
        return (tf.cos(tf.sqrt(x)) - 1 + x / 2) / x**2

    x = tf.constant([0.0, 1e-6, 1e-3, 0.5])
    assert HOLE in fired(all_rules(), formula, x)
    value, (slope,) = modes.value_and_gradients(
        rewritten(all_rules(), formula), [x], mode
    )
    series = [1 / 24 - v / 720 + v**2 / 40320 - v**3 / 3628800 for v in x.numpy()]
    assert_close(value, series)
    slopes = [
        -1 / 720 + v / 20160 - v**2 / 1209600 + v**3 / 119750400 for v in x.numpy()
    ]
    assert_close(slope, slopes)


def _tweedie(y, mu):
    power = mpmath.power if isinstance(y, mpmath.mpf) else tf.pow
    return 4 * (power(y, 0.5) * -2 + y * power(mu, -0.5) + power(mu, 0.5))


def test_a_leaf_where_a_slope_is_infinite_leaves_the_others_theirs(mode):
    y = np.float32([0.0, 0.0, 1.0, 1.201, 2.0, 1e-30])
    mu = np.float32([0.7, 1e-20, 1.7, 1.2, 2.0, 0.5])
    assert SUM in fired(all_rules(), _tweedie, tf.constant(y), tf.constant(mu))
    function = rewritten(all_rules(), _tweedie)
    value, (in_y, in_mu) = modes.value_and_gradients(
        function, [tf.constant(y), tf.constant(mu)], mode
    )
    pairs = [
        (mpmath.mpf(float(a)), mpmath.mpf(float(b))) for a, b in zip(y, mu, strict=True)
    ]
    exact = [float(_tweedie(a, b)) for a, b in pairs]
    assert_close(value, exact)
    in_mu_exact = [float(2 * (1 / mpmath.sqrt(b) - a / b**1.5)) for a, b in pairs]
    assert_close(in_mu, in_mu_exact)
    assert np.isfinite(in_y).all()


def _assert_right(formula, x, mode, **of_slopes):
    """Compares a sum that cancels, and its slopes with options, with mpmath."""
    x = np.float32(x)
    points = tuple(map(float, x))
    assert SUM in fired(
        all_rules(), lambda x: formula(x, tf.math), tf.constant([0.5, 2.0])
    )
    function = rewritten(all_rules(), lambda x: formula(x, tf.math))
    value, (slope,) = modes.value_and_gradients(function, [tf.constant(x)], mode)
    assert_close(value, _exact(formula, points, 0))
    assert_close(slope, _exact(formula, points, 1), **of_slopes)


def test_a_sum_that_cancels_at_infinity_keeps_its_digits(mode):
    def formula(x, m):
        return m.asinh(x) - m.log(2 * x)

    why = "the slope falls as the third power of x"
    _assert_right(formula, [0.7, 30.0, 3e3, 3e4], mode, ulps=11, why=why)


# Their terms outgrow them.
OUTGROWN = {
    "the entropy of a mode": lambda x, m: (x + 1) * m.log(x + 1) - x * m.log(x),
    "an angle by its number": lambda x, m: (x + 2) * m.atan(x + 2) - x * m.atan(x),
    "a root by its number": lambda x, m: x * m.sqrt(x + 3) - x * m.sqrt(x),
}


@pytest.mark.parametrize(("name", "mode"), in_modes(*OUTGROWN))
def test_a_sum_that_its_terms_outgrow_keeps_its_digits(name, mode):
    x = [0.7, 30.0, 3e3, 3e4, 1e7]
    _assert_right(OUTGROWN[name], x, mode, scale=1e-9)


# Two poles that cancel, and where.
POLES = {
    "the slope of Langevin's function": (
        lambda x, m: 1 / x**2 - 1 / m.sinh(x) ** 2,
        0.0,
    ),
    "of squares of quotients": (
        lambda x, m: (1 / x) ** 2 - (1 / m.sinh(x)) ** 2,
        0.0,
    ),
    "with powers": (lambda x, m: x**-2.0 - m.sin(x) ** -2.0, 0.0),
    "of an arctangent": (lambda x, m: 1 / x - 1 / m.atan(x), 0.0),
    "of two tensors at another point": (
        lambda x, m: 1 / (3 - 2 * x) - 1 / m.atan(3 - 2 * x),
        1.5,
    ),
}


@pytest.mark.parametrize(("name", "mode"), in_modes(*POLES))
def test_poles_that_cancel_leave_a_limit(name, mode):
    formula, point = POLES[name]
    x, points = _points(point)
    assert SUM in fired(all_rules(), lambda x: formula(x, tf.math), x)
    function = rewritten(all_rules(), lambda x: formula(x, tf.math))
    value, (slope,) = modes.value_and_gradients(function, [x], mode)
    assert_close(value, _exact(formula, points, 0), scale=1e-5)
    assert_close(slope, _exact(formula, points, 1), scale=1e-5)


def test_poles_in_float64_keep_the_rule_of_reciprocals():
    x = tf.constant([0.5, 2.0], tf.float64)
    found = fired(all_rules(), lambda x: 1 / x - 1 / tf.atan(x), x)
    assert found[-1] == "difference-of-function"


OTHERS = tf.Variable(tf.ones([4, 2]))


def test_nan_stays():
    for formula, *_ in FORMULAS.values():
        value = rewritten(all_rules(), lambda x, f=formula: f(x, tf.math))(
            tf.constant([np.nan, 0.3])
        )
        assert np.isnan(value[0])
        assert np.isfinite(value[1])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: exp(x) - 1.01,
        lambda x: tf.sin(x) - 2 * x,
        lambda x: tf.abs(tf.sin(x)) / x,
        lambda x: tf.cos(x) / x,
        lambda x: x**1.5 / tf.sin(x) ** 3,
        lambda x: (exp(x) - 1 - x) / x**3,
        lambda x: 1 - 0.9 ** tf.cast(tf.cast(x, tf.int32), tf.float32),
        lambda x: tf.sigmoid(x) * x - (1 - tf.sigmoid(x)) * 3,
        lambda x: x - 0.1 * x / (tf.sqrt(x) + 1e-7),
        lambda x: 2 / x - 1 / x**2 * (1 - exp(-x)),
        # Quotients of sums without a limit, and without a hole.
        lambda x: (x + 1) / (x - 1),
        lambda x: (x - 2 * x * x) / (1 + x),
        lambda x: (OTHERS[0] - x) / (1 - x),
        lambda x: x * (OTHERS[0] - x) / (x * OTHERS[1]),
        # Nothing over the area of an empty box.
        lambda x: (x - x) / x,
        lambda x: tf.abs(2 * x - 1) / (2 * x - 1),
        lambda x: 1 / (2 * x - 1) - 1 / tf.sqrt(2 * x - 1),
        lambda x: 1 / x - 1 / tf.sinh(2 * x),
        lambda x: (lambda area: area / area)((x - OTHERS[0]) * (x - OTHERS[1])),
        lambda x: x * tf.math.log(x) - 0.9 * x * tf.sqrt(x),
        lambda x: tf.sqrt(x) * tf.tanh(x) - tf.square(x),
        # A sum with a tensor of its own cancels by chance only, and a logarithm is off
        # by the epsilon in it.
        lambda x: tf.math.log(x + 1e-7),
        lambda x: tf.math.log(tf.square(x) + 1e-6),
        lambda x: OTHERS[0] - tf.sqrt(x),
        lambda x: tf.nn.batch_normalization(
            x, OTHERS[0], tf.abs(OTHERS[1]), OTHERS[2], OTHERS[3], 1.001e-5
        ),
    ],
)
def test_a_near_miss_is_left_alone(function):
    found = fired(all_rules(), function, tf.constant([0.5, 2.0]))
    assert not {HOLE, SUM} & set(found), found


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: -x / tf.sin(-y),
        lambda x, y: tf.tanh(-x) / -y,
        lambda x, y: -x / (1 - exp(-y)),
        lambda x, y: (1 - exp(-y)) / -x,
        lambda x, y: tf.math.log1p(-x) / tf.math.log1p(-y),
        lambda x, y: -tf.square(x) / (1 - tf.cos(-y)),
        lambda x, y: (exp(-1.0 * x) - 1) / (0 - y),
        lambda x, y: 1 - tf.tanh(-x) / (exp(-y) - 1),
        lambda x, y: 1 - exp(-x) / (exp(-y) - 1),
    ],
)
def test_two_tensors_with_a_minus_are_two(function, mode):
    x, y = tf.constant([0.25, -0.5, 0.75]), tf.constant([0.5, 0.125, -0.25])
    value, slopes = modes.value_and_gradients(
        rewritten(all_rules(), function), [x, y], mode
    )
    wide = [tf.cast(each, tf.float64) for each in (x, y)]
    exact, right = modes.value_and_gradients(function, wide, "eager")
    assert_close(value, exact, 8, why="as exact as the differences that are written")
    for slope, wanted in zip(slopes, right, strict=True):
        assert_close(slope, wanted, 16, why="a quotient of such differences")


def test_a_part_with_a_limit_of_its_own_keeps_it(mode):
    def product(x, y):
        return (exp(x) - 1 - x - x**2 / 2) / x**3 * (tf.sin(y) / y)

    def sum_of(x, y):
        return exp(-x) - tf.sin(y) / y + x * exp(-x)

    y = [0.0, 1e-12, 0.0, 1e-12, 0.5, 0.0]
    x = [0.0, 0.0, 0.5, 1e-3, 0.0, 1e-4]
    args = [tf.constant(x), tf.constant(y)]
    sinc = np.sinc(np.float64(y) / np.pi)
    for formula, wanted in (
        (product, _exact(_third, tuple(map(float, np.float32(x))), 0) * sinc),
        (sum_of, 1 - sinc - _exact(_gamma, tuple(map(float, np.float32(x))), 0)),
    ):
        value, slopes = modes.value_and_gradients(
            rewritten(all_rules(), formula), args, mode
        )
        assert_close(value, wanted, scale=0.1)
        assert all(np.isfinite(each).all() for each in slopes)
