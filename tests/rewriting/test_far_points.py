"""Formulas of several fields at points that are far from their usual ones."""

import numpy as np
import pytest
import tensorflow as tf

from tests.rewriting.emitting import fired
from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe import stabilize
from tfsafe.rewriting.rules.table import all_rules

exp, erfc, log, sqrt = tf.exp, tf.math.erfc, tf.math.log, tf.sqrt
expm1, log1p = tf.math.expm1, tf.math.log1p

# Exponentials over numbers whose inverse square overflows; points of x and n.
DIVISORS = {
    "exp(x) / (n + exp(x))": (
        lambda x, n: exp(x) / (n + exp(x)),
        [(-60.0, 1e-20), (-84.0, 1e-36), (1.0, 2.0)],
    ),
    "x * exp(x) / (n + exp(x))": (
        lambda x, n: x * exp(x) / (n + exp(x)),
        [(-60.0, 1e-20), (-84.0, 1e-36), (1.0, 2.0)],
    ),
    "exp(2 * x) / (n * exp(x))": (
        lambda x, n: exp(2 * x) / (n * exp(x)),
        [(-60.0, 1e-20), (-44.0, 3e-20), (1.0, 2.0)],
    ),
    "sum(exp([x, 2 * x]) / n) * exp(x / 2)": (
        lambda x, n: tf.reduce_sum(exp([x, 2 * x]) / n, 0) * exp(x / 2),
        [(-60.0, 1e-20), (-80.0, 1e-30), (1.0, 2.0)],
    ),
    "erfc(abs(x) / 8) / n * exp(x / 2)": (
        lambda x, n: erfc(tf.abs(x) / 8) / n * exp(x / 2),
        [(-60.0, 1e-20), (1.0, 2.0)],
    ),
    "exp(-x * x) * (1 / n)": (
        lambda x, n: exp(-x * x) * (1 / n),
        [(7.0, 1e-20), (8.5, 1e-30), (1.0, 2.0)],
    ),
}


def _frank(u, v, t):
    return -log(1 + (exp(-t * u) - 1) * (exp(-t * v) - 1) / (exp(-t) - 1)) / t


def _exact_frank(u, v, t):
    return -log1p(expm1(-t * u) * expm1(-t * v) / expm1(-t)) / t


# Formulas, the same without cancellation, and points.
FORMULAS = {
    "divergence of two rates, one of them rare": (
        lambda p, q: p * log(p / q) + (1 - p) * log((1 - p) / (1 - q)),
        lambda p, q: p * log(p / q) + (1 - p) * log((1 - p) / (1 - q)),
        [(0.3, 1e-20), (0.4, 0.7)],
    ),
    "dose by two rates that are large": (
        lambda a, b, t: a / (a - b) * (exp(-b * t) - exp(-a * t)),
        lambda a, b, t: a * t * exp(-b * t) * (1 - (a - b) * t / 2),
        [(1000.0, 1000.0, 1.0), (80.0, 80.0, 1.0), (1.0, 1.0, 1.0)],
    ),
    "Frank's copula of a rare event": (
        _frank,
        _exact_frank,
        [(1e-20, 0.25, 0.75), (1e-7, 1e-7, 0.8), (0.3, 0.6, 2.0)],
    ),
    "noise of the first moments of a diffusion": (
        lambda t: sqrt(1 - exp(-(0.1 * t + 10 * t**2))),
        lambda t: sqrt(-expm1(-(0.1 * t + 10 * t**2))),
        [(1e-20,), (1e-18,), (1e-7,), (0.5,)],
    ),
}


def _rescaled(x):
    root = sqrt(1 + 0.004 * (tf.abs(x) + 1.001))
    return tf.sign(x) * (((root - 1) / 0.002) ** 2 - 1)


def _exact_rescaled(x):
    step = 2 * x / (sqrt(1 + 0.004 * (x + 1.001)) + 1.002)
    return step * (2 + step)


def _companded(x):
    size = tf.abs(x)
    logs = tf.where(size < 0.01, 100 * size, 1 + log(100 * size))
    return tf.sign(x) * logs / 5.6


