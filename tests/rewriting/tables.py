"""The tables of the rules, one after another as they are tried."""

from tfsafe.rewriting.rules import (
    cancellation,
    distances,
    masking,
    norms,
    singular_gradients,
)

RULES = (
    *norms.RULES,
    *distances.RULES,
    *cancellation.RULES,
    *masking.RULES,
    *singular_gradients.RULES,
)
