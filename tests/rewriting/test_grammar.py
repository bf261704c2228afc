"""Losses made at random are right when they are stabilised."""

import numpy as np
import pytest
import tensorflow as tf

from tests.rewriting.grammar import make
from tfsafe import stabilize


def _value_and_gradient(function, z):
    with tf.GradientTape() as tape:
        tape.watch(z)
        value = function(z)
    return value, tape.gradient(value, z)


def _wrong(seed: int, *, jit_compile: bool = False) -> str:
    """Returns what is wrong with an expression, or nothing."""
    expression = make(seed)
    function = tf.function(
        stabilize(expression.naive), autograph=False, jit_compile=jit_compile
    )
    given = _value_and_gradient(function, tf.constant(expression.logits))
    exact = _value_and_gradient(
        expression.exact, tf.constant(expression.logits, tf.float64)
    )
    for name, got, right in zip(("value", "gradient"), given, exact, strict=True):
        got, right = np.asarray(got, np.float64), np.asarray(right)
        # A sum of terms that cancel is right to the rounding of the largest.
        scale = np.maximum(np.abs(right), 1e-2 * np.abs(right).max())
        if not np.all(np.abs(got - right) <= 2e-5 * scale + 1e-9):
            return f"{expression.text}: {name} {got}, right is {right}"
    return ""


def _all_wrong(seeds, **options):
    return [wrong for seed in seeds if (wrong := _wrong(seed, **options))]


@pytest.mark.parametrize("block", range(10))
def test_two_hundred_losses(block):
    assert not _all_wrong(range(20 * block, 20 * block + 20))


def test_under_xla():
    assert not _all_wrong(range(5000, 5008), jit_compile=True)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(40))
def test_two_thousand_losses(block):
    start = 200 + 50 * block
    assert not _all_wrong(range(start, start + 50))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(5))
def test_a_hundred_losses_under_xla(block):
    start = 5000 + 20 * block
    assert not _all_wrong(range(start, start + 20), jit_compile=True)
