"""Differences of one function at two points over the distance: value, two slopes."""

import itertools

import mpmath
import numpy as np
import pytest
import tensorflow as tf

from tests.rewriting.emitting import fired
from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe import stabilize
from tfsafe.rewriting.rules.table import all_rules

NAMES = {"removable-singularity", "limit-of-quotient"}


class _Exact:
    """mpmath under TensorFlow's names."""

    def __getattr__(self, name):
        return getattr(mpmath, name)

    def sigmoid(self, x):
        return 1 / (1 + mpmath.exp(-x))

    def softplus(self, x):
        return mpmath.log1p(mpmath.exp(x))


def _of_points(function, *points):
    """Returns `(f(a) - f(b)) / (a - b)` with points where a is, or is near, b."""
    return (
        lambda t, a, b: (function(t, a) - function(t, b)) / (a - b),
        *(points or ((0.75, 0.75), (0.75, 0.7500001), (0.5, 0.625), (2.0, 0.5))),
    )


DIFFERENCE = "derivatives of series whose terms are larger than their sums"

# By name: the formula, and points.
FORMULAS = {
    "exp": _of_points(lambda t, x: t.exp(x), (0.75, 0.75), (0.5, 0.625), (-90.0, -90)),
    "expm1": _of_points(lambda t, x: t.expm1(x)),
    "log": _of_points(lambda t, x: t.log(x)),
    "log1p": _of_points(lambda t, x: t.log1p(x)),
    "sqrt": _of_points(lambda t, x: t.sqrt(x)),
    "reciprocal": _of_points(lambda _, x: 1 / x, (-2.0, -2.0), (2.0, 0.5), (3.0, 3.1)),
    "twice the reciprocal": _of_points(
        lambda _, x: 2 / x, (-2.0, -2.0), (2.0, 0.5), (3.0, 3.1)
    ),
    "sin": _of_points(lambda t, x: t.sin(x)),
    "cos": _of_points(lambda t, x: t.cos(x)),
    "tan": _of_points(lambda t, x: t.tan(x)),
    "sinh": _of_points(lambda t, x: t.sinh(x)),
    "cosh": _of_points(lambda t, x: t.cosh(x)),
    "atan": _of_points(lambda t, x: t.atan(x), (0.0, 0.0), (0.75, 0.75), (2.0, 0.5)),
    "tanh": _of_points(lambda t, x: t.tanh(x), (0.0, 0.0), (9.0, 9.0), (2.0, 0.5)),
    "sigmoid": _of_points(lambda t, x: t.sigmoid(x), (0.0, 0.0), (20.0, 20.0)),
    "softplus": _of_points(lambda t, x: t.softplus(x), (0.0, 0.0), (-9.0, -9.0)),
    "erf": _of_points(lambda t, x: t.erf(x), (0.0, 0.0), (2.0, 2.0), (0.5, 0.625)),
    "square": _of_points(lambda _, x: x * x, (0.0, 0.0), (-3.0, -3.0), (3.0, 2.0)),
    "power 3": _of_points(lambda _, x: x**3, (0.0, 0.0), (-3.0, -3.0), (3.0, 2.0)),
    "power -2": _of_points(lambda _, x: x**-2, (2.0, 2.0), (3.0, 2.0)),
    "power 2.5": _of_points(lambda _, x: x**2.5),
    "decay chain at any time": (
        lambda t, a, b: b / (b - a) * (t.exp(-3 * a) - t.exp(-3 * b)),
        (0.75, 0.75),
        (0.75, 0.7500001),
        (0.5, 2.0),
    ),
    "a factor in both points": (
        lambda t, a, b: (t.exp(-2 * b) - t.exp(-a * b)) / (a - 2),
        (2.0, 0.75),
        (2.000001, 0.75),
        (0.5, 0.75),
    ),
    "motion on a circle": (
        lambda t, w, h: 3 / w * (t.sin(h + 0.1 * w) - t.sin(h)),
        (0.0, 0.75),
        (1e-6, 0.75),
        (1.0, 0.75),
    ),
    "a step times a tensor": (
        lambda t, w, h: (t.cos(h) - t.cos(h + w * h)) / w,
        (0.0, 0.75),
        (1e-6, 0.75),
        (1.0, 0.75),
    ),
    "saturation of any gain": (
        lambda t, g, x: t.tanh(g * x) / t.tanh(g),
        (0.0, 0.75),
        (1e-3, 0.75),
        (1.0, 0.75),
    ),
    "companding": (
        lambda t, g, x: t.log(1 + g * x) / t.log(1 + g),
        (0.0, 0.75),
        (1e-3, 0.75),
        (255.0, 0.75),
    ),
    "fixation of a mutation": (
        lambda t, s, n: (1 - t.exp(-2 * s)) / (1 - t.exp(-4 * n * s)),
        (0.0, 10.0),
        (1e-5, 10.0),
        (0.1, 10.0),
    ),
    "idle queue": (
        lambda _, r, n: (1 - r) / (1 - r**8) + 0 * n,
        (1.0, 1.0),
        (1.000001, 1.0),
        (0.5, 1.0),
    ),
    "queue of any length": (
        lambda _, r, n: (1 - r) * r**2 / (1 - r ** (n + 1)),
        (1.0, 4.0),
        (1.000001, 4.0),
        (0.5, 4.0),
    ),
    "growing annuity": (
        lambda _, r, g: 100 / (r - g) * (1 - ((1 + g) / (1 + r)) ** 10),
        (0.03125, 0.03125),
        (0.03125, 0.0312501),
        (0.0625, 0.03125),
    ),
    "three over a tensor, from 3": (
        lambda _, x, c: c * (3 / x - 3) / (x - 1),
        (1.0, 0.75),
        (1.000001, 0.75),
        (0.5, 0.75),
    ),
    "one less three over a tensor, from 3": (
        lambda _, x, c: c * (1 - 3 / x) / (x - 3),
        (3.0, 0.75),
        (3.000001, 0.75),
        (0.5, 0.75),
    ),
    "a number to a power of a quotient": (
        lambda _, a, b: (3 ** (a / b - 1) - 1) / (a - b),
        (0.75, 0.75),
        (0.75, 0.7500001),
        (2.0, 0.5),
    ),
    "a quotient that 1 is not taken from": (
        lambda t, g, x: t.tanh(g / x) / t.sinh(2 * g / x),
        (0.0, 0.75),
        (1e-3, 0.75),
        (1.0, 0.75),
    ),
    "a quotient and more that 2 is taken from": (
        lambda t, a, b: t.tanh(a / b + b - 2) / t.sinh(2 * (a / b + b - 2)),
        (1.0, 1.0),
        (1.0, 1.0009765625),
        (0.5, 2.0),
    ),
    "price of a bond": (
        lambda _, r, c: c * (1 - (1 + r) ** -10) / r + (1 + r) ** -10,
        (0.0, 0.5),
        (1e-6, 0.5),
        (0.0625, 0.5),
    ),
    "instalment of a loan": (
        lambda _, r, c: c * r * (1 + r) ** 10 / ((1 + r) ** 10 - 1),
        (0.0, 0.5),
        (1e-6, 0.5),
        (0.0625, 0.5),
    ),
    "quantiles of Tukey": (
        lambda _, k, p: (p**k - (1 - p) ** k) / k,
        (0.0, 0.25),
        (1e-5, 0.25),
        (1.0, 0.25),
        (0.0, 0.5),
    ),
    "cumulative production": (
        lambda _, b, x: (1 - (1 + b * x) ** (1 - 1 / b)) / (1 - b),
        (1.0, 2.0),
        (1.000001, 2.0),
        (0.5, 2.0),
    ),
    "certainty equivalent of two gambles": (
        lambda t, a, x: -t.log((t.exp(-a * x) + t.exp(-3 * a)) / 2) / a,
        (0.0, 0.5),
        (1e-5, 0.5),
        (1.5, 0.5),
    ),
    "power mean": (
        lambda _, p, x: ((x**p + 3**p) / 2) ** (1 / p),
        (0.0, 0.5),
        (1e-5, 0.5),
        (2.0, 0.5),
    ),
    "production with elasticity of substitution": (
        lambda _, s, x: (0.25 * x ** ((s - 1) / s) + 0.75) ** (s / (s - 1)),
        (1.0, 0.5),
        (1.00001, 0.5),
        (0.5, 0.5),
    ),
    "deviance of Tweedie": (
        lambda _, p, x: (
            x ** (2 - p) / ((1 - p) * (2 - p))
            - x * 3 ** (1 - p) / (1 - p)
            + 3 ** (2 - p) / (2 - p)
        ),
        (1.0, 0.5),
        (2.0, 0.5),
        (1.00001, 0.5),
        (1.99999, 0.5),
        (1.5, 0.5),
    ),
    "divergence of order alpha": (
        lambda _, a, x: (
            (1 - 0.25**a * x ** (1 - a) - 0.75**a * (1 - x) ** (1 - a)) / (a * (1 - a))
        ),
        (1.0, 0.5),
        (0.0, 0.5),
        (1.00001, 0.5),
        (0.5, 0.75),
    ),
    "divergence of order beta": (
        lambda _, b, x: (x**b + (b - 1) * 2**b - b * x * 2 ** (b - 1)) / (b * (b - 1)),
        (1.0, 0.5),
        (0.0, 0.5),
        (1.00001, 0.5),
        (1.5, 0.5),
    ),
    "a base that is 1 and any power": (
        lambda _, a, b: (1 - a * b) ** (3 / a),
        (0.0, 0.5),
        (1e-6, 0.5),
        (0.25, 0.5),
    ),
    "a divisor of the second order in one factor": (
        lambda t, a, b: (t.exp(a * b) - 1 - a * b) / a**2,
        (0.0, 0.75),
        (-1e-3, 0.75),
        (2.0, 0.75),
    ),
    "a divisor of the second order, the argument negated": (
        lambda t, a, b: (a * b - 1 + t.exp(-a * b)) / (a * a),
        (0.0, 0.75),
        (1e-3, 0.75),
        (2.0, 0.75),
    ),
    "an entropy over a square": (
        lambda t, a, b: b * ((1 + a) * t.log1p(a) - a) / a**2,
        (0.0, 0.75),
        (1e-4, 0.75),
        (0.5, 0.75),
    ),
    "a power inside and below": (
        lambda t, a, b: (1 - t.exp(-a * b**2)) / b**2,
        (0.75, 0.0),
        (0.75, 1e-3),
        (0.5, 2.0),
    ),
    "powers of bases near each other over the order": (
        lambda _, k, x: 1e3 * (x**k - 2**k) / k,
        (0.0, 2.0),
        (0.5, 2.0001),
        (0.25, 2.5),
    ),
    "two poles": (
        lambda t, r, c: (1 / r - t.exp(-r) / r) * c,
        (0.0, 0.5),
        (1e-6, 0.5),
        (2.0, 0.5),
    ),
}
ORDERS = (0, 0), (1, 0), (0, 1), (2, 0), (0, 2)


