"""From a trail of bad values to findings, and to the text of the error."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tfsafe.debugging import _cures, _rules, _values
from tfsafe.debugging._trail import Origin, Step
from tfsafe.errors import Finding, NumericsError, listed, wrapped

_AT_MOST = 5


def ordered(origins: Iterable[Origin]) -> list[Origin]:
    """Returns origins in order, first cause first.

    An infinity that the program wrote down comes after all that it computed.
    """
    return sorted(origins, key=lambda each: (each.is_intended, each.order))


def describe(origin: Origin, batch: int | None) -> Finding:
    """Returns the finding that tells of an origin.

    Args:
      origin: Where bad values begin.
      batch: Number of rows of the batch, where there is one.
    """
    value = _values.numbers(origin.value)
    bad = ~np.isfinite(value) if origin.births is None else origin.births
    index = _values.first(bad)
    is_row = batch is not None and bool(index) and value.shape[0] == batch
    facts: dict[str, Any] = {
        "kind": _values.kind(value[bad]),
        "dtype": np.asarray(origin.value).dtype.name,
        "count": int(bad.sum()),
        "size": value.size,
        "index": index,
        "shape": tuple(int(size) for size in value.shape),
        "row": index[0] if is_row else None,
    }
    if origin.step is None:
        return _from_outside(origin, facts)
    return _from_operation(origin, origin.step, value, bad, facts)


def _from_outside(origin: Origin, facts: dict[str, Any]) -> Finding:
    subject = origin.subject or "a constant, or a tensor made before the call"
    is_variable = subject.startswith("variable")
    return Finding(
        op_type="",
        op_name="",
        subject=subject,
        cause="it was so before the call.",
        cure=(
            "start from a checkpoint whose weights are finite."
            if is_variable
            else "clean the data before it reaches the model."
        ),
        **facts,
    )


def _from_operation(
    origin: Origin,
    step: Step,
    value: np.ndarray,
    bad: np.ndarray,
    facts: dict[str, Any],
) -> Finding:
    place = origin.place
    inputs = [_values.numbers(each) for each in step.inputs if _values.is_number(each)]
    evidence = _rules.Evidence(inputs, value, bad, facts["dtype"])
    cause, fault = _rules.cause_of(step.type, evidence)
    if step.type == "Const":
        cause, fault = "the program writes this constant.", "constant"
    failure = _cures.Failure(
        place.forward_op or step.type,
        fault,
        place.is_gradient,
        facts["dtype"],
        origin.producers,
        place.site.source if place.site else "",
    )
    paste, cure = _cures.cure_of(failure)
    return Finding(
        op_type=step.type,
        op_name=step.name,
        site=place.site,
        is_gradient=place.is_gradient,
        forward_op=place.forward_op,
        scope=place.scope,
        iteration=() if place.is_gradient else step.loops,
        cause=cause,
        paste=paste,
        cure=cure,
        **facts,
    )


def unexplained(label: str, value: Any, batch: int | None, reason: str) -> Finding:
    """Returns the finding for a bad result whose first cause was not found."""
    finding = describe(Origin(0, value, subject=label), batch)
    facts = {
        name: getattr(finding, name)
        for name in ("kind", "dtype", "count", "size", "index", "shape", "row")
    }
    return Finding(
        op_type="",
        op_name="",
        subject=label,
        cause=f"the operation that made it could not be found: {reason}",
        **facts,
    )


def error(
    findings: Sequence[Finding], reached: Sequence[str], restored: int
) -> NumericsError:
    """Builds the error.

    Args:
      findings: First cause first.
      reached: The results that are bad.
      restored: How many variables were put back.

    Returns:
      The error, to be raised.
    """
    lines = [str(findings[0])]
    if reached:
        lines += wrapped("  reach: ", listed(reached, _AT_MOST))
    if len(findings) > 1:
        others = len(findings) - 1
        lines.append(
            f"  more:  {others} further {'place' if others == 1 else 'places'}, "
            "see `error.findings`"
        )
    if restored:
        many = "variable was" if restored == 1 else "variables were"
        lines.append(f"  state: {restored} {many} put back as before the call.")
    return NumericsError("\n".join(lines), findings)