# Functions of a size with a sign, exact ones of numbers that are not negative.
ODD_FUNCTIONS = {
    "value of a network from its rescaled one": (
        _rescaled,
        _exact_rescaled,
        [(0.0,), (0.5,), (300.0,)],
    ),
    "sample from its companded one": (
        lambda x: tf.sign(x) * (256.0 ** tf.abs(x) - 1) / 255,
        lambda x: expm1(x * log(tf.constant(256.0, x.dtype))) / 255,
        [(0.0,), (1e-20,), (0.5,)],
    ),
    "sample companded by two formulas": (
        _companded,
        lambda x: tf.where(x < 0.01, 100 * x, 1 + log(100 * x + 1e-300)) / 5.6,
        [(0.0,), (1e-20,), (0.5,)],
    ),
}


def _grades(x):
    above = tf.sigmoid(x[:, tf.newaxis] - [-1.0, 1.0])
    high, low = above[:, :1], above[:, 1:]
    return tf.concat([1 - high, high - low, low], -1)


def _mixture(x, rate=2):
    return 0.3 * tf.sigmoid(rate * (x - 1)) + 0.7 * tf.sigmoid(rate * (x + 1))


def _gated(x, w, sign=1):
    gate = tf.sigmoid(w)
    return gate * tf.sigmoid(sign * x) + (1 - gate) * tf.sigmoid(sign * (x + 1))


def _shared(x, w, sign=1):
    chances = tf.sigmoid(sign * (x[:, tf.newaxis] - w))
    return tf.reduce_sum(tf.nn.softmax(w) * chances, -1)


# Logarithms of sums of probabilities and of 1 minus a weighted mean of these.
MIXTURES = {
    "one of several grades, between two thresholds": (
        lambda x: log(tf.reduce_sum(_grades(x) * [0.0, 1.0, 0.0], -1)),
        lambda x: (
            tf.math.log_sigmoid(x + 1)
            + tf.math.log_sigmoid(1 - x)
            + np.log(1 - np.exp(-2))
        ),
        [(100.0,), (-50.0,), (0.5,)],
    ),
    "one of the two outer grades": (
        lambda x: log(tf.reduce_sum(_grades(x) * [1.0, 0.0, 1.0], -1)),
        lambda x: log1p(tf.sigmoid(x - 1) - tf.sigmoid(x + 1)),
        [(100.0,), (-3.0,), (0.5,)],
    ),
    "log odds of a mixture whose weights are those of all rows": (
        lambda x, w: log(_shared(x, w)) - log(1 - _shared(x, w)),
        lambda x, w: log(_shared(x, w)) - log(_shared(x, w, -1)),
        [(30.0, 1.0), (4.0, 0.5), (-20.0, -1.0)],
    ),
    "log odds of a mixture of logistic distributions": (
        lambda x: log(_mixture(x)) - log(1 - _mixture(x)),
        lambda x: log(_mixture(x)) - log(_mixture(x, -2)),
        [(-40.0,), (0.1,), (12.0,), (40.0,)],
    ),
    "survival of a mixture of logistic distributions": (
        lambda x: log(1 - _mixture(x)),
        lambda x: tf.where(
            x < 0, log1p(-_mixture(tf.minimum(x, 0.0))), log(_mixture(x, -2))
        ),
        [(-40.0,), (12.0,), (40.0,)],
    ),
    "misses of two experts and a gate": (
        lambda x, w: log(1 - _gated(x, w)),
        lambda x, w: log(_gated(x, w, sign=-1)),
        [(40.0, 0.3), (12.0, -20.0), (0.5, 0.5)],
    ),
    "misses of two experts on average": (
        lambda x: log(1 - 0.5 * (tf.sigmoid(x) + tf.sigmoid(x + 1))),
        lambda x: log(0.5 * (tf.sigmoid(-x) + tf.sigmoid(-x - 1))),
        [(40.0,), (12.0,), (0.5,)],
    ),
}


def _normal(t):
    return exp(-0.5 * log(t / (1 - t)) ** 2)


# Densities at the ends of their support, where they are 0; the last points are usual.
DENSITIES = {
    "log-normal density": (
        lambda x, m, s: exp(-((log(x) - m) ** 2) / (2 * s**2)) / (x * s),
        [(0.0, 0.1, 0.5), (1e-20, 0.1, 0.5), (1.5, 0.1, 0.5)],
    ),
    "log-normal density by an inverse": (
        lambda x, m, s: 1 / (x * s) * exp(-((log(x) - m) ** 2) / (2 * s**2)),
        [(0.0, 0.1, 0.5), (1.5, 0.1, 0.5)],
    ),
    "Levy density": (
        lambda x: exp(-0.5 / x) / x**1.5,
        [(0.0,), (1e-30,), (0.3,)],
    ),
    "density of a logistic of a normal number": (
        lambda t: _normal(t) / (t * (1 - t)),
        [(0.0,), (1.0,), (0.3,)],
    ),
}
CASES = {
    **{name: (f, f, points) for name, (f, points) in DIVISORS.items()},
    **FORMULAS,
    **ODD_FUNCTIONS,
    **MIXTURES,
}