def _exact(formula, point):
    """Returns the value, the slopes and the second derivatives, also of a limit."""
    with mpmath.workdps(400):
        far, step = mpmath.mpf(10) ** -30, mpmath.mpf(10) ** -40
        a, b = (mpmath.mpf(float(x)) for x in point)
        # Beside the point, and off the line where the two are equal.
        a, b = a + far, b + far * far

        def at(i, j):
            return formula(_Exact(), a + i * step, b + j * step)

        value = at(0, 0)
        sides = [(at(1, 0), at(-1, 0)), (at(0, 1), at(0, -1))]
        slopes = [(up - down) / (2 * step) for up, down in sides]
        seconds = [(up - 2 * value + down) / step**2 for up, down in sides]
        return [float(each) for each in (value, *slopes, *seconds)]


def _derivatives(formula):
    def run(a, b):
        with tf.GradientTape(persistent=True) as outer:
            outer.watch([a, b])
            with tf.GradientTape() as inner:
                inner.watch([a, b])
                value = formula(tf.math, a, b)
            slopes = inner.gradient(value, [a, b], unconnected_gradients="zero")
        seconds = [
            outer.gradient(slope, x, unconnected_gradients="zero")
            for slope, x in zip(slopes, (a, b), strict=True)
        ]
        return value, *slopes, *seconds

    return run


