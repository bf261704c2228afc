"""Prints how many formulas of each family are right, plain and stabilised.

`python -m tests.collection` runs eager, graph and XLA; `python -m tests.collection
eager graph` runs the named modes.
"""

import sys
from collections.abc import Sequence

from tests.collection import every_family
from tests.collection.formula import Formula
from tests.collection.trial import NOT_COMPILED, miss, traced
from tests.support import modes
from tfsafe import stabilize


def _right(formula: Formula, mode: str) -> tuple[bool, bool]:
    """Returns whether the plain and the stabilised form are right on all inputs."""
    forms = formula.function, stabilize(formula.function)
    runs = [traced(form, mode) for form in forms]
    plain, stable = (
        not any(miss(run, formula, is_bad=is_bad) for is_bad in (True, False))
        for run in runs
    )
    return plain, stable


def main(chosen: Sequence[str]) -> None:
    """Prints the table, a row for each family as soon as it has run."""
    _write("family", "formulas", *chosen)
    _write(*["---"] * (2 + len(chosen)))
    for family, formulas in every_family().items():
        cells = []
        for mode in chosen:
            run = [
                _right(each, mode)
                for each in formulas
                if mode != "xla" or each.name not in NOT_COMPILED
            ]
            plain, stable = (sum(form) for form in zip(*run, strict=True))
            cells.append(f"{plain} / {stable} of {len(run)}")
        _write(family.replace("_", " "), len(formulas), *cells)


def _write(*cells: object) -> None:
    sys.stdout.write(f"| {' | '.join(map(str, cells))} |\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:] or modes.MODES)