@pytest.mark.parametrize(
    ("name", "mode"),
    [*((name, "graph") for name in CASES), ("exp(x) / (n + exp(x))", "xla")],
)
def test_value_and_slopes_are_those_of_float64(name, mode):
    formula, exact, points = CASES[name]

    def run(form, dtype):
        def both(*args):
            with tf.GradientTape() as tape:
                tape.watch(args)
                value = form(*args)
            return value, *tape.gradient(value, args)

        numbers = np.array(points, np.float32).T
        return modes.compile_for(mode, both)(*tf.unstack(tf.constant(numbers, dtype)))

    results = run(stabilize(formula), tf.float32), run(exact, tf.float64)
    for result, right in zip(*results, strict=True):
        assert_close(result, right, 128, why="products of many factors")


def test_a_limit_over_two_divisors_does_not_overflow_between_them():
    def distance(m, s, n, t):
        return ((m - n) ** 2 / 2 + (s - t) ** 2) / (2 * s * t)

    args = [tf.constant(each) for each in (1e10, 100.0, -1e4, 1e-20)]
    value = modes.compile_for("graph", stabilize(distance))(*args)
    assert_close(value, 2.500005e37)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tf.sign(x) * sqrt(tf.abs(x)),
        lambda x: tf.sign(x) * (1 + tf.abs(x)),
        lambda x: tf.sign(x + 1) * expm1(tf.abs(x)),
        lambda x: tf.sign(x) * tf.where(tf.abs(x) > 1, expm1(tf.abs(x)), 2.0),
    ],
)
def test_only_a_function_that_is_0_with_its_argument_has_a_slope_there(function):
    assert "odd-function" not in fired(all_rules(), function, tf.constant([0.0, 1.0]))


def test_weights_of_another_sum_leave_a_logarithm_as_it_is():
    def formula(x):
        return log(1 - 0.4 * tf.sigmoid(x) - 0.5 * tf.sigmoid(x + 1))

    assert "log-of-complement" not in fired(all_rules(), formula, tf.constant([1.0]))

    def shared(x):
        return log(1 - (0.4 * tf.sigmoid(x) + 0.5 * tf.sigmoid(x + 1)))

    points = tf.constant([-3.0, 2.0, 30.0])
    exact = shared(tf.cast(points, tf.float64))
    assert_close(stabilize(shared)(points), exact)


def test_a_softmax_whose_size_is_unknown_may_be_repeated():
    def formula(x, w):
        return log(1 - tf.reduce_sum(tf.nn.softmax(w) * tf.sigmoid(x), -1))

    args = tf.constant([[-3.0, -4.0], [-1.0, -2.0]]), tf.constant([[0.3], [0.1]])
    signature = [tf.TensorSpec([None, None])] * 2
    value = stabilize(tf.function(formula, input_signature=signature))(*args)
    assert_close(value, formula(*args))


@pytest.mark.parametrize("name", DENSITIES)
def test_a_density_is_0_at_the_ends_of_its_support(name):
    formula, points = DENSITIES[name]

    def both(*args):
        with tf.GradientTape() as tape:
            tape.watch(args)
            value = stabilize(formula)(*args)
        return value, *tape.gradient(value, args)

    args = tf.unstack(tf.constant(np.array(points, np.float32).T))
    results = modes.compile_for("graph", both)(*args)
    for result in results:
        np.testing.assert_array_equal(result[:-1], 0)
    below = stabilize(formula)(*(each[0] - 1e-20 for each in args))
    assert np.isnan(below).all()
    usual = formula(*(tf.cast(each[-1], tf.float64) for each in args))
    assert_close(results[0][-1], usual)


@pytest.mark.parametrize(
    "formula", [lambda x: exp(log(x)) / x, lambda x: exp(-x) / x, lambda x: exp(x) * x]
)
def test_what_is_not_0_there_is_no_such_density(formula):
    assert "flat-limit" not in fired(all_rules(), formula, tf.constant([0.0, 1.0]))