# Each in one mode, by turns: the functions of a row have one rule.
@pytest.mark.parametrize(
    ("name", "mode"), list(zip(FORMULAS, itertools.cycle(modes.MODES), strict=False))
)
def test_it_agrees_with_mpmath(name, mode):
    formula, *points = FORMULAS[name]
    args = [tf.constant(np.float32(each)) for each in zip(*points, strict=True)]
    got = modes.compile_for(mode, stabilize(_derivatives(formula)))(*args)
    wanted = zip(*(_exact(formula, p) for p in zip(*args, strict=True)), strict=True)
    for order, result, exact in zip(ORDERS, got, wanted, strict=True):
        size = max(1, np.abs(exact).max()) if sum(order) == 2 else 1
        assert_close(result, exact, 32, why=DIFFERENCE, scale=size)


@pytest.mark.parametrize("name", FORMULAS)
def test_the_plain_formula_fails_where_the_points_are_equal(name):
    formula, *points = FORMULAS[name]
    value = formula(tf.math, *map(tf.constant, points[0]))
    # `1 ** (1 / 0)` is 1.
    assert np.isnan(value) or abs(value - _exact(formula, points[0])[0]) > 0.1


@pytest.mark.parametrize("name", FORMULAS)
def test_half_precision_and_double_keep_their_digits_and_nan_stays(name):
    formula, *points = FORMULAS[name]
    run = stabilize(lambda a, b: formula(tf.math, a, b))
    for dtype in (tf.float16, tf.float64):
        args = [tf.constant([each, float("nan")], dtype) for each in points[0]]
        value = run(*args)
        exact = _exact(formula, [each[0] for each in args])[0]
        # `_exact` is 1e-30 beside the point.
        assert_close(value[0], exact, scale=1e-10)
        assert np.isnan(value[1])


