"""Formulas of the collection: right when stabilised, and never worse than plain."""

import functools

import mpmath
import numpy as np
import pytest
import tensorflow as tf

from tests.collection import every_formula
from tests.collection.formula import DIGITS, TOLERANCE, as_mp
from tests.collection.open import OPEN
from tests.rewriting.emitting import in_modes
from tests.support import modes
from tfsafe import NumericsError, checked, stabilize

FORMULAS = {formula.name: formula for formula in every_formula()}
NOT_YET = {name: why for family in OPEN.values() for name, why in family.items()}
REPAIRED = [
    name for name, each in FORMULAS.items() if name not in NOT_YET and not each.reason
]
# TensorFlow has no kernel of `tf.math.segment_sum` for XLA, and no gradient of a loop
# without a limit.
NOT_COMPILED = {
    "Sinkhorn iterations in a loop",
    "forward algorithm by while_loop",
    "logarithm of a softmax over sorted segments",
}
# How much further off than the value a slope may be.
SLOPES = 10
# Numbers below the normal ones may be 0.
TINY = np.finfo(np.float32).tiny


@functools.cache
def _truth(name, is_bad):
    formula = FORMULAS[name]
    if not is_bad or formula.slopes == "exact":
        return formula.truth(formula.bad if is_bad else formula.ordinary)
    args = [tensor.numpy() for tensor in formula.tensors(formula.bad)]
    with mpmath.workdps(DIGITS):
        exact = [as_mp(each) if each.dtype.kind == "f" else each for each in args]
        value = np.sum(np.asarray(formula.exact(*exact), object))
    return float(value), None


def _traced(form, mode):
    """Returns a function of the value and the slopes, compiled once for all inputs."""

    def run(*args):
        floats = [each for each in args if each.dtype.is_floating]
        with tf.GradientTape() as tape:
            tape.watch(floats)
            # Summed in float64: the reference has every digit.
            value = tf.reduce_sum(tf.cast(form(*args), tf.float64))
        return value, tape.gradient(value, floats, unconnected_gradients="zero")

    return modes.compile_for(mode, run)


def _miss(run, formula, *, is_bad):
    """Returns what is wrong, or nothing."""
    arrays = formula.bad if is_bad else formula.ordinary
    result, slopes = run(*formula.tensors(arrays))
    value = float(result)
    slopes = [np.asarray(each, np.float64) for each in slopes]
    exact, exact_slopes = _truth(formula.name, is_bad)
    tolerance = TOLERANCE[formula.dtype]
    if not abs(value - exact) <= tolerance * (abs(exact) or 1) + TINY:
        return f"value {value}, not {exact}"
    if not all(np.isfinite(each).all() for each in slopes):
        return f"slopes {slopes}"
    for slope, right in zip(slopes, exact_slopes or (), strict=False):
        allowed = SLOPES * tolerance * np.abs(right).max() + TINY
        if np.abs(slope - right).max() > allowed:
            return f"slope {slope}, not {right}"
    return ""


# NumPy warns of a mask of -1e9 in float16, which is what some formulas are about.
pytestmark = pytest.mark.filterwarnings(
    "ignore:overflow encountered in cast:RuntimeWarning"
)
# Each in a graph, and by turns in eager mode or under XLA: the rules see one graph.
CASES = [
    (name, "eager" if name in NOT_COMPILED and mode == "xla" else mode)
    for name, mode in in_modes(*FORMULAS)
]


@pytest.mark.parametrize(("name", "mode"), CASES)
def test_it_is_right_where_the_plain_formula_fails_and_never_worse(name, mode):
    formula = FORMULAS[name]
    run = _traced(stabilize(formula.function), mode)
    if name in REPAIRED:
        assert not _miss(run, formula, is_bad=True)
    miss = _miss(run, formula, is_bad=False)
    if miss and name not in REPAIRED:
        assert _miss(_traced(formula.function, mode), formula, is_bad=False)
    else:
        assert not miss


@pytest.mark.slow
@pytest.mark.parametrize("name", NOT_YET)
def test_a_formula_that_became_right_leaves_the_list(name):
    formula = FORMULAS[name]
    runs = [_traced(stabilize(formula.function), mode) for mode in modes.MODES]
    assert any(_miss(run, formula, is_bad=True) for run in runs)


BY_HAND = [name for name, each in FORMULAS.items() if each.by_hand]


@pytest.mark.parametrize("name", BY_HAND)
def test_what_no_rule_repairs_is_found_and_right_by_hand(name):
    formula = FORMULAS[name]
    with pytest.raises(NumericsError) as caught:
        checked(formula.function)(*formula.tensors(formula.bad))
    assert caught.value.findings[0].op_type == formula.finding
    run = _traced(formula.by_hand, "graph")
    for is_bad in (True, False):
        assert not _miss(run, formula, is_bad=is_bad)


def test_names_of_the_collection_are_unique():
    assert len(FORMULAS) == len(every_formula())
