"""Formulas of several fields at points that are far from their usual ones."""

import numpy as np
import pytest
import tensorflow as tf

from tests.support import modes
from tfsafe import stabilize

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
CASES = {
    **{name: (f, f, points) for name, (f, points) in DIVISORS.items()},
    **FORMULAS,
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
        np.testing.assert_allclose(result, np.float32(right), 2e-4, 1e-37)


def test_a_limit_over_two_divisors_does_not_overflow_between_them():
    def distance(m, s, n, t):
        return ((m - n) ** 2 / 2 + (s - t) ** 2) / (2 * s * t)

    args = [tf.constant(each) for each in (1e10, 100.0, -1e4, 1e-20)]
    value = modes.compile_for("graph", stabilize(distance))(*args)
    np.testing.assert_allclose(value, 2.500005e37, 1e-6)
