"""Formulas from public projects, papers and tutorials, in our own words, by family.

Each `Formula` has a float32 (or half-precision) TensorFlow function, an exact
reference, inputs on which the plain function fails, and ordinary inputs on which it
does not. `tests/rewriting/test_collection.py` runs them plain and stabilised;
`python -m tests.collection` prints how many are right.
"""

import importlib
import pkgutil

from tests.collection.formula import Formula


def every_formula() -> list[Formula]:
    """Returns the formulas of all families."""
    return [each for formulas in every_family().values() for each in formulas]


def every_family() -> dict[str, list[Formula]]:
    """Returns the formulas of each module that has some."""
    modules = {
        module.name: importlib.import_module(f"tests.collection.{module.name}")
        for module in pkgutil.iter_modules(__path__)
    }
    found = {name: getattr(each, "FORMULAS", []) for name, each in modules.items()}
    return {name: formulas for name, formulas in found.items() if formulas}
