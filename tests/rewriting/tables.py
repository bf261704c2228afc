"""The tables of the rules, one after another as they are tried."""

from tfsafe.rewriting import (
    _cancellation,
    _distances,
    _forms,
    _masking,
    _singular,
)

RULES = (
    *_forms.RULES,
    *_distances.RULES,
    *_cancellation.RULES,
    *_masking.RULES,
    *_singular.RULES,
)
