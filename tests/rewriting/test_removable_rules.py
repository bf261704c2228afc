"""Quotients with a limit where both sides are 0: value and two derivatives."""

import functools

import mpmath
import numpy as np
import pytest
import tensorflow as tf

from tests.rewriting.emitting import fired, in_modes, rewritten, second_gradients
from tests.rewriting.tables import RULES
from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe import stabilize
from tfsafe.rewriting.rules.limits import steps
from tfsafe.rewriting.rules.table import all_rules

# By name: the formula, and the same for mpmath.
FORMULAS = {
    "sin(x) / x": (lambda x: tf.sin(x) / x, lambda x: mpmath.sin(x) / x),
    "x / sin(x)": (lambda x: x / tf.sin(x), lambda x: x / mpmath.sin(x)),
    "sinh(x) / x": (lambda x: tf.sinh(x) / x, lambda x: mpmath.sinh(x) / x),
    "tanh(x) / x": (lambda x: tf.tanh(x) / x, lambda x: mpmath.tanh(x) / x),
    "x / tanh(x)": (lambda x: x / tf.tanh(x), lambda x: x / mpmath.tanh(x)),
    "atan(x) / x": (lambda x: tf.atan(x) / x, lambda x: mpmath.atan(x) / x),
    "(1 - cos(x)) / x**2": (
        lambda x: (1 - tf.cos(x)) / x**2,
        lambda x: (1 - mpmath.cos(x)) / x**2,
    ),
    "(cos(x) - 1) / (x * x)": (
        lambda x: (tf.cos(x) - 1) / (x * x),
        lambda x: (mpmath.cos(x) - 1) / x**2,
    ),
    "(1 - cos(x)) / x": (
        lambda x: (1 - tf.cos(x)) / x,
        lambda x: (1 - mpmath.cos(x)) / x,
    ),
    "(x - sin(x)) / x**3": (
        lambda x: (x - tf.sin(x)) / x**3,
        lambda x: (x - mpmath.sin(x)) / x**3,
    ),
    "(x - sin(x)) / (x * x * x)": (
        lambda x: (x - tf.sin(x)) / (x * x * x),
        lambda x: (x - mpmath.sin(x)) / x**3,
    ),
    "(exp(x) - 1) / x": (
        lambda x: (tf.exp(x) - 1) / x,
        lambda x: mpmath.expm1(x) / x,
    ),
    "expm1(x) / x": (
        lambda x: tf.math.expm1(x) / x,
        lambda x: mpmath.expm1(x) / x,
    ),
    "x / (exp(x) - 1)": (
        lambda x: x / (tf.exp(x) - 1),
        lambda x: x / mpmath.expm1(x),
    ),
    "(1 - exp(-x)) / x": (
        lambda x: (1 - tf.exp(-x)) / x,
        lambda x: -mpmath.expm1(-x) / x,
    ),
    "x / (1 - exp(-x))": (
        lambda x: x / (1 - tf.exp(-x)),
        lambda x: -x / mpmath.expm1(-x),
    ),
    "x / expm1(x)": (lambda x: x / tf.math.expm1(x), lambda x: x / mpmath.expm1(x)),
    "log(1 + x) / x": (
        lambda x: tf.math.log(1 + x) / x,
        lambda x: mpmath.log1p(x) / x,
    ),
    "log1p(x) / x": (lambda x: tf.math.log1p(x) / x, lambda x: mpmath.log1p(x) / x),
    "tan(x) / x": (lambda x: tf.tan(x) / x, lambda x: mpmath.tan(x) / x),
    "x / tan(x)": (lambda x: x / tf.tan(x), lambda x: x / mpmath.tan(x)),
    "x / sinh(x)": (lambda x: x / tf.sinh(x), lambda x: x / mpmath.sinh(x)),
    "asinh(x) / x": (lambda x: tf.asinh(x) / x, lambda x: mpmath.asinh(x) / x),
    "x / asinh(x)": (lambda x: x / tf.asinh(x), lambda x: x / mpmath.asinh(x)),
    "x / atan(x)": (lambda x: x / tf.atan(x), lambda x: x / mpmath.atan(x)),
    "asin(x / 4) / x": (lambda x: tf.asin(x / 4) / x, lambda x: mpmath.asin(x / 4) / x),
    "x / asin(x / 4)": (lambda x: x / tf.asin(x / 4), lambda x: x / mpmath.asin(x / 4)),
    "atanh(x / 4) / x": (
        lambda x: tf.atanh(x / 4) / x,
        lambda x: mpmath.atanh(x / 4) / x,
    ),
    "x / atanh(x / 4)": (
        lambda x: x / tf.atanh(x / 4),
        lambda x: x / mpmath.atanh(x / 4),
    ),
    "x / log1p(x)": (lambda x: x / tf.math.log1p(x), lambda x: x / mpmath.log1p(x)),
    "coth(x) - 1 / x": (
        lambda x: 1 / tf.tanh(x) - 1 / x,
        lambda x: mpmath.coth(x) - 1 / x,
    ),
    "cosh(x) / sinh(x) - 1 / x": (
        lambda x: tf.cosh(x) / tf.sinh(x) - 1 / x,
        lambda x: mpmath.coth(x) - 1 / x,
    ),
    "1 / (2 tanh(x)) - 1 / (2 x)": (
        lambda x: 1 / (2 * tf.tanh(x)) - 1 / (2 * x),
        lambda x: (mpmath.coth(x) - 1 / x) / 2,
    ),
    "1 / x - 1.5 / (1.5 tanh(x))": (
        lambda x: tf.math.reciprocal(x) - 1.5 / (1.5 * tf.tanh(x)),
        lambda x: 1 / x - mpmath.coth(x),
    ),
    "3 coth(3 x) - coth(x)": (
        lambda x: 3 * tf.math.reciprocal(tf.tanh(3 * x)) - 1 / tf.tanh(x),
        lambda x: 3 * mpmath.coth(3 * x) - mpmath.coth(x),
    ),
    "1 / (2 tanh(x)) - coth(2 x)": (
        lambda x: 1 / (2 * tf.tanh(x)) - 1 / tf.tanh(2 * x),
        lambda x: -mpmath.tanh(x) / 2,
    ),
    "sin(x / 2) (2 - x) / x": (
        lambda x: tf.sin(x / 2) * (2 - x) / x,
        lambda x: mpmath.sin(x / 2) * (2 - x) / x,
    ),
    "(1 / x) sin(x)": (
        lambda x: tf.math.reciprocal(x) * tf.sin(x),
        lambda x: mpmath.sin(x) / x,
    ),
    "2 sin(x)**2 / x**2": (
        lambda x: 2 * tf.sin(x) ** 2 / x**2,
        lambda x: 2 * mpmath.sin(x) ** 2 / x**2,
    ),
    "(x - atan(x)) / x**3": (
        lambda x: (x - tf.atan(x)) / x**3,
        lambda x: (x - mpmath.atan(x)) / x**3,
    ),
    "(asin(x / 4) - x / 4) / x**3": (
        lambda x: (tf.asin(x / 4) - x / 4) / x**3,
        lambda x: (mpmath.asin(x / 4) - x / 4) / x**3,
    ),
    "(tan(x) - x) / x**3": (
        lambda x: (tf.tan(x) - x) / x**3,
        lambda x: (mpmath.tan(x) - x) / x**3,
    ),
    "(sinh(x) - x) / (x * x * x)": (
        lambda x: (tf.sinh(x) - x) / (x * x * x),
        lambda x: (mpmath.sinh(x) - x) / x**3,
    ),
    "log(cosh(x)) / x**2": (
        lambda x: tf.math.log(tf.cosh(x)) / x**2,
        lambda x: mpmath.log(mpmath.cosh(x)) / x**2,
    ),
    "-log(cos(x / 2)) / x**2": (
        lambda x: -tf.math.log(tf.cos(x / 2)) / x**2,
        lambda x: -mpmath.log(mpmath.cos(x / 2)) / x**2,
    ),
    "(cosh(x) - 1) / x**2": (
        lambda x: (tf.cosh(x) - 1) / x**2,
        lambda x: (mpmath.cosh(x) - 1) / x**2,
    ),
    "(1 - (1 + x) exp(-x)) / x**2": (
        lambda x: (1 - (1 + x) * tf.exp(-x)) / x**2,
        lambda x: (1 - (1 + x) * mpmath.exp(-x)) / x**2,
    ),
    "(1 - cos(3 x)) / x / x": (
        lambda x: (1 - tf.cos(3 * x)) / x / x,
        lambda x: (1 - mpmath.cos(3 * x)) / x**2,
    ),
    "1 - sin(x) / x": (
        lambda x: 1 - tf.sin(x) / x,
        lambda x: 1 - mpmath.sin(x) / x,
    ),
    "x / tanh(x) - 1": (
        lambda x: x / tf.tanh(x) - 1,
        lambda x: x / mpmath.tanh(x) - 1,
    ),
    "2 - (1 - exp(-2 * x)) / x": (
        lambda x: 2 - (1 - tf.exp(-2 * x)) / x,
        lambda x: 2 + mpmath.expm1(-2 * x) / x,
    ),
    "(1 - cos(x)) / x**2 - 0.5": (
        lambda x: (1 - tf.cos(x)) / x**2 - 0.5,
        lambda x: (1 - mpmath.cos(x)) / x**2 - mpmath.mpf(0.5),
    ),
}
NAME = "removable-singularity"
# The worst is 1 - cos(3 x) at 1.99, and of the slopes (x - atan(x)) / x**3 at 0.51.
AS_WRITTEN = "differences of quotients, as written where x is not small"
POINTS = [0.0, 1e-30, 1e-5, -1e-3, 0.1, -0.24, 0.26, 0.49, 0.51, 0.99, 1.01, 1.99, 2.01]


