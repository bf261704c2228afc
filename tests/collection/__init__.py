"""Formulas from public projects, papers and tutorials, in our own words, by family.

Each `Formula` has a float32 (or half-precision) TensorFlow function, an exact
reference, inputs on which the plain function fails, and ordinary inputs on which it
does not. `tests/rewriting/test_collection.py` runs them plain and stabilised.
"""

import importlib
import pkgutil

from tests.collection.formula import Formula


def every_formula() -> list[Formula]:
    """Returns the formulas of all families."""
    modules = [
        importlib.import_module(f"tests.collection.{module.name}")
        for module in pkgutil.iter_modules(__path__)
    ]
    return [each for module in modules for each in getattr(module, "FORMULAS", [])]
