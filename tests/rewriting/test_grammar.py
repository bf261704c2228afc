"""Losses and programs made at random are right when they are stabilised."""

import numpy as np
import pytest
import tensorflow as tf

from tests.rewriting import families, grammar, programs
from tfsafe import stabilize


def _wrong(expression: grammar.Expression, found, exact) -> str:
    """Returns what is wrong with the value and gradient found, or nothing."""
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


def _all_wrong(seeds, make=grammar.make, *, jit_compile: bool = False):
    """Returns what is wrong with some expressions; a few are traced as one function."""
    wrong: list[str] = []
    count = 10 if jit_compile else 5
    for start in range(0, len(seeds), count):
        wrong += _wrong_of(
            [make(seed) for seed in seeds[start : start + count]], jit_compile
        )
    return [each for each in wrong if each]


def _wrong_of(expressions, jit_compile):
    inputs = [tf.constant(each.logits) for each in expressions]
    given = [[tf.constant(x) for x in each.given] for each in expressions]

    @stabilize
    def naive(inputs, given):
        return [
            each.naive(z, *more)
            for each, z, more in zip(expressions, inputs, given, strict=True)
        ]

    @tf.function(autograph=False, jit_compile=jit_compile)
    def run(inputs, given):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            values = naive(inputs, given)
        # No value depends on the inputs of another expression.
        return values, tape.gradient(values, inputs)

    wrong = []
    for each, z, *found in zip(expressions, inputs, *run(inputs, given), strict=True):
        z = tf.cast(z, tf.float64)
        with tf.GradientTape() as tape:
            tape.watch(z)
            value = each.exact(z)
        wrong.append(_wrong(each, found, (value, tape.gradient(value, z))))
    return wrong


# Small blocks, of which tier one runs one.
@pytest.mark.parametrize("block", range(40))
def test_two_hundred_losses(block):
    assert not _all_wrong(range(5 * block, 5 * block + 5))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(4))
def test_two_hundred_more_losses(block):
    start = 200 + 50 * block
    assert not _all_wrong(range(start, start + 50))


@pytest.mark.slow
def test_twenty_losses_under_xla():
    assert not _all_wrong(range(5000, 5020), jit_compile=True)


@pytest.mark.parametrize("block", range(12))
def test_sixty_programs(block):
    assert not _all_wrong(range(5 * block, 5 * block + 5), programs.make)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(2))
def test_a_hundred_more_programs(block):
    start = 60 + 50 * block
    assert not _all_wrong(range(start, start + 50), programs.make)


@pytest.mark.slow
def test_twenty_programs_under_xla():
    assert not _all_wrong(range(5000, 5020), programs.make, jit_compile=True)


@pytest.mark.parametrize("block", range(8))
def test_forty_formulas_of_families(block):
    assert not _all_wrong(range(5 * block, 5 * block + 5), families.make)


def test_every_family_is_drawn():
    texts = " ".join(families.make(seed).text for seed in range(200))
    assert all(name in texts for name in families.FAMILIES)