def _exact(formula, x, order):
    """Returns a derivative; at 0 the coefficient of a polynomial through the limit."""
    with mpmath.workdps(120):
        x = mpmath.mpf(float(x))
        if abs(x) > 1e-7:
            return float(mpmath.diff(formula, x, order))
        # The formula is smooth: its mean on both sides of 0 is right to h^2 = 1e-40.
        h = mpmath.mpf(10) ** -20
        left, right = (mpmath.diff(formula, sign * h, order) for sign in (-1, 1))
        slope = (right - left) / (2 * h)
        return float((left + right) / 2 + slope * x)


def _truth(formula, points, order):
    return _exact_at(formula, tuple(map(float, points)), order)


@functools.cache
def _exact_at(formula, points, order):
    return np.array([_exact(formula, x, order) for x in points])


@pytest.mark.parametrize(("name", "mode"), in_modes(*FORMULAS))
def test_value_and_derivatives_are_right_at_0_and_around(name, mode):
    function, formula = FORMULAS[name]
    x = tf.constant(POINTS)
    if mode == "graph":
        assert {NAME, "limit-of-quotient"} & set(fired(RULES, function, x))
    value, (slope,) = modes.value_and_gradients(rewritten(RULES, function), [x], mode)
    assert_close(value, _truth(formula, x, 0), 24, why=AS_WRITTEN)
    assert_close(slope, _truth(formula, x, 1), 20, why=AS_WRITTEN, scale=0.5)


