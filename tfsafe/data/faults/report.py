"""Holds the report of a dataset check, as plain data and as text."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from tfsafe._report import explain, html
from tfsafe._report.records import TensorStats
from tfsafe._report.text import wrapped
from tfsafe.errors import Finding, NumericsError

_FEATURES_SHOWN = 20
_HEADINGS = (
    *("feature", "dtype", "count", "NaN", "Inf"),
    *("min", "max", "constant", "first row"),
)


@dataclasses.dataclass(frozen=True)
class DataFinding(Finding):
    """One fault in one part of a dataset.

    A `tfsafe.Finding` whose `origin` is the path of the feature, and whose `index` and
    `shape` are those of the first faulty value in its array, batch or element. `row` is
    its row in a batch, and None where the data came in one piece.

    Attributes:
      element: The row of the first faulty value, counted from the first row of all.
      batch: Number of its batch, from 0; None where the data came in one piece.
      value: The value, as text.
      is_replaceable: Whether the policy `"replace"` can put a number in its place.
    """

    element: int | None = None
    batch: int | None = None
    value: str = ""
    is_replaceable: bool = True

    def headline(self) -> str:
        """Returns the fault and its place in a few words."""
        head = f"{self.kind} in {self.origin}" if self.origin else self.kind
        return head + self._position()

    def __str__(self) -> str:
        lines = [f"{self.headline()}."]
        if self.value:
            many = f"{self.count} of {self.size} values, the first is {self.value}"
            shown = (
                f"{many} at index {self.index}"
                if self.index
                else (f"the value is {self.value}" if self.size == 1 else many)
            )
            lines += wrapped("  what:  ", f"{shown}; {self.dtype}")
        lines += wrapped("  why:   ", self.cause)
        return "\n".join([*lines, *explain.fix_lines(self)])

    def _position(self) -> str:
        in_batch = f"row {self.row} of batch {self.batch}"
        if self.element is None:
            return "" if self.batch is None else f", first in {in_batch}"
        where = f", first in row {self.element}"
        return where if self.batch is None else f"{where} ({in_batch})"


@dataclasses.dataclass(frozen=True)
class Feature:
    """One column of a dataset.

    Attributes:
      stats: Its statistics, under its path, such as `x["age"]` or `x[:, 3]`.
      missing: Number of cells without a value: NaT, None, blanks, text among numbers.
      overflows: Number of finite values that the dtype of the model makes infinite.
      is_constant: Whether all values are the same number to the model.
      first_row: The first row with one of these or a non-finite value; None without
        any.
    """

    stats: TensorStats
    missing: int = 0
    overflows: int = 0
    is_constant: bool = False
    first_row: int | None = None


@dataclasses.dataclass(frozen=True)
class DataReport:
    """The result of `check_finite`. `str(report)` explains it, `as_dict` gives JSON.

    Attributes:
      rows: How many rows were read.
      features: One entry for each column.
      findings: Faults that break a training, ordered by row.
      notes: Properties that may harm one: constant features, integers that the dtype
        rounds, rows without values, numbers kept as text.
    """

    rows: int
    features: tuple[Feature, ...]
    findings: tuple[DataFinding, ...] = ()
    notes: tuple[DataFinding, ...] = ()

    @property
    def is_finite(self) -> bool:
        """Whether the findings are empty; notes do not count."""
        return not self.findings

    def as_dict(self) -> dict[str, Any]:
        """Returns the report as numbers, strings, lists and dicts."""
        return dataclasses.asdict(self)

    def raise_if_bad(self, rest: str = "`error.findings`") -> None:
        """Raises the first finding as an error.

        Args:
          rest: Where the user finds the other findings, if there are more.

        Raises:
          NumericsError: If `findings` is not empty.
        """
        if self.findings:
            raise NumericsError(_joined(self.findings, rest), self.findings)

    def __str__(self) -> str:
        found = _counted(len(self.findings), "problem")
        notes = _counted(len(self.notes), "note")
        rows, features = (
            _counted(self.rows, "row"),
            _counted(len(self.features), "feature"),
        )
        lines = [f"{found} and {notes} in {rows} of {features}.", "", *self._table()]
        for finding in (*self.findings, *self.notes):
            lines += ["", str(finding)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Shows the table and the findings in a notebook."""
        title = str(self).partition("\n")[0]
        found = "\n\n".join(map(str, (*self.findings, *self.notes)))
        return html.fragment_of_table(title, self._rows(), found)

    def _rows(self) -> list[Sequence[str]]:
        # Faulty ones first; the sort keeps the order of the columns.
        ranked = sorted(self.features, key=lambda each: each.first_row is None)
        return [_HEADINGS, *map(_cells, ranked[:_FEATURES_SHOWN])]

    def _table(self) -> list[str]:
        rows = self._rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  "
            + "  ".join(
                cell.ljust(width) if place < 2 else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        if len(self.features) > _FEATURES_SHOWN:
            more = len(self.features) - _FEATURES_SHOWN
            lines.append(f"  and {more} more features")
        return lines


def _cells(feature: Feature) -> tuple[str, ...]:
    stats = feature.stats
    nans, infs = stats.nans + feature.missing, stats.posinfs + stats.neginfs
    ends = ("" if end is None else f"{end:.5g}" for end in (stats.min, stats.max))
    first = "" if feature.first_row is None else str(feature.first_row)
    counts = map(str, (stats.size, nans, infs + feature.overflows))
    constant = "yes" if feature.is_constant else ""
    return (stats.name, stats.dtype, *counts, *ends, constant, first)


def _joined(findings: tuple[DataFinding, ...], rest: str) -> str:
    text = str(findings[0])
    if len(findings) > 1:
        others = _counted(len(findings) - 1, "further problem")
        text += f"\n  more:  {others}, see {rest}"
    return text


def _counted(number: int, noun: str) -> str:
    if not number:
        return f"no {noun}s"
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