NEAR_MISSES = {
    "another distance": lambda a, b: (tf.exp(a) - tf.exp(b)) / (a - 2 * b),
    "another function": lambda a, b: (tf.exp(a) - tf.sin(b)) / (a - b),
    "a sum": lambda a, b: (tf.exp(a) + tf.exp(b)) / (a + b),
    "another number": lambda a, _: (2 - tf.exp(a)) / a,
    "another multiple of the reciprocal": lambda a, b: (2 / a - 1 / b) / (a - b),
    "a multiple of the reciprocal that is not 1": lambda a, _: (1 - 2 / a) / (a - 1),
    "functions of numbers": lambda a, _: (
        a * tf.tanh(tf.constant(0.5)) / tf.tanh(tf.constant(0.25))
    ),
    "another order": lambda a, b: (a**b - b**a) / (a - b),
    "another factor": lambda a, b: (3 * tf.exp(a) - tf.exp(b)) / (a - b),
    "a sum that is not 1": lambda a, b: tf.math.log(1 + tf.exp(a * b)) / a,
    "an inverse function inside": lambda a, b: (
        tf.math.log(tf.cos(tf.math.asinh(a) * b)) / a
    ),
    "a power that is not 1": lambda a, b: (b**a + 1) ** (1 / a),
    "a sum over the argument": lambda a, b: tf.math.log1p(tf.reduce_sum(a * b)) / a,
    "a mean over the argument": lambda a, b: (
        tf.math.log(tf.reduce_mean(tf.exp(a * b), -1, keepdims=True)) / (a * b)
    ),
    "other places": lambda a, b: tf.math.expm1(a[:, None] * b) / a,
    "a pole inside": lambda a, b: b * tf.math.log(b / a + 1e-7) / a,
    "a power that is not inside": lambda a, b: (1 + tf.exp(-a * b**3)) / b**3,
    "a sum that is 2 at 0": lambda a, b: (a * b + 1 + tf.exp(-a * b)) / (a * a),
    "a logarithm of 0": lambda a, b: b * tf.math.log(a) / a,
    "powers of a fixed order": lambda a, _: (
        (1 - tf.reduce_sum(a ** tf.constant(2.5))) / (tf.constant(2.5) - 1)
    ),
    "powers over another order": lambda a, b: (
        tf.math.log(tf.reduce_sum(a ** b[0])) / (1 - b[1])
    ),
    "an epsilon": lambda a, b: (tf.exp(a) - tf.exp(b)) / (a - b + 1e-6),
    "another divisor": lambda a, b: tf.math.tanh(a * b) / tf.math.tanh(a + b),
    "two divisors": lambda a, b: 1 / a - tf.exp(-a) / b,
    "a NaN that is looked for": lambda a, b: tf.math.is_nan(
        (tf.exp(a) - tf.exp(b)) / (a - b)
    ),
}


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_another_quotient_is_left_alone(name):
    a, b = tf.constant([0.5, 0.75]), tf.constant([0.25, 2.0])
    assert not NAMES & set(fired(all_rules(), NEAR_MISSES[name], a, b))