@pytest.mark.parametrize("name", FORMULAS)
def test_the_second_derivative_is_right_at_0_and_around(name):
    function, formula = FORMULAS[name]
    x = tf.constant(POINTS)
    (second,) = second_gradients(RULES, function, [x], "graph")
    assert_close(second, _truth(formula, x, 2), 90, why=AS_WRITTEN, scale=1.0)


@pytest.mark.parametrize("name", FORMULAS)
def test_half_precision_rounds_once(name):
    function, formula = FORMULAS[name]
    x = tf.constant([0.0, 1e-4, 0.125, 0.75, 3.0], tf.float16)
    value = rewritten(RULES, function)(x)
    assert value.dtype == tf.float16
    assert_close(value, _truth(formula, x, 0), 1)


@pytest.mark.parametrize("name", FORMULAS)
def test_the_plain_formula_fails_at_0(name):
    assert np.isnan(FORMULAS[name][0](tf.constant([0.0]))).all()


@pytest.mark.parametrize("name", FORMULAS)
def test_behind_where_the_gradient_is_finite(name):
    function = FORMULAS[name][0]
    safe = stabilize(lambda x: tf.where(x > 0, function(x), tf.ones_like(x)))
    x = tf.constant([0.0, 0.5])
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = safe(x)
    slope = tape.gradient(value, x)
    assert value[0] == 1
    assert slope[0] == 0
    assert np.isfinite(slope).all()


