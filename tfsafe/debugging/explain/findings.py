"""From a trail of bad values to findings, and to the text of the error."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfsafe._records import Link, TensorStats
from tfsafe._text import listed, wrapped
from tfsafe.debugging.checks.levels import DOMAIN
from tfsafe.debugging.explain import causes, suggestions
from tfsafe.debugging.inspection import pictures
from tfsafe.debugging.tracing import values
from tfsafe.debugging.tracing.provenance import Origin, Passage, Step
from tfsafe.errors import Finding, NumericsError
from tfsafe.graph import locate

_AT_MOST = 5
_SURVEY = 'tfsafe.data.check_finite(data, policy="report")'
# So many steps of a long way are told from each of its ends.
_ENDS = 20
_TEXT = {tf.string}
_FACTS = ("kind", "dtype", "count", "size", "index", "shape", "row")


def ordered(origins: Iterable[Origin]) -> list[Origin]:
    """Returns origins in order, first cause first.

    An infinity that the program wrote down comes after all that it computed.
    """
    return sorted(origins, key=lambda each: (each.is_intended, each.order))


def describe(
    origin: Origin,
    label: str = "",
    way: Sequence[Passage] = (),
    after: Sequence[str] = (),
) -> Finding:
    """Returns the finding that tells of an origin.

    Args:
      origin: Where bad values begin.
      label: The result that it reaches.
      way: How it comes there.
      after: What its bad values met next.
    """
    value = values.numbers(origin.value)
    bad = ~np.isfinite(value) if origin.births is None else origin.births
    index = values.first(bad)
    facts: dict[str, Any] = {
        "kind": values.kind(value[bad]),
        "dtype": values.array(origin.value).dtype.name,
        "count": int(bad.sum()),
        "size": value.size,
        "index": index,
        "shape": tuple(int(size) for size in value.shape),
        "row": origin.row_of(index),
        "output": _stats(origin.holder, origin.value),
        "chain": _chain(origin, label, way),
    }
    if origin.step is None:
        return _from_outside(origin, facts)
    return _from_operation(origin, origin.step, value, bad, facts, after)


def _from_outside(origin: Origin, facts: dict[str, Any]) -> Finding:
    holder = origin.holder or "a constant, or a tensor made before the call"
    is_variable = holder.startswith(("variable", "a variable"))
    return Finding(
        op_type="",
        op_name="",
        origin=holder,
        cause="it was so before the call.",
        suggested_code="" if is_variable else _SURVEY,
        suggestion=(
            "start from a checkpoint whose weights are finite."
            if is_variable
            else "tells of all such rows before the training; "
            'policy="drop" leaves them out.'
        ),
        **facts,
    )


def _from_operation(
    origin: Origin,
    step: Step,
    value: np.ndarray,
    bad: np.ndarray,
    facts: dict[str, Any],
    after: Sequence[str],
) -> Finding:
    place = origin.place
    inputs = [values.numbers(each) for each in step.inputs if values.is_number(each)]
    evidence = causes.Evidence(inputs, value, bad, facts["dtype"])
    cause, fault = causes.cause_of(step.type, evidence)
    if step.type == "Const":
        cause, fault = "the program writes this constant.", "constant"
    failure = suggestions.Failure(
        place.forward_op or step.type,
        fault,
        bool(place.forward_op),
        facts["dtype"],
        origin.producers,
        place.site.source if place.site else "",
        place.scope,
        after,
    )
    code, words = suggestions.fix_of(failure)
    return Finding(
        op_type=step.type,
        op_name=step.name,
        site=place.site,
        is_gradient=place.is_gradient,
        forward_op=place.forward_op,
        scope=place.scope,
        iteration=() if place.is_gradient else step.loops,
        cause=cause,
        suggested_code=code,
        suggestion=words,
        inputs=tuple(
            _stats(name, each)
            for name, each in zip(origin.names, step.inputs, strict=False)
            if values.is_number(each) and each.dtype not in _TEXT
        ),
        **facts,
    )


def _stats(name: str, value: Any) -> TensorStats:
    return pictures.stats_of(name, values.array(value))


def _chain(origin: Origin, label: str, way: Sequence[Passage]) -> tuple[Link, ...]:
    """Returns the way to a result, as plain data."""
    # A loop can make it very long: its beginning and its end say enough.
    short = [*way[:_ENDS], *way[max(_ENDS, len(way) - _ENDS) :]]
    links = [_link(each) for each in short if values.is_float(each.value())]
    # The value is gone, or is a list in which a loop keeps what its gradient needs.
    if not links:
        return ()
    if origin.step is None:
        if way[0].type:
            # A variable was written in between.
            links.insert(0, _link(Passage(None, lambda: origin.value, frozenset())))
        links[0] = dataclasses.replace(links[0], origin=origin.holder)
    end = dataclasses.replace(
        links[-1], op_type="", op_name="", site=None, scope="", origin=label
    )
    return (*links, end)


def _link(passage: Passage) -> Link:
    value = values.numbers(passage.value())
    bad = ~np.isfinite(value)
    place = passage.place()
    return Link(
        passage.type,
        passage.name,
        values.kind(value[bad]),
        int(bad.sum()),
        value.size,
        shape=tuple(int(size) for size in value.shape),
        dtype=values.array(passage.value()).dtype.name,
        site=place.site,
        scope=place.scope,
        is_gradient=place.is_gradient,
    )


def by_flag(
    op: tf.Operation, index: int, graphs: Sequence[tf.Graph], reason: str
) -> Finding:
    """Returns the finding for an operation whose flag is up.

    Args:
      op: The operation.
      index: Of its output.
      graphs: The graphs in which its forward operation may stand.
      reason: Why no more is known.
    """
    place = locate(op, graphs)
    fault = "domain" if op.type in DOMAIN else "unknown"
    failure = suggestions.Failure(
        place.forward_op or op.type,
        fault,
        bool(place.forward_op),
        op.outputs[index].dtype.name,
        [tensor.op.type for tensor in op.inputs],
        place.site.source if place.site else "",
        place.scope,
    )
    code, words = suggestions.fix_of(failure)
    return Finding(
        kind="NaN or Inf",
        op_type=op.type,
        op_name=op.name,
        dtype=op.outputs[index].dtype.name,
        count=0,
        size=0,
        index=(),
        site=place.site,
        is_gradient=place.is_gradient,
        forward_op=place.forward_op,
        scope=place.scope,
        cause=f"its values are not known: {reason}",
        suggested_code=code,
        suggestion=words,
    )


def unexplained(label: str, value: Any, reason: str) -> Finding:
    """Returns the finding for a bad result whose first cause was not found."""
    facts: dict[str, Any] = {"op_type": "", "op_name": "", "origin": label}
    facts["cause"] = f"the operation that made it could not be found: {reason}"
    finding = describe(Origin(0, value, holder=label))
    facts |= {name: getattr(finding, name) for name in (*_FACTS, "output")}
    return Finding(**facts)


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
