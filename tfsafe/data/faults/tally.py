"""Counts the faults in the columns of one leaf, chunk by chunk."""

import copy
import dataclasses
from collections import defaultdict
from typing import Any

import numpy as np

from tfsafe._limits import LIMITS
from tfsafe._report.records import TensorStats
from tfsafe.data.sources import tables
from tfsafe.data.sources.tables import Spot, Table

NOT_FINITE = ("nan", "posinf", "neginf")
_WORD_NAMES = {
    tables.MISSING: "missing",
    tables.BLANK: "blank",
    tables.TEXT: "text",
    tables.NUMBER: "number",
    tables.NUMERAL: "numeral",
}


# Number of values in a line from which on NumPy reduces quickly.
_LONG = 4096


@dataclasses.dataclass(frozen=True)
class Limits:
    """The limits of the values that the model accepts.

    Attributes:
      dtype: The dtype that it computes in.
      classes: Number of classes of the labels; None if unknown.
    """

    dtype: np.dtype
    classes: int | None = None

    @property
    def exact(self) -> int:
        """The number up to which the dtype holds every integer."""
        return round(2 / LIMITS[self.dtype.name].eps)

    @property
    def largest(self) -> float:
        """The largest finite number of the dtype."""
        return LIMITS[self.dtype.name].max

    def rounded(self, values: np.ndarray) -> np.ndarray:
        """Returns values as the model gets them."""
        with np.errstate(over="ignore", invalid="ignore"):
            return values.astype(self.dtype)


