"""Puts all rules in order, and selects some by name."""

import difflib
from collections.abc import Iterable, Sequence

from tfsafe.rewriting.engine.rule import Rule
from tfsafe.rewriting.rules.differences import (
    cancellation,
    distances,
    function_differences as differences,
    moments,
    mutual_information,
    near_one,
    raw_moments,
    tangents,
)
from tfsafe.rewriting.rules.geometry import angles, lengths, norms
from tfsafe.rewriting.rules.limits import (
    any_formula,
    flat_limits,
    odd_functions,
    power_means,
    quotients as limits,
    removable,
)
from tfsafe.rewriting.rules.masks import masking, singular_gradients
from tfsafe.rewriting.rules.out_of_range import (
    fractions,
    half_precision,
    harmonic,
    infinite_weights,
    powers,
    products as out_of_range,
    rates,
    standardised_moments,
)
from tfsafe.rewriting.rules.probability import (
    distributions,
    gamma_functions,
    inverse_functions,
    likelihoods,
    logarithms,
    roots,
    ties,
)

# What a formula in float64 is made of.
_PARTS = (*logarithms.RULES, *differences.RULES)
# What keeps its digits, is in range or is 0, inside of a difference of moments.
_OF_MOMENTS = {"difference-of-function", "ratio-of-exponentials", "weighted-log"}
_LOGARITHMS = [rule for rule in _PARTS if rule.name in _OF_MOMENTS]
# Whole formulas first; then the derivatives of single operations that remain.
_BEFORE: Sequence[Rule] = (
    *limits.RULES,
    *likelihoods.RATIOS,
    gamma_functions.rule(_PARTS),
    distributions.rule(_PARTS),
    *tangents.FIRST,
    *odd_functions.RULES,
    *standardised_moments.RULES,
    *out_of_range.FIRST,
    *rates.RULES,
    *logarithms.RULES,
    *roots.RULES,
    *inverse_functions.RULES,
    near_one.log_near_one(removable.RULES),
    # A root of a sum with 1 is also a power of 1 plus a tensor.
    *power_means.RULES,
    *out_of_range.RULES,
    *powers.RULES,
    *distances.RULES,
    # A limit has a slope, and the quotients of `norms` have the slope 0.
    *removable.RULES,
    *infinite_weights.RULES,
    *harmonic.RULES,
    *fractions.RULES,
    *lengths.RULES,
    *norms.RULES,
    *angles.RULES,
    *cancellation.RULES,
    *mutual_information.RULES,
    *tangents.RULES,
    # Where no exact form is known.
    gamma_functions.divergence(_PARTS),
    *near_one.RULES,
    *moments.RULES,
    raw_moments.rule(_LOGARITHMS),
    *differences.RULES,
)
# In half precision these are computed in float32 as a whole, with their operands.
_WHOLE = {"fraction-of-zero", "log-near-one", "log-out-of-range"}
_FORMULAS = [rule for rule in _BEFORE if rule.name not in _WHOLE]
_LOG_OF_ONE_PLUS = near_one.log_of_one_plus(_FORMULAS)
_MASKS = [rule for rule in masking.RULES if rule.name.startswith("mask-")]
_IN_HALF = [*_FORMULAS, *_MASKS, *ties.RULES]
# These keep the digits of differences of tensors, and not those of formulas.
_OF_TENSORS = {"difference-of-squares"}
_OTHERS = [rule for rule in _BEFORE if rule.name not in _OF_TENSORS]
_WIDE = [half_precision.of_wide_operands(rule, _IN_HALF) for rule in _FORMULAS]
_RULES: Sequence[Rule] = (
    *(rule for rule in _WIDE if rule.name not in _OF_TENSORS),
    *any_formula.rules((*_OTHERS, _LOG_OF_ONE_PLUS)),
    *(rule for rule in _WIDE if rule.name in _OF_TENSORS),
    *flat_limits.RULES,
    half_precision.rule(_IN_HALF),
    *(rule for rule in _BEFORE if rule.name in _WHOLE),
    _LOG_OF_ONE_PLUS,
    *fractions.last(removable.RULES),
    *masking.RULES,
    *singular_gradients.RULES,
    *ties.RULES,
)


def all_rules() -> list[Rule]:
    """Returns the rules in the order in which they are tried."""
    return list(_RULES)


def chosen(
    rules: str | Iterable[str] | None = None, exclude: str | Iterable[str] = ()
) -> list[Rule]:
    """Returns the rules to apply.

    Raises:
      TypeError: If one of the arguments is neither a name nor several.
      ValueError: If no rule has such a name.
    """
    known = all_rules()
    names = [rule.name for rule in known]
    wanted = names if rules is None else _checked(rules, names, "rules")
    unwanted = _checked(exclude, names, "exclude")
    return [rule for rule in known if rule.name in wanted and rule.name not in unwanted]


def _checked(
    given: str | Iterable[str], names: Sequence[str], argument: str
) -> list[str]:
    listed = [given] if isinstance(given, str) else given
    listed = list(listed) if isinstance(listed, Iterable) else [listed]
    for name in listed:
        if not isinstance(name, str):
            raise TypeError(
                f"`{argument}` must be the name of a rule, or several names. Received: "
                f"{argument}={given!r}."
            )
        if name not in names:
            near = difflib.get_close_matches(name, names, cutoff=0.4)
            hint = f"Did you mean {' or '.join(map(repr, near))}? " if near else ""
            raise ValueError(
                f"`{argument}` names no rule. Received: {argument}={given!r}; there is "
                f"no rule {name!r}. {hint}`tfsafe.stabilize.rules()` lists all."
            )
    return listed