def test_large_arguments_keep_value_and_slope():
    x = tf.constant([100.0, -100.0, 1e30])
    value, (slope,) = modes.value_and_gradients(
        rewritten(RULES, lambda x: x / tf.math.expm1(x)), [x], "graph"
    )
    assert_close(value, [3.72e-42, 100.0, 0.0], 0.5)
    assert_close(slope, [0.0, -1.0, 0.0], 0.5)


def test_a_quotient_of_two_tensors_keeps_its_digits_near_its_limit():
    def missing(length, scale):
        return 1 - scale / length * (1 - tf.exp(-length / scale))

    def other(length, scale):
        return 1 - length / scale * (1 - tf.exp(-length / scale))

    args = tf.constant([1e-2, 0.0, 3.0, 1e20]), tf.constant([64.0, 2.0, 2.0, 1.0])
    assert NAME in fired(all_rules(), missing, *args)
    assert NAME not in fired(all_rules(), other, *args)
    value, slopes = modes.value_and_gradients(rewritten(RULES, missing), args, "graph")
    assert abs(missing(*args)[0] / value[0] - 1) > 1e-3
    for i, (length, scale) in enumerate(zip(*map(np.float64, args), strict=True)):
        ratio = length / scale or 1e-20

        def rest(z):
            return 1 + mpmath.expm1(-z) / z

        with mpmath.workdps(60):
            slope = mpmath.diff(rest, ratio)
            right = rest(mpmath.mpf(ratio)) if length else 0
        assert_close(value[i], float(right))
        for got, factor in zip(slopes, (1 / scale, -ratio / scale), strict=True):
            assert_close(got[i], float(slope * factor), scale=1e-13)


def _without_nan(y):
    return tf.where(tf.math.is_nan(y), 5.0, y)


NEAR_MISSES = {
    "another argument": lambda x: tf.sin(x) / (x * x + x),
    "one more than a square": lambda x: tf.sin(x * x + 1) / x,
    "no limit": lambda x: tf.cos(x) / x,
    "a pole": lambda x: (1 - tf.cos(x)) / x**3,
    "a number that is not the limit, by an epsilon": (
        lambda x: 1.5 - tf.sin(x + 1e-8) / (x + 1e-7)
    ),
    "another constant": lambda x: (tf.exp(x) - 2) / x,
    "poles of other weights": lambda x: 1.5 / tf.tanh(1.5 * x) - 1 / tf.tanh(x / 2),
    "poles of one sign": lambda x: 1.5 / tf.tanh(1.5 * x) + 0.5 / tf.tanh(x / 2),
    "poles of two arguments": lambda x: 1 / tf.tanh(x) - 1 / tf.tanh(tf.sin(x)),
    "a pole at another argument": lambda x: 1 / tf.tanh(x) - 1 / tf.sin(x),
    "a pole less itself": lambda x: 1 / tf.tanh(x) - 1 / tf.tanh(x),
    "poles without a function": lambda x: 1 / (2 * x) - 0.5 / x,
    "poles for each element": lambda x: [1.0, 2.0] / tf.tanh(x) - [1.0, 2.0] / x,
    "an epsilon": lambda x: tf.sin(x) / (x + 1e-8),
    "a limit that is chosen": lambda x: tf.math.divide_no_nan(tf.sin(x), x),
    "a NaN that is looked for": lambda x: _without_nan(tf.sin(x) / x),
}


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_another_quotient_is_left_alone(name):
    names = fired(all_rules(), NEAR_MISSES[name], tf.constant([0.0, 0.5]))
    assert not {NAME, "limit-of-quotient"} & set(names)


def test_a_nan_stays():
    for function, _ in FORMULAS.values():
        assert np.isnan(rewritten(RULES, function)(tf.constant([np.nan]))).all()


@pytest.mark.parametrize("has_curve", [False, True])
def test_a_sum_is_taken_apart_only_after_a_curve(has_curve, monkeypatch):
    # Each sum of a long chain would be, which takes a quarter of the time to plan it.
    taken = []
    of_sum = steps._of_sum
    monkeypatch.setattr(
        steps, "_of_sum", lambda op, reader: taken.append(op) or of_sum(op, reader)
    )

    def formula(x, y):
        first = tf.exp(x) if has_curve else x
        return first + y * x - x / y

    rewritten(RULES, formula)(tf.ones([2]), tf.ones([2]))
    assert bool(taken) == has_curve


def _norm(z):
    return tf.norm(z, axis=-1)


