"""What goes into a checked call and what comes out of it, by name."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfsafe.debugging.checks.variables import Slot
from tfsafe.debugging.explain import findings as _findings
from tfsafe.debugging.tracing import values as _values
from tfsafe.debugging.tracing.batch_rows import Rows
from tfsafe.debugging.tracing.provenance import Origin, Passage
from tfsafe.errors import Finding, NumericsError

Labelled = Iterator[tuple[str, Any]]
Labels = Callable[[Callable[..., Any], Sequence[Any], Mapping[str, Any]], Labelled]


# A loop can be the origin of many: its first iterations say enough.
_AT_MOST = 10


class Bad(NamedTuple):
    """A result that is not finite.

    Attributes:
      label: What it is.
      value: Its value.
      key: The output, or the variable's handle.
      origins: Where its bad elements come from, as far as is known.
      way: Finds how the bad elements of an origin came here.
      after: Finds what the bad elements of an origin met next.
      rank: How well it serves as the end of a way, the loss best: the lower the better.
    """

    label: str
    value: Any
    key: Any = None
    origins: frozenset[Origin] = frozenset()
    way: Callable[[Origin], list[Passage]] = lambda _: []
    after: Callable[[Origin], list[str]] = lambda _: []
    rank: int = 1


def argument_labels(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Labelled:
    """Yields the leaves of a call's arguments, each with its path.

    Args:
      function: What is called.
      args: Its positional arguments.
      kwargs: Its named arguments.

    Yields:
      Path and leaf.
    """
    try:
        bound = inspect.signature(function).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        # A signature that Python cannot read; numbers do for names.
        bound = {**{f"args[{i}]": each for i, each in enumerate(args)}, **kwargs}
    for name, value in bound.items():
        yield from _values.leaves(value, name)


def batch_size(arguments: Sequence[tuple[str, Any]]) -> int | None:
    """Returns the length of the first argument's first axis, if it has one."""
    for path, value in arguments:
        # A replica has some rows of the batch, and counts them from 0.
        if _values.ON_REPLICA in path:
            return None
        if isinstance(value, tf.Tensor | np.ndarray) and len(value.shape) > 0:
            return int(value.shape[0])
    return None


def rows_of(values: Iterable[Any], batch: int | None) -> Rows | None:
    """Returns what follows the rows of a batch, given the arguments of a call."""
    return Rows(batch, values) if batch else None


def bad_outputs(result: Any) -> list[Bad]:
    """Returns the leaves of a result that are not finite."""
    return [
        Bad(label, value, value, rank=_rank(label, value))
        for label, value in _values.leaves(result, "output")
        if not _values.is_clean(value)
    ]


def _rank(label: str, value: Any) -> int:
    # The loss, or a number that may well be it.
    if "loss" in label:
        return 0
    return 1 if not np.ndim(value) else 2


def bad_variables(slots: Iterable[Slot]) -> list[Bad]:
    """Returns the variables that are not finite."""
    read = [
        Bad(slot.label, slot.read(), slot.handle, rank=3 if slot.is_trainable else 4)
        for slot in slots
    ]
    return [each for each in read if not _values.is_clean(each.value)]


def _described(bad: Sequence[Bad], origin: Origin) -> Finding:
    """Returns the finding for an origin, with the way to the best of its results."""
    reached = [each for each in bad if origin in each.origins]
    ways = [(each.rank, each.label, each.way(origin)) for each in reached]
    known = [each for each in ways if each[2]]
    _, label, way = min(
        known, key=lambda each: (each[0], len(each[2])), default=(0, "", [])
    )
    return _findings.describe(origin, label, way, reached[0].after(origin))


def error(
    bad: Sequence[Bad],
    *,
    restored: int,
    reason: str = "",
    findings: Sequence[Finding] = (),
) -> NumericsError:
    """Builds the error for results that are not finite.

    Args:
      bad: The results.
      restored: How many variables were put back.
      reason: Why the place is not known, in case it is not.
      findings: What is known besides, for that case.

    Returns:
      The error, to be raised.
    """
    origins = _findings.ordered({each for result in bad for each in result.origins})
    if origins:
        findings = [_described(bad, each) for each in origins[:_AT_MOST]]
    elif not findings:
        first = bad[0]
        findings = [_findings.unexplained(first.label, first.value, reason)]
    return _findings.error(
        findings, [each.label for each in bad if each.label], restored
    )
