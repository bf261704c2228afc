"""Finds the columns that make the statistics of a `Normalization` layer non-finite."""

import dataclasses
import time
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfsafe._faults import contained
from tfsafe._report import caller
from tfsafe._report.text import listed
from tfsafe.debugging import values
from tfsafe.errors import Finding, NumericsError
from tfsafe.graph import is_user_file

# Seconds that the search may take.
_LIMIT = 5.0
# Numbers of columns and rows that are named.
_MOST = 5
_KINDS = 1000
_NAME = "tfsafe.data.check_finite"
_CAUSE = (
    "{rows}. The mean and variance that `adapt` takes are non-finite if one value is: "
    "the layer would then return NaN for the whole {noun}."
)
_FIX = (
    "names all such rows. `layers.Normalization` of `from tfsafe import layers` "
    "ignores these values in the statistics, with a warning."
)


def note(error: NumericsError, layer: keras.layers.Normalization, data: Any) -> None:
    """Adds columns and rows to the error of `keras.layers.Normalization.adapt`.

    Args:
      error: The error.
      layer: The layer.
      data: The argument of `adapt`.
    """
    with contained("the search in the data of `adapt`"):
        found = _Found()
        end = time.monotonic() + _LIMIT
        for batch in _batches(data):
            found.add(np.asarray(batch))
            if time.monotonic() > end:
                break
        if error.findings and found.places:
            error.add_source(found.finding(error.findings[0], layer.axis), "")


class _Found:
    """The non-finite values of some batches, with their rows in all of them."""

    def __init__(self) -> None:
        self.places: list[tuple[int, ...]] = []
        self._kinds: list[float] = []
        self._rows = 0
        self._shape: tuple[int, ...] = ()
        self._dtype = ""

    def add(self, batch: np.ndarray) -> None:
        """Notes the values of one batch."""
        if batch.dtype.kind == "f":
            nonfinite = ~np.isfinite(batch)
            self._kinds.extend(map(float, batch[nonfinite][:_KINDS]))
            self.places += [
                (self._rows + int(row), *map(int, rest))
                for row, *rest in np.argwhere(nonfinite)
            ]
        self._rows += len(batch)
        self._shape, self._dtype = batch.shape[1:], batch.dtype.name

    def finding(self, finding: Finding, axes: Sequence[int]) -> Finding:
        """Returns a finding that names the columns, given that of the statistics."""
        shape = (self._rows, *self._shape)
        kept = [axis % len(shape) for axis in axes]
        features = sorted({tuple(place[i] for i in kept) for place in self.places})
        noun = "column" if kept == [1] and len(shape) == 2 else "feature"
        names = listed((", ".join(map(str, each)) for each in features), _MOST)
        rows = sorted({place[0] for place in self.places})
        many_rows, many = "s" * (len(rows) > 1), "s" * (len(features) > 1)
        where = f"{noun}{many} {names} of" if kept else ""
        call = caller.user_call(is_user_file)
        argument = ", ".join(call.arguments) if call else ""
        code = f'tfsafe.data.check_finite({argument}, policy="report")'
        return dataclasses.replace(
            finding,
            kind=values.kind(np.array(self._kinds)),
            origin=f"{where} the data of `adapt`".strip(),
            dtype=self._dtype,
            count=len(self.places),
            size=int(np.prod(shape)),
            index=self.places[0],
            shape=shape,
            row=None,
            output=None,
            cause=_CAUSE.format(
                rows=f"row{many_rows} {listed(map(str, rows), _MOST)}", noun=noun
            ),
            suggested_code=code if caller.shown(argument) else "",
            suggestion=_FIX if caller.shown(argument) else f"{_NAME} {_FIX}",
        )


def _batches(data: Any) -> Iterator[Any]:
    """Yields the batches that `adapt` saw."""
    if isinstance(data, tf.data.Dataset):
        for batch in data:
            yield batch[0] if isinstance(batch, tuple) else batch
    elif isinstance(data, np.ndarray | tf.Tensor):
        yield data
