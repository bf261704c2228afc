"""Checks the results of a script that takes no step, and reports what was checked."""

import contextlib
import sys
from typing import Any

from tfsafe.debugging.checks.tally import TALLY
from tfsafe.debugging.entry.switch import SWITCH
from tfsafe.debugging.models import loss_scale
from tfsafe.debugging.values import name_in
from tfsafe.errors import Site

_NO_STEP = (
    "no step was checked: no call of a tf.function, training step or gradient. The "
    "results of eager operations are "
)
_INFINITE = (
    "free of NaN. `{}`{} makes an infinity, which may be meant: `--strict` explains it"
)
_GIVEN = (
    "free of NaN. The {}{} holds an infinity, which may be meant: `--strict` explains "
    "it"
)
_WRITTEN = "finite but for NaN that the program writes, `{}`{}: `--strict` explains it"
_BESIDE = (
    ". Outside of them, `{}`{} makes NaN, which reached none: `--strict` explains it"
)


class Results:
    """What a script computes, from now on and in this thread.

    Args:
      open_: Ends the collecting.
    """

    def __init__(self, open_: contextlib.ExitStack):
        TALLY.begin()
        TALLY.notes_infinities = True
        open_.callback(setattr, TALLY, "notes_infinities", False)
        self._is_looked_at = False
        open_.enter_context(
            SWITCH.session().collecting(_name_of, passes_infinities=True)
        )

    def look(self) -> None:
        """Checks what no operation has used, if the script took no step.

        These are the results then, as those of a function are. A script with steps may
        well print a measure of them that is not finite, and one without a measure that
        is infinite.

        Raises:
          NumericsError: If one of the values has NaN; under `strict`, or is infinite.
        """
        self._is_looked_at = SWITCH.active() is not None
        if self._is_looked_at and not (TALLY.steps or TALLY.failed):
            SWITCH.session().check_results()

    def summary(self) -> list[str]:
        """Returns what a run without a finding says at its end."""
        if TALLY.failed:
            return []
        if not (steps := TALLY.steps):
            found = SWITCH.session().first_result(is_nan=False)
            said = _said(_INFINITE, found) or "finite."
            return [_NO_STEP + said] if self._is_looked_at else []
        counted = f"{steps} step{'s' * (steps > 1)} checked, {self._of_steps()}"
        warning = loss_scale.fallen_scale()
        return [counted, warning] if warning else [counted]

    def _of_steps(self) -> str:
        """Says what the results of the steps are, and those outside of them."""
        if TALLY.measured is not None:
            return f"finite but for measures. {TALLY.measured}: `--strict` explains it"
        said = _said(_WRITTEN, TALLY.written) or _said(_INFINITE, TALLY.infinity)
        said = said or _said(_GIVEN, TALLY.given) or "all finite"
        if self._is_looked_at:
            said += _said(_BESIDE, SWITCH.session().first_result(is_nan=True))
        return said


def _said(sentence: str, found: tuple[str, Site | None] | None) -> str:
    """Returns what is said of an operation and its line; empty without one."""
    if found is None:
        return ""
    kind, site = found
    return sentence.format(kind, f" at {site.short_place}" if site else "")


def _name_of(value: Any) -> str:
    return name_in(vars(sys.modules["__main__"]), value)
