"""A script that knows nothing of checks: it runs failing programs, one after another.

Prints a JSON object with the errors that reach it, by program and failure.
"""

import contextlib
import dataclasses
import json
import sys
from collections.abc import Callable
from typing import Any

from tests.everywhere import faults, models, places, runs


def main() -> None:
    programs = {"fit": fit, **{name: function(name) for name in ("graph", "eager")}}
    found = {
        f"{name}/{fault.name}": error_of(program, fault)
        for name, program in programs.items()
        for fault in (*faults.FAULTS.values(), faults.HEALTHY)
    }
    json.dump(found, sys.stdout)


def fit(fault: faults.Fault) -> None:
    place = models.PLACES["fit"]
    models.run(models.model_of(place, fault), place, fault)


def function(run: str) -> Callable[[faults.Fault], None]:
    def call(fault: faults.Fault) -> None:
        program = places.Program(places.plain, fault)
        runs.RUNS[run](lambda step: step, program)(faults.batch(fault))

    return call


def error_of(program: Callable[[faults.Fault], None], fault: faults.Fault) -> Any:
    try:
        with contextlib.redirect_stdout(sys.stderr):
            program(fault)
    except ArithmeticError as error:
        return dataclasses.asdict(error.findings[0])
    return None


if __name__ == "__main__":
    main()
