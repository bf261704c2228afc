"""Where TensorFlow computes a random formula right, it stays right."""

import os

import numpy as np
import pytest
import tensorflow as tf

from tests.rewriting import sequences
from tfsafe import stabilize

# How many formulas, and how many of them in one graph.
COUNT, TOGETHER = int(os.environ.get("TFSAFE_SEQUENCES", "900")), 15


def _values_and_slopes(functions, args):
    with tf.GradientTape() as tape:
        tape.watch(args)
        # No value depends on the tensors of another formula.
        values = [f(*each) for f, each in zip(functions, args, strict=True)]
    return values, tape.gradient(values, args, unconnected_gradients="zero")


def _off(found, exact, size):
    """Returns how far off numbers are, relative to the exact ones and to a size.

    0 where those are not finite.
    """
    known = np.isfinite(exact)
    scale = np.abs(np.where(known, exact, 0)) + 1e-2 * size
    with np.errstate(invalid="ignore"):
        off = np.abs(found - exact) / scale
    return np.where(known, np.where(np.isfinite(off), off, np.inf), 0)


def _largest(numbers):
    """Returns the largest magnitude in arrays that is finite, and at least 0.1."""
    finite = [np.abs(each[np.isfinite(each)]).max(initial=0) for each in numbers]
    return max(0.1, *finite)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, COUNT, TOGETHER))
def test_where_the_plain_formula_is_right_the_stable_one_is(first):
    drawn = [sequences.make(seed) for seed in range(first, first + TOGETHER)]
    functions = [each.function for each in drawn]
    args = [[tf.constant(x) for x in each.args] for each in drawn]
    wide = [[tf.cast(x, tf.float64) for x in each] for each in args]

    @tf.function(autograph=False)
    def run(args):
        return _values_and_slopes([stabilize(f) for f in functions], args)

    exact, plain, stable = (
        [
            [np.asarray(x, np.float64) for x in (value, *slopes)]
            for value, slopes in zip(*found, strict=True)
        ]
        for found in (
            _values_and_slopes(functions, wide),
            _values_and_slopes(functions, args),
            run(args),
        )
    )
    for each, *results in zip(drawn, exact, plain, stable, strict=True):
        # Slopes of sums that do not change are the rounding of what they are made of.
        size = _largest(results[0])
        for right, usual, found in zip(*results, strict=True):
            wrong = (_off(found, right, size) > 1e-3) & (
                _off(usual, right, size) < 1e-4
            )
            assert not wrong.any(), f"{each.text}: {found}, right is {right}"
