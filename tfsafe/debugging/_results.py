"""What goes into a checked call and what comes out of it, by name."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfsafe.debugging import _findings, _values
from tfsafe.debugging._state import Slot
from tfsafe.debugging._trail import Origin, Passage
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
    """

    label: str
    value: Any
    key: Any = None
    origins: frozenset[Origin] = frozenset()
    way: Callable[[Origin], list[Passage]] = lambda _: []


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


def bad_outputs(result: Any) -> list[Bad]:
    """Returns the leaves of a result that are not finite."""
    return [
        Bad(label, value, value)
        for label, value in _values.leaves(result, "output")
        if not _values.is_clean(value)
    ]


def bad_variables(slots: Iterable[Slot]) -> list[Bad]:
    """Returns the variables that are not finite."""
    read = [Bad(slot.label, slot.read(), slot.handle) for slot in slots]
    return [each for each in read if not _values.is_clean(each.value)]


def _ways(bad: Sequence[Bad], origin: Origin) -> list[tuple[str, list[Passage]]]:
    """Returns the results that an origin reaches, each with the way to it."""
    return [(each.label, each.way(origin)) for each in bad if origin in each.origins]


def error(
    bad: Sequence[Bad],
    *,
    batch: int | None,
    restored: int,
    reason: str = "",
    findings: Sequence[Finding] = (),
) -> NumericsError:
    """Builds the error for results that are not finite.

    Args:
      bad: The results.
      batch: Number of rows of the batch, where there is one.
      restored: How many variables were put back.
      reason: Why the place is not known, in case it is not.
      findings: What is known besides, for that case.

    Returns:
      The error, to be raised.
    """
    origins = _findings.ordered({each for result in bad for each in result.origins})
    if origins:
        findings = [
            _findings.describe(each, batch, _ways(bad, each))
            for each in origins[:_AT_MOST]
        ]
    elif not findings:
        first = bad[0]
        findings = [_findings.unexplained(first.label, first.value, batch, reason)]
    return _findings.error(
        findings, [each.label for each in bad if each.label], restored
    )
