"""Writes notes on properties that may harm a training; no policy changes them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfsafe._report.text import listed
from tfsafe.data.faults import severity
from tfsafe.data.faults.findings import columns_told, finding, located
from tfsafe.data.faults.report import DataFinding
from tfsafe.data.faults.tally import Limits, Tally
from tfsafe.data.sources import words


def notes(tallies: Sequence[Tally], limits: Limits) -> list[DataFinding]:
    """Returns one note for each kind and leaf."""
    found = []
    for tally in tallies:
        constant = severity.is_constant(tally, limits.rounded)
        if constant.any() and not tally.table.path.startswith("sample_weight"):
            found.append(_constant(tally, constant, limits))
        if "inexact" in tally.counts:
            found.append(_inexact(tally, limits))
        numerals = severity.is_numerals(tally)
        if numerals.any():
            found.append(_numerals(tally, numerals))
        if tally.empty_rows:
            found.append(_empty_rows(tally))
    return found


def names_are_numbers(columns: Sequence[Any]) -> list[DataFinding]:
    """Returns a note if the names of a frame's columns are numbers as text."""
    names = [name for name in columns if isinstance(name, str)]
    if len(names) < 2 or len(names) < len(columns):
        return []
    # pandas renames a duplicate name to "5.1.1".
    _, kinds = words.read(
        np.array([".".join(name.split(".")[:2]) for name in names], object)
    )
    if (kinds != words.NUMERAL).any():
        return []
    return [
        finding(
            kind="Row of data read as header",
            cause=f"the columns are named {listed(map(repr, names))}: numbers. The "
            "first row of the file has become their names.",
            suggestion="read that row as data: pd.read_csv(..., header=None).",
        )
    ]


def _constant(tally: Tally, columns: np.ndarray, limits: Limits) -> DataFinding:
    column = int(np.flatnonzero(columns)[0])
    value = tally.low[column]
    differs = value != tally.high[column]
    seen = f" to {limits.dtype.name}" if differs else ""
    is_label = tally.table.path == "y"
    return finding(
        kind="Constant values",
        origin=f"`{tally.table.column_path(column)}`",
        dtype=tally.table.dtype_name,
        count=int(tally.size * columns.sum()),
        size=tally.size * tally.columns,
        cause=f"{columns_told(tally, columns)}every value is {value:.9g}{seen}. "
        + (
            "There is nothing to learn from one label."
            if is_label
            else "Its standard deviation is 0, by which a standardisation divides."
        ),
        suggested_code="" if is_label else "tfsafe.layers.Normalization()",
        suggestion="look at how the labels were made."
        if is_label
        else "gives 0 for it; or leave the feature out.",
    )


def _inexact(tally: Tally, limits: Limits) -> DataFinding:
    return located(
        tally,
        {"inexact": tally.counts["inexact"] > 0},
        f"Integers that {limits.dtype.name} rounds",
        f"{limits.dtype.name} holds every integer up to {limits.exact}; above, "
        "neighbours become the same number.",
        suggestion="an id belongs into a keras.layers.IntegerLookup or Hashing layer "
        "and an Embedding; of a time or a count, subtract the smallest first.",
    )


def _numerals(tally: Tally, columns: np.ndarray) -> DataFinding:
    return located(
        tally,
        {"numeral": columns},
        "Numbers written as text",
        "every cell can be read as a number, and is text; a model takes text only in "
        "a lookup layer.",
        suggestion='make them numbers: .astype("float32").',
    )


def _empty_rows(tally: Tally) -> DataFinding:
    return finding(
        kind="Rows without values",
        origin=f"`{tally.table.path}`",
        dtype=tally.table.dtype_name,
        count=tally.empty_rows,
        size=tally.rows,
        cause=f"{tally.empty_rows} of {tally.rows} rows have length 0. Their mean is "
        "0 / 0, and a softmax over them is NaN.",
        suggested_code="tfsafe.layers.SafeMeanPooling()",
        suggestion="gives 0 for such a row.",
    )
