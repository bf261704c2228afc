"""Names the arguments of a checked call, and its non-finite results."""

import collections
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfsafe.debugging.checks.state.variables import Slot
from tfsafe.debugging.tracing import values as _values
from tfsafe.debugging.tracing.batch_rows import Rows
from tfsafe.debugging.tracing.provenance import Origin, PathStep

Labelled = Iterator[tuple[str, Any]]
Labels = Callable[[Callable[..., Any], Sequence[Any], Mapping[str, Any]], Labelled]


class NonFinite(NamedTuple):
    """A result that is not finite.

    Attributes:
      label: Its name in messages.
      value: Its value.
      key: The output, or the variable's handle.
      origins: Origins of its non-finite elements, as far as they are known.
      path: Returns the steps from an origin to here.
      met_next: Returns the first operations that the values of an origin met.
      rank: How well it serves as the end of a path: the loss has the lowest rank.
    """

    label: str
    value: Any
    key: Any = None
    origins: frozenset[Origin] = frozenset()
    path: Callable[[Origin], list[PathStep]] = lambda _: []
    met_next: Callable[[Origin], list[tuple[str, ...]]] = lambda _: []
    rank: int = 2


def argument_labels(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Labelled:
    """Yields the leaves of a call's arguments, each with its path."""
    try:
        bound = inspect.signature(function).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        # A signature that Python cannot read; numbers do for names.
        bound = {**{f"args[{i}]": each for i, each in enumerate(args)}, **kwargs}
    for name, value in bound.items():
        yield from _values.leaves(value, name)


def batch_size(arguments: Sequence[tuple[str, Any]]) -> int | None:
    """Returns the length of the first argument's first axis, if it has one."""
    parts = collections.Counter(path for path, _ in arguments)
    for path, value in arguments:
        # A replica has some rows of the batch, and counts them from 0.
        if _values.ON_REPLICA in path:
            return None
        # The parts of a ragged or sparse tensor are not as long as the batch.
        if parts[path] > 1:
            continue
        if isinstance(value, tf.Tensor | np.ndarray) and len(value.shape) > 0:
            return int(value.shape[0])
    return None


def rows_of(values: Iterable[Any], batch: int | None) -> Rows | None:
    """Returns what follows the rows of a batch, given the arguments of a call."""
    return Rows(batch, values) if batch else None


def nonfinite_outputs(result: Any) -> list[NonFinite]:
    """Returns the leaves of a result that are not finite."""
    return [
        NonFinite(label, value, value, rank=_rank(label, value))
        for label, value in _values.leaves(result, "output")
        if not _values.is_clean(value)
    ]


def _rank(label: str, value: Any) -> int:
    # The loss, one of several, or a number that may well be it.
    if label == "output['loss']":
        return 0
    if "loss" in label:
        return 1
    return 2 if not np.ndim(value) else 3


def nonfinite_variables(slots: Iterable[Slot]) -> list[NonFinite]:
    """Returns the variables that are not finite."""
    read = [
        NonFinite(
            slot.label, slot.read(), slot.handle, rank=4 if slot.is_trainable else 5
        )
        for slot in slots
    ]
    return [each for each in read if not _values.is_clean(each.value)]
