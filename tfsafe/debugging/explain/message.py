"""Builds the error of a call with non-finite results: findings, reach, state."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from tfsafe._faults import contained
from tfsafe._report.text import listed, wrapped
from tfsafe.debugging.explain import by_hand, findings as _findings, sample
from tfsafe.debugging.explain.training import (
    bookkeeping,
    context,
    optimizer as training,
)
from tfsafe.debugging.explain.training.layers import Layers, walked_once
from tfsafe.debugging.state.variables import Held
from tfsafe.debugging.tracing.origins import Origin
from tfsafe.debugging.tracing.results import NonFinite, joined
from tfsafe.errors import Finding, NumericsError
from tfsafe.graph import stacks_kept

# A loop can be the origin of many findings: its first iterations say enough.
_FINDINGS = 10
_REACHED = 5


@walked_once()
def numerics_error(
    results: Sequence[NonFinite],
    *,
    held: Sequence[Held] = (),
    reason: str = "",
    findings: Sequence[Finding] = (),
    inputs: Iterable[tuple[str, Any]] = (),
    handles: Collection[Any] | None = None,
    is_xla: bool = False,
    later: int = 0,
    steps: int = 0,
) -> NumericsError:
    """Builds the error for results that are not finite.

    Args:
      results: The results.
      held: The variables that were restored, with their values.
      reason: Why the place is not known, in case it is not.
      findings: What is known of the place in that case.
      inputs: The arguments of the call, by name.
      handles: Handles of the variables that the step uses; None if not known.
      is_xla: Whether XLA compiles the step.
      later: How many calls there were since, which wrote nothing.
      steps: How many steps there were, with this one; 0 if that is not known.

    Returns:
      The error, to be raised.
    """
    origins = _findings.ordered({
        each for each_result in results for each in each_result.origins
    })
    # A NaN may have gone through the -inf of a mask, which the program means.
    origins = [each for each in origins if not each.is_intended] or origins
    if origins:
        layers = Layers()
        with stacks_kept():
            findings = [
                _described(results, each, layers) for each in origins[:_FINDINGS]
            ]
    elif not findings:
        first = results[0]
        findings = [_findings.unexplained(first.label, first.value, reason)]
    lines = [str(findings[0])]
    reached = _reached(results, held)
    if reached:
        lines += wrapped("  reach: ", _reach(reached, held))
    if others := len(findings) - 1:
        places = "place" if others == 1 else "places"
        lines.append(f"  more:  {others} further {places}, see `error.findings`")
    if held:
        many = "variable was" if len(held) == 1 else "variables were"
        words = f"{len(held)} {many} restored as before the call."
        if later:
            calls = "call" if later == 1 else f"{later} calls"
            words += f" The {calls} since changed none."
        lines += wrapped("  state: ", words)
    error = NumericsError("\n".join(lines), findings, reached=reached)
    error.inputs = joined(inputs)
    training.note_time(error, handles)
    # No update was made before the first step.
    if steps != 1:
        with contained("finding the learning rate of an update by hand"):
            by_hand.note(error)
    with contained("describing the run of a failure"):
        context.note(error, handles, is_xla=is_xla)
        sample.note(error)
    return error


def _reached(results: Sequence[NonFinite], held: Sequence[Held]) -> list[str]:
    """Returns the labels of the results, without those that only repeat others."""
    # Once, though each replica has a copy.
    labels = list(dict.fromkeys(each.label for each in results if each.label))
    repeats = bookkeeping.labels(slot for slot, _ in held)
    return [each for each in labels if each not in repeats] or labels


def _reach(reached: Sequence[str], held: Sequence[Held]) -> str:
    """Names the results, or counts the weights where there are many."""
    labels = [_shown(each) for each in reached]
    all_weights = {slot.name for slot, _ in held if slot.is_trainable}
    names = {each.removeprefix("variable ").strip("`") for each in labels}
    weights = names & all_weights
    if len(labels) <= _REACHED:
        return listed(labels, _REACHED)
    if len(weights) < 2:
        return f"{listed(_by_name(labels), _REACHED)}; see `error.reached`"
    outputs = [each for each in labels if not each.startswith(("variable", "a var"))]
    layers, all_layers = (
        {each.rpartition("/")[0] for each in those} for those in (weights, all_weights)
    )
    which = f"{len(layers)} of {len(all_layers)}"
    if layers == all_layers:
        which = f"all {len(layers)}"
    count = f"{len(weights)} of {len(all_weights)} weights in {which} layers"
    return f"{listed([*outputs[: _REACHED - 1], count], _REACHED)}; see `error.reached`"


def _by_name(labels: Sequence[str]) -> list[str]:
    """Counts the layers whose variables have one name: `moving_variance` of many."""
    found: dict[str, list[str]] = {}
    for each in labels:
        is_variable = each.startswith("variable `")
        name = each.rpartition("/")[2].strip("`") if is_variable else each
        found.setdefault(name, []).append(each)
    return [
        those[0] if len(those) == 1 else f"`{name}` of {len(those)} layers"
        for name, those in found.items()
    ]


def _shown(label: str) -> str:
    return "the loss" if label == "output['loss']" else label


def _described(results: Sequence[NonFinite], origin: Origin, layers: Layers) -> Finding:
    """Returns the finding for an origin, with the path to the best of its results."""
    reached = [each for each in results if origin in each.origins]
    paths = [(each.rank, each.label, each.path(origin)) for each in reached]
    known = [each for each in paths if each[2]]
    _, label, path = min(
        known, key=lambda each: (each[0], len(each[2])), default=paths[0]
    )
    met_next = reached[0].met_next(origin)
    return _findings.describe(origin, label, path, met_next, layers)
