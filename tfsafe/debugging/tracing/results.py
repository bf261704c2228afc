"""Names the arguments of a checked call, and its non-finite results."""

import collections
import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfsafe.debugging import values as _values
from tfsafe.debugging.state.variables import Slot
from tfsafe.debugging.tracing.batch_rows import Batch, Rows
from tfsafe.debugging.tracing.origins import Origin, PathStep

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

    @property
    def is_loss(self) -> bool:
        """Whether it is a loss by its name."""
        return self.rank < 2


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


def batches(arguments: Sequence[tuple[str, Any]]) -> dict[str, Batch]:
    """Returns the rows that each replica works on, by its number.

    Their count is the length of the first argument's first axis. Without replicas,
    the one key is empty.
    """
    parts = collections.Counter(path for path, _ in arguments)
    known = dict(arguments)
    sizes: dict[str, int] = {}
    for path, value in arguments:
        # The parts of a sparse tensor are not as long as the batch.
        is_whole = parts[path] == 1 and isinstance(value, tf.Tensor | np.ndarray)
        if is_whole and len(value.shape) > 0 and not path.endswith(_values.SPLITS):
            splits = _values.row_splits(known, path)
            length = int(value.shape[0]) if splits is None else len(splits) - 1
            sizes.setdefault(_values.replica_in(path), length)
    if len(sizes) > 1:
        # All replicas see what none has a part of.
        sizes.pop("", None)
    firsts = itertools.accumulate(sizes.values(), initial=0)
    named = zip(sizes.items(), firsts, strict=False)
    return {name: Batch(size, first) for (name, size), first in named if size}


def rows_of(
    arguments: Sequence[tuple[str, Any]], values: Iterable[tuple[str, Any]]
) -> Rows | None:
    """Returns what follows the rows of a batch.

    Args:
      arguments: The arguments of the call, by name.
      values: What to start from: these, or the tensors that stand for them.
    """
    found, known = batches(arguments), dict(arguments)
    splits = {path: _values.row_splits(known, path) for path in known}
    ragged = {path: each for path, each in splits.items() if each is not None}
    return Rows(found, values, ragged) if found else None


def joined(arguments: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Returns the arguments by name, with the rows of all replicas as one array.

    They are NumPy arrays, to be pickled and to free the memory of the device.
    """
    found = {
        path: _values.array(each) if _values.is_number(each) else each
        for path, each in arguments
    }
    of_replicas = collections.defaultdict(list)
    for path in found:
        if _values.replica_in(path):
            of_replicas[_values.without_replica(path)].append(path)
    for name, paths in of_replicas.items():
        parts = [found[path] for path in paths]
        if len({np.shape(each)[1:] for each in parts}) == 1 and all(
            map(np.ndim, parts)
        ):
            found[name] = np.concatenate(parts)
            for path in paths:
                del found[path]
    return found


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
