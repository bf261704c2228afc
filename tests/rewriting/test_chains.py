"""Formulas that are applied to their own results, step by step."""

import numpy as np
import pytest
import tensorflow as tf

from tests.rewriting.emitting import rewritten
from tests.rewriting.tables import RULES
from tests.support import modes

STEPS = {
    "a fraction of sums": lambda x: (x + 0.3) / (1 + 0.3 * x),
    "Newton's": lambda x: x - (x * x - 2) / (2 * x),
    "over a root of a square": lambda x: x / (tf.sqrt(x * x) + 1e-8),
    "a fraction of polynomials": lambda x: (x * x + 1) / (x * x + 2 * x + 3),
    "over a root of a sum": lambda x: x / (tf.sqrt(0.9 * x * x + 0.1) + 1e-7),
    "a part of a sum": lambda x: x**2 / (x**2 + 0.25),
}
_X = np.array([0.5, 0.75, 1.25, 1.5], np.float32)


def _repeated(step, count):
    def chain(x):
        for _ in range(count):
            x = step(x)
        return x

    return chain


def _wide_operations(step, count):
    stable = rewritten(RULES, _repeated(step, count), tf.TensorSpec([None]))
    graph = stable.get_concrete_function(tf.TensorSpec([None])).graph
    made = [op for op in graph.get_operations() if op.type in {"RealDiv", "Sqrt"}]
    return sum(op.outputs[0].dtype == tf.float64 for op in made)


@pytest.mark.parametrize("name", STEPS)
def test_a_step_is_not_computed_again_in_those_after_it(name):
    step = STEPS[name]
    assert _wide_operations(step, 16) - _wide_operations(step, 12) <= 4


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
    np.testing.assert_allclose(value, exact, rtol=1e-6)
    np.testing.assert_allclose(made, slope, rtol=2e-5, atol=1e-6)