def _squares(z):
    return tf.reduce_sum(z * z, -1)


# A norm and its square, each written in a way of its own, and the function of the norm.
LENGTHS = {
    "(1 - cos(r)) / sum(z ** 2)": (
        lambda z: (1 - tf.cos(_norm(z))) / tf.reduce_sum(z**2, -1),
        lambda r: (1 - mpmath.cos(r)) / r**2,
    ),
    "(1 - cos(r)) / sum(z * z) with kept axes": (
        lambda z: (
            (1 - tf.cos(tf.norm(z, axis=-1, keepdims=True)))
            / tf.reduce_sum(z * z, -1, keepdims=True)
        )[:, 0],
        lambda r: (1 - mpmath.cos(r)) / r**2,
    ),
    "(r - sin(r)) / (r * sum(z * z))": (
        lambda z: (_norm(z) - tf.sin(_norm(z))) / (_norm(z) * _squares(z)),
        lambda r: (r - mpmath.sin(r)) / r**3,
    ),
    "(r - sin(r)) / r": (
        lambda z: (_norm(z) - tf.sin(_norm(z))) / _norm(z),
        lambda r: (r - mpmath.sin(r)) / r,
    ),
    "sin(r) / sqrt(sum(z * z))": (
        lambda z: tf.sin(_norm(z)) / tf.sqrt(_squares(z)),
        lambda r: mpmath.sin(r) / r,
    ),
    "(1 - r / 2 / tan(r / 2)) / sum(z * z)": (
        lambda z: (1 - _norm(z) / 2 / tf.tan(_norm(z) / 2)) / _squares(z),
        lambda r: (1 - r / 2 / mpmath.tan(r / 2)) / r**2,
    ),
    "sum(z * z) / r": (lambda z: _squares(z) / _norm(z), lambda r: r),
}


@pytest.mark.parametrize("name", LENGTHS)
def test_a_norm_and_its_square_may_be_written_in_two_ways(name, mode):
    function, exact = LENGTHS[name]
    z = tf.constant([[1e-3, 1e-4, 0.0], [1e-20, 0.0, 0.0], [0.3, 1.0, 1.0]])
    value, (slope,) = modes.value_and_gradients(rewritten(RULES, function), [z], mode)
    for row, got, slopes in zip(z.numpy().tolist(), value, slope, strict=True):
        with mpmath.workdps(100):
            r = mpmath.sqrt(sum(mpmath.mpf(v) ** 2 for v in row))
            wanted, rate = exact(r), mpmath.diff(exact, r, h=r * mpmath.mpf(10) ** -30)
        assert_close(got, float(wanted))
        assert_close(slopes, [float(rate * v / r) for v in row])


POWER_MEANS = {
    "mean": lambda x, p: tf.reduce_mean(x**p, -1) ** (1 / p),
    "mean of a floor": lambda x, p: tf.pow(
        tf.reduce_mean(tf.pow(tf.maximum(x, 1e-30), p), -1), 1 / p
    ),
    "mean over kept axes": lambda x, p: (
        tf.reduce_mean(x**p, -1, keepdims=True) ** (1.0 / p)
    )[:, 0],
    "sum": lambda x, p: tf.reduce_sum(x**p, -1) ** (1 / p),
    "mean by its logarithm": lambda x, p: tf.exp(
        tf.math.log(tf.reduce_mean(x**p, -1)) / p
    ),
    "sum by its logarithm": lambda x, p: tf.exp(
        1 / p * tf.math.log(tf.reduce_sum(x**p, -1))
    ),
}


@pytest.mark.parametrize("name", POWER_MEANS)
@pytest.mark.parametrize("p", [3.0, 40.0, -2.0, -30.0, 0.125])
def test_a_power_mean_is_right_where_the_powers_leave_the_range(name, p, mode):
    x = np.float32([[1.0, 2.0, 0.5], [1e-20, 3e-20, 2e-20], [4e18, 1e18, 3e18]])
    function = rewritten(RULES, POWER_MEANS[name])
    arguments = [tf.constant(x), tf.constant(p)]
    value, (slope, rate) = modes.value_and_gradients(function, arguments, mode)
    weight = 1.0 if name.startswith("sum") else 1 / 3
    why = "roots and powers, of up to 40"
    rates = []
    for row, got, slopes in zip(x.astype(float), value, slope, strict=True):
        scaled = row / row.max()
        total = weight * np.sum(scaled**p)
        root = total ** (1 / p)
        assert_close(got, root * row.max(), 8, why=why)
        exact = weight * scaled ** (p - 1) * total ** (1 / p - 1)
        assert_close(slopes, exact, 20, why=why, scale=4e-7)
        inside = weight * np.sum(scaled**p * np.log(scaled)) / total
        rates.append(root * row.max() * (inside - np.log(total) / p) / p)
    # A sum whose largest term is 1 keeps no more digits of its logarithm.
    assert_close(rate, np.sum(rates), 8, why=why, scale=np.max(x) / abs(p) / 8)


