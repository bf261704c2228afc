"""Decides whether a call with non-finite values failed, and what to report."""

import collections
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tfsafe.debugging.checks.options import Options
from tfsafe.debugging.explain import findings as _findings
from tfsafe.debugging.state.variables import Held, Slot
from tfsafe.debugging.tracing.origins import Origin
from tfsafe.debugging.tracing.results import NonFinite
from tfsafe.errors import Finding
from tfsafe.graph import Drawing


class Failed(NamedTuple):
    """A call with values that are not finite.

    Attributes:
      result: What it returned.
      nonfinite: Which of its results are not finite.
      held: The variables with their values before the call.
      frozen: Those among them that it would have written, and did not.
      flagged: The operations that made them, as far as they have flags, first one
        first.
      graphs: The graphs of these operations.
      drawn: The outputs of operations that a replay cannot draw.
      absorbs: Whether a division turned an overflow into 0, or NaN chose an integer.
    """

    result: Any
    nonfinite: Sequence[NonFinite]
    held: Sequence[Held]
    frozen: Sequence[Slot] = ()
    flagged: Sequence[tuple[tf.Operation, int]] = ()
    graphs: Sequence[tf.Graph] = ()
    drawn: Mapping[Drawing, Any] = {}
    absorbs: bool = False

    @property
    def key(self) -> Any:
        """What a call of the same kind has in common with it."""
        labels = frozenset(each.label for each in self.nonfinite)
        return labels, frozenset((op.name, index) for op, index in self.flagged)


class Known:
    """Calls that were examined and did not fail.

    The 2nd, 4th, 8th, ... such call is examined too: it may have another cause.
    """

    def __init__(self) -> None:
        self._counts: collections.Counter[Any] = collections.Counter()

    def add(self, failed: Failed) -> None:
        """Notes a call that did not fail."""
        self._counts[failed.key] = max(1, self._counts[failed.key])

    def covers(self, failed: Failed) -> bool:
        """Returns whether a call need not be examined."""
        if failed.key not in self._counts:
            return False
        self._counts[failed.key] += 1
        count = self._counts[failed.key]
        return bool(count & (count - 1))


def reportable(
    reported: Sequence[NonFinite], origins: Sequence[Origin], options: Options
) -> list[NonFinite]:
    """Removes what is excluded.

    Args:
      reported: Non-finite results with their origins.
      origins: All origins that were met, in order.
      options: What the check is asked for.

    Returns:
      The results that are non-finite for another reason; under `strict`, also the
      first origin of all but the infinities that the program wrote, as in a mask.
    """
    kept = []
    for each in reported:
        left = frozenset(o for o in each.origins if not is_excluded(o, options))
        if left or not each.origins:
            kept.append(each._replace(origins=left))
    if options.strict:
        met = [each for each in origins if not each.is_intended]
        first = [each for each in met if not is_excluded(each, options)][:1]
        kept += [NonFinite("", None, origins=frozenset(first))] if first else []
    return kept


def is_excluded(origin: Origin, options: Options) -> bool:
    """Returns whether an origin is excluded."""
    if origin.step is None or not options.exclude:
        return False
    place = origin.place
    return options.excludes(
        [origin.step.type, place.forward_op],
        [origin.step.name, place.scope],
        place.site,
    )


def by_flags(failed: Failed, reason: str) -> list[Finding]:
    """Returns what the flags show of a call that cannot be replayed."""
    return [
        _findings.by_flag(op, index, failed.graphs, reason)
        for op, index in failed.flagged[:1]
    ]
