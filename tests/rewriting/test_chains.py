"""Formulas that are applied to their own results, step by step."""

import numpy as np
import pytest
import tensorflow as tf

from tests.rewriting.emitting import rewritten
from tests.rewriting.tables import RULES
from tests.support import modes
from tests.support.oracle import assert_close


def _runge_kutta(x):
    def rate(x):
        return x * (1 - x) / (1 + x * x)

    a = rate(x)
    b = rate(x + 0.05 * a)
    c = rate(x + 0.05 * b)
    d = rate(x + 0.1 * c)
    return x + 0.1 / 6 * (a + 2 * b + 2 * c + d)


STEPS = {
    "a fraction of sums": lambda x: (x + 0.3) / (1 + 0.3 * x),
    "Newton's": lambda x: x - (x * x - 2) / (2 * x),
    "over a root of a square": lambda x: x / (tf.sqrt(x * x) + 1e-8),
    "a fraction of polynomials": lambda x: (x * x + 1) / (x * x + 2 * x + 3),
    "over a root of a sum": lambda x: x / (tf.sqrt(0.9 * x * x + 0.1) + 1e-7),
    "Euler's": lambda x: x + 0.05 * (x * (1 - x / 5) - 0.5 * x * x / (1 + x)),
    "Runge and Kutta's": _runge_kutta,
    "a part of a sum": lambda x: x**2 / (x**2 + 0.25),
}
_X = np.array([0.5, 0.75, 1.25, 1.5], np.float32)


def _repeated(step, count):
    def chain(x):
        for _ in range(count):
            x = step(x)
        return x

    return chain


def _operations(step, count):
    stable = rewritten(RULES, _repeated(step, count), tf.TensorSpec([None]))
    graph = stable.get_concrete_function(tf.TensorSpec([None])).graph
    return len(graph.get_operations())


@pytest.mark.parametrize("name", STEPS)
def test_a_step_is_not_computed_again_in_those_after_it(name):
    first, third, tenth, last = (
        _operations(STEPS[name], count) for count in (1, 3, 10, 12)
    )
    assert last - tenth <= 2.5 * (third - first)


@pytest.mark.parametrize("name", STEPS)
def test_a_chain_in_range_is_as_exact_as_its_steps(name, mode):
    chain = _repeated(STEPS[name], 8)
    wide = tf.constant(_X, tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(wide)
        exact = chain(wide)
    slope = tape.gradient(exact, wide)
    stable = rewritten(RULES, chain, tf.TensorSpec([None]))
    value, (made,) = modes.value_and_gradients(stable, [tf.constant(_X)], mode)
    assert_close(value, exact)
    assert_close(made, slope, scale=1.0)
