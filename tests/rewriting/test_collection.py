"""Formulas of the collection: right when stabilised, and never worse than plain."""

import pytest

from tests.collection import every_formula
from tests.collection.open import OPEN
from tests.collection.trial import NOT_COMPILED, miss, traced
from tests.rewriting.emitting import in_modes
from tests.support import modes
from tfsafe import NumericsError, checked, stabilize

FORMULAS = {formula.name: formula for formula in every_formula()}
NOT_YET = {name: why for family in OPEN.values() for name, why in family.items()}
REPAIRED = [
    name for name, each in FORMULAS.items() if name not in NOT_YET and not each.reason
]

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
    run = traced(stabilize(formula.function), mode)
    if name in REPAIRED:
        assert not miss(run, formula, is_bad=True)
    wrong = miss(run, formula, is_bad=False)
    if wrong and name not in REPAIRED:
        assert miss(traced(formula.function, mode), formula, is_bad=False)
    else:
        assert not wrong


@pytest.mark.slow
@pytest.mark.parametrize("name", NOT_YET)
def test_a_formula_that_became_right_leaves_the_list(name):
    formula = FORMULAS[name]
    runs = [traced(stabilize(formula.function), mode) for mode in modes.MODES]
    assert any(miss(run, formula, is_bad=True) for run in runs)


BY_HAND = [name for name, each in FORMULAS.items() if each.by_hand]


@pytest.mark.parametrize("name", BY_HAND)
def test_what_no_rule_repairs_is_found_and_right_by_hand(name):
    formula = FORMULAS[name]
    with pytest.raises(NumericsError) as caught:
        checked(formula.function)(*formula.tensors(formula.bad))
    assert caught.value.findings[0].op_type == formula.finding
    run = traced(formula.by_hand, "graph")
    for is_bad in (True, False):
        assert not miss(run, formula, is_bad=is_bad)


def test_names_of_the_collection_are_unique():
    assert len(FORMULAS) == len(every_formula())