def test_a_power_mean_is_the_geometric_mean_at_0(mode):
    x = tf.constant([1.0, 2.0, 0.5, 4.0])
    function = rewritten(RULES, POWER_MEANS["mean"])
    value, (slope, rate) = modes.value_and_gradients(
        function, [x, tf.constant(0.0)], mode
    )
    logs = np.log(x.numpy().astype(float))
    mean = np.exp(logs.mean())
    assert_close(value, mean)
    assert_close(slope, mean / 4 / x.numpy().astype(float))
    assert_close(rate, mean * logs.var() / 2)


LOGS_OF_POWERS = {
    "sum": lambda x, p, w: tf.math.log(tf.reduce_sum(w * x**p, -1)),
    "weights last": lambda x, p, w: tf.math.log(
        tf.reduce_sum(x**p * w, -1, keepdims=True)
    )[:, 0],
    "mean": lambda x, p, w: tf.math.log(tf.reduce_mean(x**p, -1)) + 0 * w[0],
}


@pytest.mark.parametrize("name", LOGS_OF_POWERS)
def test_a_logarithm_of_powers_is_right_where_the_powers_leave_the_range(name, mode):
    x = np.float32([[1.0, 2.0, 0.5], [1e-20, 3e-20, 0.0], [4e18, -1e18, 3e15]])
    w = np.float32([0.5, 2.0, 1.0])
    function = rewritten(RULES, LOGS_OF_POWERS[name])
    arguments = [tf.constant(x), tf.constant(3.0), tf.constant(w)]
    value, (slope, *_) = modes.value_and_gradients(function, arguments, mode)
    weights = np.ones(3) / 3 if name == "mean" else w
    wide = x.astype(float)
    total = np.sum(weights * wide**3, -1)
    assert_close(value, np.log(total))
    exact = weights * 3 * wide**2 / total[:, None]
    assert_close(
        slope,
        exact,
        410,
        why="a term that is out of range has the digits of its logarithm",
    )


def test_other_logarithms_of_sums_are_no_logarithms_of_powers():
    x = tf.constant([0.5, 2.0])
    for formula in (
        lambda x: tf.math.log(tf.reduce_sum(x**3.0 + 1)),
        lambda x: tf.math.log(tf.reduce_sum(tf.sin(x))),
    ):
        assert "log-out-of-range" not in fired(all_rules(), formula, x)


def test_an_angle_over_its_hyperbolic_sine_has_its_limit_at_1(mode):
    c = [1.0, 1.0000001, 1.0001, 1.029, 1.031, 3.0, 1e10]
    function = rewritten(RULES, lambda c: tf.acosh(c) / tf.sqrt(c * c - 1))
    value, (slope,) = modes.value_and_gradients(function, [tf.constant(c)], mode)

    def exact(c):
        return mpmath.re(mpmath.acosh(c) / mpmath.sqrt(c * c - 1))

    with mpmath.workdps(100):
        points = [mpmath.mpf(float(np.float32(x))) + mpmath.mpf(10) ** -40 for x in c]
        wanted = [float(exact(x)) for x in points]
        rates = [float(mpmath.diff(exact, x, h=mpmath.mpf(10) ** -45)) for x in points]
    assert_close(value, wanted)
    assert_close(
        slope, rates, 52, why="a difference of quotients by c * c - 1, which is 0.06"
    )
    # Far below 1, and where the root is another one, it stays.
    assert np.isnan(function(tf.constant([0.98]))[0])
    other = lambda c: tf.acosh(c) / tf.sqrt(c * c + 1)  # noqa: E731
    assert NAME not in fired(all_rules(), other, tf.constant(c))