class Tally:
    """Statistics and faults of the columns of one leaf.

    Attributes:
      table: The last table added, for its names.
      counts: By fault, how many values of each column have it.
      first: By fault and column, where it was first.
      rows: How many rows were added.
      empty_rows: How many of them have no value.
      size: How many values each column has.
      finite: How many of them are numbers that are finite to the model.
      low: The smallest of these for each column; infinity if it has none.
      high: The largest.
      total: Their sum, in float64.
    """

    def __init__(self, table: Table, limits: Limits):
        self.table, self._limits = table, limits
        self.rows = self.empty_rows = self.size = 0
        self._start(table.columns)

    def _start(self, columns: int) -> None:
        self.columns = columns
        self.counts: dict[str, np.ndarray] = defaultdict(
            lambda: np.zeros(self.columns, np.int64)
        )
        self.first: dict[tuple[str, int], Spot] = {}
        self.finite = np.zeros(columns, np.int64)
        self.low = np.full(columns, np.inf)
        self.high = np.full(columns, -np.inf)
        self.total = np.zeros(columns)

    def add(self, table: Table, batch: int | None = None, before: int = 0) -> None:
        """Counts a table.

        Args:
          table: A table of the same leaf as the previous ones.
          batch: Number of the batch; None where the data come in one piece.
          before: How many rows came in the batches before.
        """
        table = self._fitted(table)
        self.table = table
        self.rows += table.rows
        self.empty_rows += table.empty_rows
        for start, values in table.chunks():
            self.size += len(values)
            numbers, masks = self.faults(table, values)
            for fault, mask in masks.items():
                self._mark(fault, mask, start, table, batch, before)
            if numbers is not None:
                self._measure(numbers, bool(masks))

    def faults(
        self, table: Table, values: np.ndarray
    ) -> tuple[np.ndarray | None, dict[str, np.ndarray]]:
        """Returns the numbers in a chunk, and a mask of each fault."""
        if table.kind == "time":
            return None, _only(nan=np.isnat(values))
        masks = {}
        if table.kind == "text":
            values, kinds = tables.read(values)
            masks = {name: kinds == kind for kind, name in _WORD_NAMES.items()}
        elif values.dtype.kind not in "biuf" or values.dtype.itemsize < 2:
            # bool, int8 and the floats of `ml_dtypes`, whose kind NumPy does not know.
            values = values.astype(np.float32)
        numbers = values
        masks |= self._of_numbers(numbers, is_text=table.kind == "text")
        if self._limits.classes is not None and table.path == "y":
            masks |= _only(
                label=(numbers < 0)
                | (numbers >= self._limits.classes)
                | (numbers % 1 > 0)
            )
        return numbers, masks

    def means(self) -> np.ndarray:
        """Returns the mean of each column's finite numbers; NaN without any."""
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            return self.total / self.finite

    def stats(self, column: int) -> TensorStats:
        """Returns the statistics of a column."""
        mean, has_numbers = self.means()[column], self.finite[column] > 0
        nans, posinfs, neginfs = (int(self.counts[n][column]) for n in NOT_FINITE)
        return TensorStats(
            self.table.column_path(column),
            self.table.dtype_name,
            (self.size,),
            min=float(self.low[column]) if has_numbers else None,
            max=float(self.high[column]) if has_numbers else None,
            mean=float(mean) if np.isfinite(mean) else None,
            nans=nans,
            posinfs=posinfs,
            neginfs=neginfs,
        )

    def _of_numbers(self, numbers: np.ndarray, is_text: bool) -> dict[str, np.ndarray]:
        low, high = _reduced(np.minimum, numbers), _reduced(np.maximum, numbers)
        if numbers.dtype.kind != "f":
            exact = self._limits.exact
            if int(high.max()) <= exact and int(low.min()) >= -exact:
                return {}
            return _only(inexact=(numbers > exact) | (numbers < -exact))
        ends = self._limits.rounded(np.stack([low, high]))
        # A NaN among the values is the smallest and the largest of them.
        if np.isfinite(ends).all():
            return {}
        # In text, NaN marks a cell that is not a number, which has its own count.
        nan = {} if is_text else {"nan": np.isnan(numbers)}
        rounded = self._limits.rounded(numbers)
        return _only(
            **nan,
            posinf=np.isposinf(numbers),
            neginf=np.isneginf(numbers),
            beyond=np.isfinite(numbers) & ~np.isfinite(rounded),
        )

    def _measure(self, numbers: np.ndarray, has_faults: bool) -> None:
        held, count = numbers, len(numbers)
        if has_faults and numbers.dtype.kind == "f":
            is_good = np.isfinite(self._limits.rounded(numbers)) & np.isfinite(numbers)
            held, count = np.where(is_good, numbers, np.nan), is_good.sum(axis=0)
        self.finite += count
        self.low = np.fmin(self.low, _reduced(np.fmin, held))
        self.high = np.fmax(self.high, _reduced(np.fmax, held))
        if held is not numbers:
            held = np.where(is_good, numbers, 0)
        with np.errstate(over="ignore"):
            self.total += _reduced(np.add, held, dtype=np.float64)

    def _mark(
        self,
        fault: str,
        mask: np.ndarray,
        start: int,
        table: Table,
        batch: int | None,
        before: int,
    ) -> None:
        counts = mask.sum(axis=0)
        self.counts[fault] += counts
        for column in np.flatnonzero(counts):
            key = (fault, int(column))
            if key not in self.first:
                line = int(mask[:, column].argmax())
                self.first[key] = table.spot(start, line, key[1], batch, before)

    def _fitted(self, table: Table) -> Table:
        """Joins the columns of a leaf whose last axis has no fixed size."""
        is_other = table.columns != self.columns
        if is_other and self.columns > 1:
            self._join()
        if is_other or not self.table.has_columns:
            table = dataclasses.replace(table, has_columns=False)
        return table

    def _join(self) -> None:
        old = copy.copy(self)
        self._start(1)
        self.size = old.size * old.columns
        self.finite += old.finite.sum()
        self.low[0], self.high[0] = old.low.min(), old.high.max()
        self.total += old.total.sum()
        for fault, counts in old.counts.items():
            self.counts[fault] += counts.sum()
        spots = sorted(old.first.items(), key=lambda item: item[1][:2], reverse=True)
        for (fault, _), spot in spots:
            self.first[fault, 0] = spot


def _reduced(ufunc: np.ufunc, values: np.ndarray, **options: Any) -> np.ndarray:
    """Reduces lines to one, several at a time: NumPy is slow along short lines."""
    lines, columns = values.shape
    at_once = max(1, _LONG // columns)
    whole = lines // at_once * at_once
    if at_once == 1 or whole < 2 * at_once or not values.flags.c_contiguous:
        return ufunc.reduce(values, axis=0, **options)
    joined = values[:whole].reshape(-1, at_once * columns)
    head = ufunc.reduce(joined, axis=0, **options).reshape(at_once, columns)
    return ufunc.reduce(np.concatenate([head, values[whole:]]), axis=0, **options)


def _only(**masks: np.ndarray) -> dict[str, np.ndarray]:
    return {name: mask for name, mask in masks.items() if mask.any()}


def value_text(value: Any) -> str:
    """Returns a value as a person writes it."""
    if isinstance(value, bytes):
        return repr(value.decode(errors="replace"))
    if isinstance(value, np.inexact):
        return str(value)
    return repr(value.item() if isinstance(value, np.generic) else value)
