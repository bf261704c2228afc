"""Shows the failed row of the batch as what it is: image, series, tokens or table."""

import dataclasses
import math
import sys
import types
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfsafe import _compat
from tfsafe._report import explain
from tfsafe._report.records import Sample
from tfsafe._report.text import listed
from tfsafe.debugging import values as _values
from tfsafe.errors import Finding, NumericsError

# Longest side of an image, most steps of a series, most columns of a table.
_SIDE, _STEPS, _COLUMNS = 48, 120, 16
_METHODS = {"evaluate", "fit", "test_on_batch", "train_on_batch"}


def note(error: NumericsError) -> None:
    """Adds the row of the batch to an error whose finding has one."""
    finding = error.findings[0]
    row = finding.row
    if row is None or (not finding.origin and explain.is_everywhere(finding)):
        return
    used = {_values.without_replica(each.name) for each in finding.inputs}
    # First the one that the operation itself took.
    named = sorted(error.inputs.items(), key=lambda each: _label(each[0]) not in used)
    origin = _values.without_replica(finding.origin)
    for name, value in named:
        if name.endswith(_values.SPLITS) or origin not in {"", _label(name)}:
            continue
        array = _compat.host_array(value)
        splits = _values.row_splits(error.inputs, name)
        if splits is not None:
            if row + 1 < len(splits):
                error.sample = _tokens(name, row, finding, array, splits)
                return
            continue
        is_batch = array.dtype.kind in "fiu" and array.ndim in (2, 3, 4)
        if is_batch and array.size and row < len(array):
            values = array[row].astype(np.float64)
            place = finding.index[1:] if _label(name) in used else ()
            # Element by element: the value at the place of the result.
            is_alike = finding.shape[1:] == values.shape
            meant = _meant(values, place if is_alike else ())
            error.sample = _sample(name, row, values, meant)
            return


def _tokens(
    name: str, row: int, finding: Finding, values: np.ndarray, splits: np.ndarray
) -> Sample:
    """Returns a row of a ragged tensor: its tokens around the one that failed."""
    begin, end = (int(each) for each in splits[row : row + 2])
    tokens = values[begin:end]
    if values.dtype.kind in "fiu":
        # Vectors count as a whole.
        of_tokens = tokens.reshape([len(tokens), int(np.prod(tokens.shape[1:]))])
        is_bad = ~np.isfinite(of_tokens).all(-1)
    else:
        is_bad = np.zeros(len(tokens), bool)
    mark, words = -1, ""
    is_flat = finding.shape[:1] == values.shape[:1] and finding.index
    if is_bad.any():
        marked = np.flatnonzero(is_bad)
        words = _span("token", (int(marked[0]), int(marked[-1])))
        mark = int(marked[0])
    elif is_flat and begin <= finding.index[0] < end:
        mark = finding.index[0] - begin
        words = f"token {mark}"
    first = max(0, mark - _COLUMNS // 2)
    shown = range(first, min(len(tokens), first + _COLUMNS))
    is_plain = tokens.ndim == 1 and values.dtype.kind in "fiu"
    return Sample(
        "tokens",
        name,
        row,
        tuple((float(i), _plain(tokens[i]) if is_plain else None) for i in shown),
        words,
        columns=() if is_plain else tuple(_text_of(tokens[i]) for i in shown),
        mark=mark - first if mark >= 0 else -1,
        is_finite=not is_bad.any(),
        length=len(tokens),
    )


def _text_of(token: Any) -> str:
    if isinstance(token, bytes):
        return token.decode(errors="replace")
    return str(token) if np.ndim(token) == 0 else f"{np.size(token)} numbers"


def _label(name: str) -> str:
    return f"argument `{name}`"


def _meant(values: np.ndarray, place: Sequence[int]) -> np.ndarray:
    """Returns which values are not finite; if all are, the one that failed."""
    found = ~np.isfinite(values)
    if place and not found.any():
        found[tuple(place)] = True
    return found


def _sample(name: str, row: int, values: np.ndarray, meant: np.ndarray) -> Sample:
    drawn = {1: _table, 2: _series, 3: _image}[values.ndim]
    found = drawn(name, row, values, meant)
    is_finite = bool(np.isfinite(values).all())
    return dataclasses.replace(found, is_finite=is_finite)


def _image(name: str, row: int, values: np.ndarray, meant: np.ndarray) -> Sample:
    words = ""
    box: tuple[int, ...] = ()
    height, width = values.shape[:2]
    steps = math.ceil(max(height, width) / _SIDE)
    if meant.any():
        places = [(int(each.min()), int(each.max())) for each in np.nonzero(meant)]
        (top, bottom), (left, right), channels = places
        words = (
            f"{_span('channel', channels)}, {_span('row', (top, bottom))}, "
            f"{_span('column', (left, right))}"
        )
        box = (
            top // steps, left // steps, bottom // steps + 1, right // steps + 1,
        )  # fmt: skip
    known = np.where(np.isfinite(values), values, 0.0)
    shades = known.mean(-1)[::steps, ::steps]
    low, high = shades.min(), shades.max()
    return Sample(
        "image", name, row, _cells((shades - low) / ((high - low) or 1.0)), words, box
    )


def _series(name: str, row: int, values: np.ndarray, meant: np.ndarray) -> Sample:
    words = ""
    every = math.ceil(len(values) / _STEPS)
    mark = -1
    if meant.any():
        steps, features = (
            (int(each.min()), int(each.max())) for each in np.nonzero(meant)
        )
        words = f"{_span('step', steps)}, {_span('feature', features)}"
        if np.isfinite(values).all():
            mark = steps[0] // every
    shown = np.flatnonzero(meant.any(0))[:3] if meant.any() else np.arange(3)
    shown = shown[shown < values.shape[1]]
    return Sample(
        "series", name, row, _cells(values[::every, shown].T), words, mark=mark
    )


def _table(name: str, row: int, values: np.ndarray, meant: np.ndarray) -> Sample:
    broken, others = np.flatnonzero(meant), np.flatnonzero(~meant)
    known = _column_names(name, len(values))
    columns = sorted([*broken, *others][:_COLUMNS])
    words = _span("column", (int(broken[0]), int(broken[-1]))) if len(broken) else ""
    if known and len(broken):
        words = f"column{'s' * (len(broken) > 1)} {listed([known[i] for i in broken])}"
    found = tuple((float(each), _plain(values[each])) for each in columns)
    names = tuple(known[each] for each in columns) if known else ()
    mark = columns.index(broken[0]) if len(broken) else -1
    return Sample("table", name, row, found, words, columns=names, mark=mark)


def _column_names(name: str, count: int) -> list[str]:
    """Returns the names of the columns of a data frame that Keras was called with."""
    frame: types.FrameType | None = sys._getframe()
    while frame is not None:
        given = frame.f_locals.get(name) if frame.f_code.co_name in _METHODS else None
        names = getattr(given, "columns", ())
        if len(names) == count:
            return [str(each) for each in names]
        frame = frame.f_back
    return []


def _span(noun: str, ends: tuple[int, int]) -> str:
    first, last = ends
    return f"{noun} {first}" if first == last else f"{noun}s {first}\u2013{last}"


def _cells(values: np.ndarray) -> tuple[tuple[float | None, ...], ...]:
    return tuple(tuple(_plain(each) for each in line) for line in values)


def _plain(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None