def test_far_points_keep_value_and_slopes_where_the_argument_is_infinite():
    decay = stabilize(lambda t, a: (tf.exp(-a * t) - tf.exp(-3 * t)) / (3 - a))
    t, a = tf.constant([1e20, 2.0]), tf.constant([0.5, 0.5])
    value, slopes = modes.value_and_gradients(decay, [t, a], "graph")
    assert value[0] == 0
    np.testing.assert_array_equal([slope[0] for slope in slopes], [0, 0])


@pytest.mark.parametrize(
    "spread",
    [
        lambda a: a[:, None],
        lambda a: a[:, tf.newaxis],
        lambda a: tf.expand_dims(a, 1),
        lambda a: tf.reshape(a, [-1, 1]),
    ],
)
def test_each_row_has_an_argument_of_its_own(spread):
    def equivalent(x, a):
        return tf.math.log(tf.reduce_mean(tf.exp(spread(a) * x), -1)) / a

    x, a = tf.constant([[1.0, 2.0, 4.0], [1.0, 2.0, 3.0]]), tf.constant([0.0, 1e-5])
    value, (in_x, in_a) = modes.value_and_gradients(
        stabilize(equivalent), [x, a], "graph"
    )
    # The cumulants of a row, its mean, half its variance and a sixth of the next.
    near = 2 + float(a[1]) / 3
    assert_close(value, [7 / 3, near])
    assert_close(in_x[0], [1 / 3] * 3)
    assert_close(in_a, [7 / 9, 1 / 3])


def test_a_certainty_equivalent_is_the_mean_at_0(mode):
    x = tf.constant([1.0, 2.0, 0.5, 4.0])
    function = stabilize(lambda x, a: tf.math.log(tf.reduce_mean(tf.exp(a * x))) / a)
    value, (slope, rate) = modes.value_and_gradients(
        function, [x, tf.constant(0.0)], mode
    )
    exact = x.numpy().astype(float)
    assert_close(value, exact.mean())
    assert_close(slope, np.full(4, 1 / 4))
    assert_close(rate, exact.var() / 2)


@pytest.mark.parametrize("a", [1e-4, 0.01, 0.4])
def test_of_two_orders_that_may_vanish_the_nearer_has_the_limit(a, mode):
    # Their mean is 1 by rounding: at order 1 the sum is nearly 0, at order 0 it is.
    x = tf.constant([1 + 2**-10, 1 - 2**-10 + 2**-23])
    entropy = stabilize(lambda x, a: (tf.reduce_mean(x**a) - 1) / (a * (a - 1)))
    value, (slope, _) = modes.value_and_gradients(entropy, [x, tf.constant(a)], mode)
    wide, order = x.numpy().astype(float), float(np.float32(a))
    exact = np.expm1(order * np.log(wide)).mean() / order
    assert_close(value, exact / (order - 1), scale=2**-10 / (1 - order))
    right = wide ** (order - 1) / (order - 1) / 2
    assert_close(slope, right)
