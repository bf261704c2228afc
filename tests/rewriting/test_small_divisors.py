"""Exponentials over numbers whose inverse square overflows."""

import numpy as np
import pytest
import tensorflow as tf

from tests.support import modes
from tfsafe import stabilize

exp, erfc = tf.exp, tf.math.erfc

# Formulas of x and n, with points at which the slope in n is in range.
FORMULAS = {
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


@pytest.mark.parametrize(
    ("name", "mode"),
    [*((name, "graph") for name in FORMULAS), (next(iter(FORMULAS)), "xla")],
)
def test_the_slope_in_a_small_divisor_is_finite(name, mode):
    formula, points = FORMULAS[name]

    def run(form, dtype):
        def both(*args):
            with tf.GradientTape() as tape:
                tape.watch(args)
                value = form(*args)
            return value, *tape.gradient(value, args)

        args = [tf.constant(each, dtype) for each in zip(*points, strict=True)]
        return modes.compile_for(mode, both)(*args)

    results = run(stabilize(formula), tf.float32), run(formula, tf.float64)
    for result, exact in zip(*results, strict=True):
        np.testing.assert_allclose(result, exact, 2e-4)
