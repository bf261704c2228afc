"""Builds the error of a call with non-finite results: findings, reach, state."""

from collections.abc import Sequence

from tfsafe._text import listed, wrapped
from tfsafe.debugging.explain import findings as _findings
from tfsafe.debugging.explain.layers import Layers
from tfsafe.debugging.explain.results import Bad
from tfsafe.debugging.tracing.provenance import Origin
from tfsafe.errors import Finding, NumericsError

# A loop can be the origin of many findings: its first iterations say enough.
_FINDINGS = 10
_REACHED = 5


def numerics_error(
    bad: Sequence[Bad],
    *,
    restored: int,
    reason: str = "",
    findings: Sequence[Finding] = (),
) -> NumericsError:
    """Builds the error for results that are not finite.

    Args:
      bad: The results.
      restored: How many variables were restored.
      reason: Why the place is not known, in case it is not.
      findings: What is known of the place in that case.

    Returns:
      The error, to be raised.
    """
    origins = _findings.ordered({each for result in bad for each in result.origins})
    if origins:
        layers = Layers()
        findings = [_described(bad, each, layers) for each in origins[:_FINDINGS]]
    elif not findings:
        first = bad[0]
        findings = [_findings.unexplained(first.label, first.value, reason)]
    lines = [str(findings[0])]
    reached = [each.label for each in bad if each.label]
    if reached:
        lines += wrapped("  reach: ", _reach(bad, restored))
    if others := len(findings) - 1:
        places = "place" if others == 1 else "places"
        lines.append(f"  more:  {others} further {places}, see `error.findings`")
    if restored:
        many = "variable was" if restored == 1 else "variables were"
        lines.append(f"  state: {restored} {many} restored as before the call.")
    return NumericsError("\n".join(lines), findings, reached=reached)


def _reach(bad: Sequence[Bad], held: int) -> str:
    """Names the results, or counts the variables where there are many."""
    labels = [each.label for each in bad if each.label]
    variables = [
        each.removeprefix("variable ") for each in labels if _is_variable(each)
    ]
    if len(labels) <= _REACHED or len(variables) < _REACHED:
        return listed(labels, _REACHED)
    others = [each for each in labels if not _is_variable(each)]
    owners = {each.strip("`").rpartition("/")[0] for each in variables} - {""}
    inside = f" of {len(owners)} layers" if len(owners) > 1 else ""
    count = f"{len(variables)} of {held} variables{inside}"
    return f"{listed([*others[: _REACHED - 1], count])}, see `error.reached`"


def _is_variable(label: str) -> bool:
    return label.startswith(("variable `", "a variable"))


def _described(bad: Sequence[Bad], origin: Origin, layers: Layers) -> Finding:
    """Returns the finding for an origin, with the path to the best of its results."""
    reached = [each for each in bad if origin in each.origins]
    paths = [(each.rank, each.label, each.path(origin)) for each in reached]
    known = [each for each in paths if each[2]]
    _, label, path = min(
        known, key=lambda each: (each[0], len(each[2])), default=(0, "", [])
    )
    met_next = reached[0].met_next(origin)
    return _findings.describe(origin, label, path, met_next, layers)
