"""Reads the values of one leaf as lines and columns, and classifies cells of text."""

import dataclasses
import numbers
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

# Values read at once: enough to hide Python's overhead, few enough for the cache.
_CHUNK = 1 << 18


class Spot(NamedTuple):
    """A value and its position.

    Attributes:
      row: Its row, counted from the first row of all.
      place: Its index in the array or in the batch.
      value: The value.
      shape: Shape of the array or the batch.
      batch: Number of the batch; None where the data come in one piece.
      row_in_batch: Its row in that batch.
    """

    row: int
    place: tuple[int, ...]
    value: Any
    shape: tuple[int, ...]
    batch: int | None = None
    row_in_batch: int | None = None


@dataclasses.dataclass(frozen=True)
class Table:
    """The values of one leaf.

    Attributes:
      path: Name of the leaf, such as `x["age"]`.
      array: Array of rank 1 or more. The last axis runs over the columns, if there is
        more than one and `has_columns`.
      rows: How many rows the leaf has.
      owners: The row of each position of the first axis; None where that axis runs over
        the rows.
      index_of: Index of a position of the first axis; None where it is that position.
      has_columns: Whether the last axis runs over features and has a fixed size.
      is_single: Whether the leaf is one element, to which a first axis was added.
      empty_rows: How many rows have no value.
    """

    path: str
    array: np.ndarray
    rows: int
    owners: np.ndarray | None = None
    index_of: Callable[[int], tuple[int, ...]] | None = None
    has_columns: bool = True
    is_single: bool = False
    empty_rows: int = 0

    @property
    def columns(self) -> int:
        """How many columns there are."""
        is_wide = self.has_columns and self.array.ndim > 1
        return self.array.shape[-1] if is_wide else 1

    @property
    def kind(self) -> str:
        """`"text"`, `"time"`, or `"number"`."""
        return {"O": "text", "S": "text", "U": "text", "M": "time", "m": "time"}.get(
            self.array.dtype.kind, "number"
        )

    @property
    def dtype_name(self) -> str:
        """Name of the dtype."""
        plain = {"U": "str", "S": "bytes"}
        return plain.get(self.array.dtype.kind, self.array.dtype.name)

    def column_path(self, column: int) -> str:
        """Returns the path of a column, such as `x[:, 3]`."""
        if not self.has_columns or self.array.ndim == 1:
            return self.path
        if self.array.ndim > 2 or self.owners is not None:
            return f"{self.path}[..., {column}]"
        return f"{self.path}[{'' if self.is_single else ':, '}{column}]"

    def chunks(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yields the first position of each chunk, and its lines by its columns."""
        if not self.array.size:
            return
        width = self.array[:1].size
        step = max(1, _CHUNK // width)
        for start in range(0, len(self.array), step):
            part = self.array[start : start + step]
            yield start, part.reshape(-1, self.columns)

    def spot(
        self, start: int, line: int, column: int, batch: int | None, before: int
    ) -> Spot:
        """Returns the position of a value of a chunk."""
        inner = self.array.shape[1:]
        where = np.unravel_index(
            line * self.columns + column, (len(self.array), *inner)
        )
        position = start + int(where[0])
        index = (position,) if self.index_of is None else self.index_of(position)
        row = position if self.owners is None else int(self.owners[position])
        value = self.array[(position, *where[1:])]
        rest = tuple(map(int, where[1:]))
        index = (*index, *rest)
        if self.is_single:
            return Spot(before + row, index[1:], value, inner)
        in_batch = None if batch is None else row
        return Spot(before + row, index, value, (self.rows, *inner), batch, in_batch)

    def rows_of(self, start: int, lines: Any) -> np.ndarray:
        """Returns the rows of the marked lines of a chunk."""
        length = lines.size // (self.array[:1].size // self.columns)
        marked = np.flatnonzero(lines.reshape(length, -1).any(axis=1)) + start
        return marked if self.owners is None else self.owners[marked]


# The kinds of cells. A number written as text is a numeral; a blank is a word for "no
# value"; a missing cell holds an object for it: None, NaN, NaT, `pandas.NA`.
NUMBER, NUMERAL, MISSING, BLANK, TEXT = range(5)

_BLANKS = {
    "", "#n/a", "-", "--", "?", ".", "<na>", "missing", "n/a", "na", "nan", "nil",
    "none", "null", "unknown",
}  # fmt: skip
_MISSING_TYPES = {"NAType", "NaTType", "NoneType"}


def read(cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Reads cells one by one.

    Args:
      cells: Array of dtype object, str or bytes.

    Returns:
      float64 array of the numbers, NaN for cells without one, and the array of the
      kinds of the cells.

    Raises:
      TypeError: If a cell holds an array or a list.
    """
    flat = cells.ravel().tolist()
    found = [_read_cell(cell) for cell in flat]
    values = np.array([value for value, _ in found], np.float64)
    kinds = np.array([kind for _, kind in found], np.int8)
    return values.reshape(cells.shape), kinds.reshape(cells.shape)


def _read_cell(cell: Any) -> tuple[float, int]:
    if isinstance(cell, str | bytes):
        return _read_text(cell)
    if isinstance(cell, numbers.Number) and not isinstance(cell, complex):
        value = float(cell)  # type: ignore[arg-type]
        return value, MISSING if value != value else NUMBER
    if type(cell).__name__ in _MISSING_TYPES:
        return np.nan, MISSING
    if isinstance(cell, list | tuple | dict | np.ndarray):
        raise TypeError(
            "check_finite reads cells of numbers and text. Received: an array of "
            f"objects with a cell of type {type(cell).__name__}. Rows of different "
            "lengths belong into a `tf.ragged.constant(rows)`."
        )
    return np.nan, TEXT


def _read_text(cell: str | bytes) -> tuple[float, int]:
    text = cell.decode(errors="replace") if isinstance(cell, bytes) else cell
    text = text.strip()
    if text.lower() in _BLANKS:
        return np.nan, BLANK
    try:
        return float(text), NUMERAL
    except ValueError:
        return np.nan, TEXT
