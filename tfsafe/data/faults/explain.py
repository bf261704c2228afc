"""Turns tallies into findings: the fault, its cause, and a fix."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from tfsafe._text import listed
from tfsafe.data.faults import verdict
from tfsafe.data.faults.findings import finding, first, located
from tfsafe.data.faults.report import DataFinding
from tfsafe.data.faults.tally import NOT_FINITE, Limits, Tally, value_text

_KINDS = {"nan": "NaN", "posinf": "+Inf", "neginf": "-Inf"}
_SPREADS = "One such value makes the loss, the gradients and every weight NaN."
_FROM_FILE = (
    "a NaN is most often an empty cell, or text where a number was asked for, when a "
    "file is read."
)
_BY_ZERO = "an infinity is most often 1 / 0 or log(0), while data are prepared."
_FIRST_ROW = (
    "it is row 0 alone: a header that is read as data becomes NaN, and so does the "
    "first row of a difference."
)
_READ_WITH_HEADER = {
    "array": 'x = np.genfromtxt(path, delimiter=",", skip_header=1)',
    "dataset": "lines = tf.data.TextLineDataset(path).skip(1)",
    "frame": "x = pd.read_csv(path, header=0)",
}


# The faults that share one finding.
_GROUPS = {
    "not finite": NOT_FINITE,
    "missing": ("missing", "blank"),
    "text": ("text",),
    "beyond": ("beyond",),
    "label": ("label",),
}


@dataclasses.dataclass(frozen=True)
class Origin:
    """The source of the data, for suggested code.

    Attributes:
      names: The user's names for them: `("x", "y")` or `("dataset",)`.
      kind: `"array"`, `"dataset"`, or `"frame"`.
    """

    names: tuple[str, ...] = ("x",)
    kind: str = "array"

    def call(self, arguments: str) -> str:
        """Returns the call of `check_finite` as the user would write it."""
        names = ", ".join(self.names)
        argument = f"({names})" if len(self.names) > 1 else names
        return f"{names} = tfsafe.data.check_finite({argument}, {arguments})"


def errors(
    tallies: Sequence[Tally], limits: Limits, rows: int, origin: Origin
) -> list[DataFinding]:
    """Returns the findings that the policies act on."""
    if not rows:
        return [_no_rows()]
    headers = verdict.headers(tallies)
    found = [_header(headers, origin)] if headers else []
    named = {id(tally): columns for tally, columns in headers}
    for tally in tallies:
        faults = verdict.errors(tally)
        # Do not report again the faults that the header explains.
        for fault in {"nan", "text"} & set(faults) if id(tally) in named else ():
            is_told = named[id(tally)] & (tally.counts[fault] == 1)
            faults[fault] = faults[fault] & ~is_told
        faults = {name: columns for name, columns in faults.items() if columns.any()}
        found += _told(tally, faults, limits, origin)
    return found


def _told(
    tally: Tally, faults: Mapping[str, np.ndarray], limits: Limits, origin: Origin
) -> list[DataFinding]:
    """Returns one finding for each group of faults that a tally has."""
    held = {
        name: {fault: faults[fault] for fault in group if fault in faults}
        for name, group in _GROUPS.items()
    }
    tell = {
        "not finite": lambda: _not_finite(tally, held["not finite"], origin),
        "missing": lambda: _missing(tally, held["missing"], origin),
        "text": lambda: _text(tally, held["text"], origin),
        "beyond": lambda: _beyond(tally, held["beyond"], limits),
        "label": lambda: _label(tally, held["label"], limits),
    }
    return [tell[name]() for name, group in held.items() if group]


def _not_finite(
    tally: Tally, faults: Mapping[str, np.ndarray], origin: Origin
) -> DataFinding:
    is_time = tally.table.kind == "time"
    kinds = ["NaT"] if is_time else [_KINDS[fault] for fault in faults]
    return located(
        tally,
        faults,
        " and ".join(kinds),
        f"{_source(tally, faults)} {_SPREADS}",
        is_replaceable=not is_time,
        **(_leave_out(origin) if is_time else _fill_or_leave_out(tally, origin)),
    )


def _source(tally: Tally, faults: Mapping[str, np.ndarray]) -> str:
    """Returns the likely origin of non-finite values, as text."""
    if "nan" not in faults:
        return _BY_ZERO
    if len(faults) > 1:
        return f"{_FROM_FILE} A{_BY_ZERO[1:]}"
    columns = faults["nan"]
    if _is_empty(tally, columns):
        return "no value of this feature is a number: an empty column, or text."
    return _FIRST_ROW if _is_first_row(tally, columns) else _FROM_FILE


def _missing(
    tally: Tally, faults: Mapping[str, np.ndarray], origin: Origin
) -> DataFinding:
    cause = (
        f"the cell holds no number. As a float it becomes NaN. {_SPREADS}"
        if "blank" in faults
        else f"the cell holds no value. {_SPREADS}"
    )
    return located(
        tally,
        faults,
        "Missing value",
        cause,
        is_replaceable=not verdict.is_words(tally, faults),
        **_leave_out(origin),
    )


def _text(
    tally: Tally, faults: Mapping[str, np.ndarray], origin: Origin
) -> DataFinding:
    subject = tally.table.column_path(first(tally, faults)[1])
    return located(
        tally,
        faults,
        "Text among numbers",
        "the other cells of this feature are numbers; this one cannot be read as one.",
        suggested_code=f'{subject} = pd.to_numeric({subject}, errors="coerce")'
        if origin.kind == "frame"
        else origin.call('policy="drop"'),
        suggestion="makes NaN of it, which check_finite then drops or replaces."
        if origin.kind == "frame"
        else 'leaves such rows out; policy="replace" writes a number there.',
    )


def _beyond(
    tally: Tally, faults: Mapping[str, np.ndarray], limits: Limits
) -> DataFinding:
    name = limits.dtype.name
    return located(
        tally,
        faults,
        f"Value beyond {name}",
        f"it is finite, and becomes infinite when Keras casts it to {name}, whose "
        f"largest number is {limits.largest:.5g}.",
        suggestion="scale the feature before the model, or take the logarithm of its "
        "size. "
        f"{'' if name == 'float64' else _wider(name)}",
    )


def _wider(name: str) -> str:
    if name == "float32":
        return 'Or compute in float64: keras.config.set_floatx("float64").'
    return 'Or compute in float32: keras.config.set_dtype_policy("float32").'


def _label(
    tally: Tally, faults: Mapping[str, np.ndarray], limits: Limits
) -> DataFinding:
    last = (limits.classes or 0) - 1
    return located(
        tally,
        faults,
        "Label out of range",
        f"the labels of {limits.classes} classes are the integers from 0 to {last}. "
        "For any other the cross-entropy is NaN on a GPU and under XLA, or fails.",
        suggestion="labels that start from 1: y - 1. A label for `ignore` belongs into "
        "the loss: ignore_class=-1.",
        is_replaceable=False,
    )


def _header(headers: Sequence[tuple[Tally, np.ndarray]], origin: Origin) -> DataFinding:
    tally, columns = headers[0]
    fault = "text" if tally.table.kind == "text" else "nan"
    words = [
        value_text(each.first[fault, int(column)].value)
        for each, named in headers
        for column in np.flatnonzero(named)
    ]
    reads = (
        f"row 0 reads like a header: {listed(words)}. All rows below are numbers."
        if fault == "text"
        else "row 0 is NaN in every column, unlike the rows below: the names of the "
        "columns, read as numbers, or the first row of a difference."
    )
    return located(
        tally,
        {fault: columns},
        "Header row read as data",
        reads,
        suggested_code=_READ_WITH_HEADER[origin.kind],
        suggestion='reads it as names; policy="drop" leaves the row out.',
        is_replaceable=False,
    )


def _no_rows() -> DataFinding:
    return finding(
        kind="No rows",
        cause="the data are empty; the loss over no rows is 0 / 0.",
        suggestion="look at the path, the filter and the split that led here.",
        is_replaceable=False,
    )


def _leave_out(origin: Origin) -> dict[str, str]:
    what = " and ".join(origin.names) if len(origin.names) > 1 else ""
    both = f", of {what} alike" if what else ""
    return {
        "suggested_code": origin.call('policy="drop"'),
        "suggestion": f'leaves such rows out{both}; policy="replace" writes value=0.0 '
        'or value="mean" in their place.',
    }


def _fill_or_leave_out(tally: Tally, origin: Origin) -> dict[str, str]:
    """Suggests a number for an empty column: dropping its rows would leave none."""
    if tally.size < 3 or not (tally.counts["nan"] == tally.size).any():
        return _leave_out(origin)
    return {
        "suggested_code": origin.call('policy="replace", value=0.0'),
        "suggestion": "writes 0 into the empty column; or remove that column from the "
        'data. policy="drop" would leave no row.',
    }


def _is_empty(tally: Tally, columns: np.ndarray) -> bool:
    return tally.size > 2 and bool((tally.counts["nan"][columns] == tally.size).all())


def _is_first_row(tally: Tally, columns: np.ndarray) -> bool:
    rows = [tally.first["nan", int(column)].row for column in np.flatnonzero(columns)]
    return (
        tally.size > 2
        and not any(rows)
        and bool((tally.counts["nan"][columns] == 1).all())
    )
