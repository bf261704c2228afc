"""Formulas of the collection that `stabilize` does not repair yet, by family.

Each with what is missing. A formula that becomes right leaves the list:
`tests/rewriting/test_collection.py` fails until it does.
"""

from collections.abc import Mapping

OPEN: Mapping[str, Mapping[str, str]] = {
    "exponentials in loops": {
        "linear attention with elu + 1": "elu + 1 is read as no exponential",
    },
    "likelihoods": {
        "KL divergence of nearly equal large Dirichlets": "no rule yet",
    },
    "vision and audio": {
        "scale-invariant SDR": "the squares vanish; the signals are not scaled first",
    },
}
