"""Turns tallies into findings: the fault, its cause, and a fix."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from tfsafe._report import caller
from tfsafe._report.text import listed
from tfsafe.data.faults import severity
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
    "array": "np.genfromtxt(..., skip_header=1)",
    "dataset": "tf.data.TextLineDataset(...).skip(1)",
    "frame": "pd.read_csv(..., header=0)",
}


# The faults that have one finding in common.
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
      names: What `fit` calls its parts: `("x", "y")` or `("dataset",)`.
      kind: `"array"`, `"dataset"`, or `"frame"`.
      call: The user's call of `check_finite`, if its source is available.
      is_hopeless: Whether each row has a fault, so that dropping them leaves none.
    """

    names: tuple[str, ...] = ("x",)
    kind: str = "array"
    call: caller.Call | None = None
    is_hopeless: bool = False

    def expression(self) -> str:
        """Returns what the user passed, as source; empty if it is not known."""
        call = self.call
        if call is None or not call.function.endswith("check_finite"):
            return ""
        found = [*call.arguments, *call.keywords.values()][:1]
        return caller.shown(found[0]) if found else ""

    def with_policy(self, policy: str) -> str:
        """Returns the user's call with another policy; empty if it is not known."""
        expression = self.expression()
        if not expression or self.call is None:
            return ""
        kept = [
            f"{name}={value}"
            for name, value in self.call.keywords.items()
            if name not in {"dataset", "policy", "value"}
        ]
        # A report has a name of its own.
        is_report = self.call.keywords.get("policy") == "'report'"
        targets = "" if is_report else self.call.targets
        if not targets:
            is_name = caller.is_name(expression)
            targets = expression.strip("()") if is_name else ", ".join(self.names)
        arguments = ", ".join([expression, policy, *kept])
        call = f"{self.call.function}({arguments})"
        return f"{targets} = {call}" if targets else call


def errors(
    tallies: Sequence[Tally], limits: Limits, rows: int, origin: Origin
) -> list[DataFinding]:
    """Returns the findings that the policies act on."""
    if not rows:
        return [_no_rows()]
    headers = severity.headers(tallies)
    found = [_header(headers, origin)] if headers else []
    named = {id(tally): columns for tally, columns in headers}
    for tally in tallies:
        faults = severity.errors(tally)
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
        **(_remove_or_omit if is_time else _remove_or_fill)(tally, faults, origin),
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
    is_words = severity.is_words(tally, faults)
    return located(
        tally,
        faults,
        "Missing value",
        cause,
        is_replaceable=not is_words,
        **(_remove_or_omit if is_words else _remove_or_fill)(tally, faults, origin),
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
        **(
            _to_numeric(subject, origin)
            if origin.kind == "frame"
            else _remove(origin, "a number")
        ),
    )


def _to_numeric(subject: str, origin: Origin) -> dict[str, str]:
    expression = origin.expression()
    words = "makes NaN of it, which check_finite then drops or replaces."
    if len(origin.names) > 1 or not caller.is_name(expression):
        return {"suggestion": f'pd.to_numeric(column, errors="coerce") {words}'}
    subject = expression + subject.removeprefix(origin.names[0])
    return {
        "suggested_code": f'{subject} = pd.to_numeric({subject}, errors="coerce")',
        "suggestion": words,
    }


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
        **_policy(
            origin,
            'policy="drop"',
            "removes that row. Better, read the file without it: "
            f"{_READ_WITH_HEADER[origin.kind]}.",
        ),
        is_replaceable=False,
    )


def _no_rows() -> DataFinding:
    return finding(
        kind="No rows",
        cause="the data are empty; the loss over no rows is 0 / 0.",
        suggestion="look at the path, the filter and the split that led here.",
        is_replaceable=False,
    )


def _policy(origin: Origin, policy: str, words: str) -> dict[str, str]:
    """Suggests the user's call with another policy, in words if it is not known."""
    code = origin.with_policy(policy)
    if not code:
        return {"suggestion": f"check_finite(..., {policy}) {words}"}
    return {"suggested_code": code, "suggestion": words}


def _remove(
    origin: Origin, number: str = 'value=0.0 or value="mean"'
) -> dict[str, str]:
    """Suggests to drop the rows with a fault, if that leaves any."""
    if origin.is_hopeless:
        return _policy(
            origin,
            'policy="replace", value=0.0',
            "writes 0 in place of these values. Each row has one: "
            'policy="drop" would leave no row.',
        )
    what = " and ".join(origin.names) if len(origin.names) > 1 else ""
    both = f", of {what} alike" if what else ""
    return _policy(
        origin,
        'policy="drop"',
        f'removes such rows{both}; policy="replace" writes {number} in their place.',
    )


def _remove_or_fill(
    tally: Tally, faults: Mapping[str, np.ndarray], origin: Origin
) -> dict[str, str]:
    """Suggests a number for an empty column: dropping its rows would leave none."""
    counts = np.sum([tally.counts[fault] for fault in faults], axis=0)
    if not (counts == tally.size).any() or (tally.size < 3 and not origin.is_hopeless):
        return _remove(origin)
    return _policy(
        origin,
        'policy="replace", value=0.0',
        "writes 0 into the empty column; or remove that column from the data. "
        'policy="drop" would leave no row.',
    )


def _remove_or_omit(
    tally: Tally, faults: Mapping[str, np.ndarray], origin: Origin
) -> dict[str, str]:
    """Suggests to drop the rows, or the columns where each row has the fault."""
    counts = np.sum([tally.counts[fault] for fault in faults], axis=0)
    if origin.is_hopeless or (tally.size > 2 and (counts == tally.size).any()):
        return {
            "suggestion": "remove this column from the data: each row has a fault, so "
            'that policy="drop" would leave no row.'
        }
    return _remove(origin)


def _is_empty(tally: Tally, columns: np.ndarray) -> bool:
    return tally.size > 2 and bool((tally.counts["nan"][columns] == tally.size).all())


def _is_first_row(tally: Tally, columns: np.ndarray) -> bool:
    rows = [tally.first["nan", int(column)].row for column in np.flatnonzero(columns)]
    return (
        tally.size > 2
        and not any(rows)
        and bool((tally.counts["nan"][columns] == 1).all())
    )
