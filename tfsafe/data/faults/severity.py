"""Decides which faults of the columns are errors; the policies act on errors."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfsafe.data.faults.tally import NOT_FINITE, Tally

_OF_NUMBERS = (*NOT_FINITE, "beyond", "label")
_OF_TEXT = ("text", "blank")


def errors(tally: Tally) -> dict[str, np.ndarray]:
    """Returns, for each fault, the columns in which it is an error.

    NaN is always an error. Text is an error in a column of numbers. A column is one of
    numbers if most of its cells are numbers, or if all are numbers written as text,
    except blanks and a header in row 0; a column of codes, such as "101" and "A7", is
    not.

    Returns:
      Only faults that are an error in some column.
    """
    counts = tally.counts
    if tally.table.kind != "text":
        return {fault: counts[fault] > 0 for fault in _OF_NUMBERS if fault in counts}
    later = counts["text"] - _text_in_row_0(tally)
    numbers, numerals = counts["number"], counts["numeral"]
    is_numeric = np.where(
        numbers > 0, numbers + numerals >= later, (numerals > 0) & (later == 0)
    )
    is_empty = numbers + numerals + counts["text"] == 0
    found = {"missing": counts["missing"] > 0}
    found |= {fault: is_numeric & (counts[fault] > 0) for fault in _OF_NUMBERS}
    found |= {
        fault: (is_numeric | is_empty) & (counts[fault] > 0) for fault in _OF_TEXT
    }
    return {fault: columns for fault, columns in found.items() if columns.any()}


def columns(tally: Tally) -> np.ndarray:
    """Returns the columns that have an error."""
    return np.any([np.zeros(tally.columns), *errors(tally).values()], axis=0)


def headers(tallies: Sequence[Tally]) -> list[tuple[Tally, np.ndarray]]:
    """Returns the columns whose row 0 reads like the name of the column.

    Either row 0 holds the only text, above numbers; or several columns of floats all
    have a NaN there, which `np.genfromtxt` makes of a name, and hardly any below.
    """
    found = [(tally, _names(tally)) for tally in tallies]
    found = [(tally, columns) for tally, columns in found if columns.any()]
    if found:
        return found
    floats = [
        tally for tally in tallies if tally.table.array.dtype.kind == "f" and tally.size
    ]
    above = [(tally, _nan_in_row_0(tally)) for tally in floats]
    columns = sum(tally.columns for tally in floats)
    has_lone = any((tally.counts["nan"] == 1).any() for tally in floats)
    is_header = columns > 1 and has_lone and all(each.all() for _, each in above)
    return above if is_header else []


def faulty(
    masks: dict[str, np.ndarray], faults: dict[str, np.ndarray]
) -> np.ndarray | None:
    """Returns a mask of the errors in a chunk; None if there are none."""
    held = [masks[fault] & faults[fault] for fault in faults if fault in masks]
    return np.any(held, axis=0) if held else None


def is_constant(tally: Tally, rounded: Any) -> np.ndarray:
    """Returns the columns that hold a single number, in the dtype of the model."""
    is_one = rounded(tally.low) == rounded(tally.high)
    return is_one & (tally.finite == tally.size) & (tally.size > 1)


def is_words(tally: Tally, faults: Mapping[str, np.ndarray]) -> bool:
    """Returns whether a column with one of these faults does not hold numbers."""
    numbers = tally.counts["number"] + tally.counts["numeral"]
    later = tally.counts["text"] - _text_in_row_0(tally)
    hit = np.any(list(faults.values()), axis=0)
    return bool((hit & (numbers < later)).any())


def is_numerals(tally: Tally) -> np.ndarray:
    """Returns the columns of text whose cells, except blanks, are all numbers."""
    counts = tally.counts
    if tally.table.kind != "text":
        return np.zeros(tally.columns, bool)
    others = counts["number"] + counts["text"]
    return (counts["numeral"] > 0) & (others == 0)


def _text_in_row_0(tally: Tally) -> np.ndarray:
    rows = [tally.first.get(("text", column)) for column in range(tally.columns)]
    return np.array([spot is not None and spot.row == 0 for spot in rows], np.int64)


def _names(tally: Tally) -> np.ndarray:
    if tally.table.kind != "text":
        return np.zeros(tally.columns, bool)
    numbers = tally.counts["number"] + tally.counts["numeral"]
    is_only = (tally.counts["text"] == 1) & (numbers > 0)
    return is_only & (_text_in_row_0(tally) == 1)


def _nan_in_row_0(tally: Tally) -> np.ndarray:
    """Returns the columns with a NaN in row 0 and numbers in most rows below."""
    rows = [tally.first.get(("nan", column)) for column in range(tally.columns)]
    in_row_0 = np.array([spot is not None and spot.row == 0 for spot in rows])
    return in_row_0 & (tally.counts["nan"] * 2 < tally.size)
