"""Shows the row of the batch that failed as what it is: image, series or table."""

import math
import sys
import types
from typing import Any

import numpy as np

from tfsafe import _compat
from tfsafe._report import explain
from tfsafe._report.records import Sample
from tfsafe._report.text import listed
from tfsafe.errors import NumericsError

# Longest side of an image, most steps of a series, most columns of a table.
_SIDE, _STEPS, _COLUMNS = 48, 120, 16
_CHANNELS = (1, 3, 4)
_METHODS = {"evaluate", "fit", "test_on_batch", "train_on_batch"}


def note(error: NumericsError) -> None:
    """Adds the row of the batch to an error whose finding has one."""
    if not error.findings or error.findings[0].row is None:
        return
    finding = error.findings[0]
    if not finding.origin and explain.is_everywhere(finding):
        return
    for name, value in error.inputs.items():
        is_meant = finding.origin in {"", f"argument `{name}`"}
        array = _compat.host_array(value)
        if is_meant and array.dtype.kind in "fiu" and array.ndim in (2, 3, 4):
            if finding.row is not None and finding.row < len(array):
                error.sample = _sample(name, finding.row, array[finding.row])
            return


def _sample(name: str, row: int, values: np.ndarray) -> Sample:
    values = values.astype(np.float64)
    if values.ndim == 3 and values.shape[-1] in _CHANNELS:
        return _image(name, row, values)
    if values.ndim == 2:
        return _series(name, row, values)
    if values.ndim == 1:
        return _table(name, row, values)
    return _image(name, row, values.mean(-1, keepdims=True))


def _image(name: str, row: int, values: np.ndarray) -> Sample:
    broken = ~np.isfinite(values)
    words = ""
    box: tuple[int, ...] = ()
    height, width = values.shape[:2]
    steps = max(1, math.ceil(max(height, width) / _SIDE))
    if broken.any():
        places = [(int(each.min()), int(each.max())) for each in np.nonzero(broken)]
        (top, bottom), (left, right), channels = places
        words = (
            f"{_span('channel', channels)}, {_span('row', (top, bottom))}, "
            f"{_span('column', (left, right))}"
        )
        box = (
            top // steps, left // steps, bottom // steps + 1, right // steps + 1,
        )  # fmt: skip
    shades = np.where(broken, 0.0, values).mean(-1)[::steps, ::steps]
    low, high = shades.min(), shades.max()
    return Sample(
        "image", name, row, _cells((shades - low) / ((high - low) or 1.0)), words, box
    )


def _series(name: str, row: int, values: np.ndarray) -> Sample:
    broken = ~np.isfinite(values)
    words = ""
    if broken.any():
        steps, features = (
            (int(each.min()), int(each.max())) for each in np.nonzero(broken)
        )
        words = f"{_span('step', steps)}, {_span('feature', features)}"
    shown = np.flatnonzero(broken.any(0))[:3] if broken.any() else np.arange(3)
    shown = shown[shown < values.shape[1]]
    every = max(1, math.ceil(len(values) / _STEPS))
    return Sample("series", name, row, _cells(values[::every, shown].T), words)


def _table(name: str, row: int, values: np.ndarray) -> Sample:
    broken = np.flatnonzero(~np.isfinite(values))
    known = _column_names(name, len(values))
    others = np.flatnonzero(np.isfinite(values))
    columns = sorted([*broken, *others][:_COLUMNS])
    words = _span("column", (int(broken[0]), int(broken[-1]))) if len(broken) else ""
    if known and len(broken):
        words = f"column{'s' * (len(broken) > 1)} {listed([known[i] for i in broken])}"
    found = tuple((float(each), _plain(values[each])) for each in columns)
    names = tuple(known[each] for each in columns) if known else ()
    return Sample("table", name, row, found, words, columns=names)


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
