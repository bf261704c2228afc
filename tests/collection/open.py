"""Formulas of the collection that `stabilize` does not repair yet, by family.

Each with what is missing. A formula that becomes right leaves the list:
`tests/rewriting/test_collection.py` fails until it does.
"""

from collections.abc import Mapping

OPEN: Mapping[str, Mapping[str, str]] = {
    "open_likelihoods": {
        "log-logistic hazard after a long time": "a sum with a power overflows "
        "inside of a product whose logarithm is known",
    },
}
