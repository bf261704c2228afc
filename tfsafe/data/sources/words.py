"""Classifies cells of text or of Python objects."""

import numbers
from typing import Any

import numpy as np

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
