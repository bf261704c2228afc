"""Losses and programs made at random are right when they are stabilised."""

import numpy as np
import pytest
import tensorflow as tf

from tests.rewriting import grammar, programs
from tfsafe import stabilize


def _value_and_gradient(function, z, *given):
    with tf.GradientTape() as tape:
        tape.watch(z)
        value = function(z, *given)
    return value, tape.gradient(value, z)


def _wrong(expression: grammar.Expression, *, jit_compile: bool = False) -> str:
    """Returns what is wrong with an expression, or nothing."""
    function = tf.function(
        stabilize(expression.naive), autograph=False, jit_compile=jit_compile
    )
    z, *given = (tf.constant(x) for x in (expression.logits, *expression.given))
    found = _value_and_gradient(function, z, *given)
    exact = _value_and_gradient(expression.exact, tf.cast(z, tf.float64))
    relative, absolute = expression.tolerance
    for name, got, right in zip(("value", "gradient"), found, exact, strict=True):
        got, right = np.asarray(got, np.float64), np.asarray(right)
        # A sum of terms that cancel is right to the rounding of the largest; those of
        # `1 + log(p)` are near 1.
        scale = np.maximum(np.abs(right), 1e-2 * np.abs(right).max())
        scale = np.maximum(scale, 1e-3)
        if not np.all(np.abs(got - right) <= relative * scale + absolute):
            return f"{expression.text}: {name} {got}, right is {right}"
    return ""


def _all_wrong(seeds, make=grammar.make, **options):
    return [wrong for seed in seeds if (wrong := _wrong(make(seed), **options))]


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


@pytest.mark.parametrize("block", range(3))
def test_sixty_programs(block):
    assert not _all_wrong(range(20 * block, 20 * block + 20), programs.make)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_a_thousand_programs(block):
    start = 60 + 50 * block
    assert not _all_wrong(range(start, start + 50), programs.make)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(3))
def test_sixty_programs_under_xla(block):
    start = 5000 + 20 * block
    assert not _all_wrong(range(start, start + 20), programs.make, jit_compile=True)
