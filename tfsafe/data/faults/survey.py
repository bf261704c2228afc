"""Reads nested data once, whole or batch by batch, and reports its faults."""

import dataclasses
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np

from tfsafe._report.text import listed
from tfsafe.data.faults import explain, severity
from tfsafe.data.faults.findings import columns_told, finding, located
from tfsafe.data.faults.report import DataFinding, DataReport, Feature
from tfsafe.data.faults.tally import Limits, Tally
from tfsafe.data.sources import structure, tables
from tfsafe.data.sources.containers import Container, Frame, container_of
from tfsafe.data.sources.tables import Table


class Survey:
    """The tallies of all leaves.

    Args:
      limits: The limits of the values that the model accepts.
      origin: The source of the data.
      joined: Paths of the leaves whose last axis does not run over features.
      is_single: Whether a first axis was added to the leaves of each element.
      counts_rows: Whether the number of the first row is known.

    Attributes:
      tallies: By the path of the leaf.
      rows: How many rows were added.
    """

    def __init__(
        self,
        limits: Limits,
        origin: explain.Origin,
        joined: Collection[str] = (),
        is_single: bool = False,
        counts_rows: bool = True,
    ):
        self._limits, self._origin = limits, origin
        self._joined, self._is_single = joined, is_single
        self._counts_rows = counts_rows
        self._names: list[DataFinding] = []
        self.tallies: dict[str, Tally] = {}
        self.rows = 0

    def add(
        self,
        data: Any,
        batch: int | None = None,
        before: int | None = None,
    ) -> None:
        """Counts data.

        Args:
          data: Leaves in tuples, lists and dicts, all with the same number of rows.
          batch: Number of the batch; None where the data come in one piece.
          before: Number of rows before these, if not the number added so far.
        """
        before = self.rows if before is None else before
        held = containers(data)
        if not self.tallies:
            require_labels([path for path, _ in held], self._limits)
            self._names = [
                note
                for _, container in held
                if isinstance(container, Frame)
                for note in names_are_numbers(list(container.frame.columns))
            ]
        for path, container in held:
            for table in self._tables(container, path):
                if table.path not in self.tallies:
                    self.tallies[table.path] = Tally(table, self._limits)
                self.tallies[table.path].add(table, batch, before)
        self.rows += held[0][1].rows if held else 0

    def report(self, whole: Any = None) -> DataReport:
        """Returns the report on the data added so far.

        Args:
          whole: These data, if they are in memory and in one piece.
        """
        tallies = list(self.tallies.values())
        origin = self._origin
        if whole is not None and self.rows:
            origin = dataclasses.replace(origin, is_hopeless=self._is_hopeless(whole))
        findings = explain.errors(tallies, self._limits, self.rows, origin)
        found = [*self._names, *notes(tallies, self._limits)]
        features = [
            feature for tally in tallies for feature in _features(tally, self._limits)
        ]
        findings.sort(key=lambda each: -1 if each.element is None else each.element)
        if not self._counts_rows:
            findings = [dataclasses.replace(each, element=None) for each in findings]
        return DataReport(self.rows, tuple(features), tuple(findings), tuple(found))

    def _is_hopeless(self, whole: Any) -> bool:
        faulty = (self.faulty_rows(each, path) for path, each in containers(whole))
        return bool(np.any(list(faulty), axis=0).all())

    def faulty_rows(self, container: Container, path: str) -> np.ndarray:
        """Returns the rows of an added leaf that have an error."""
        faulty = np.zeros(container.rows, bool)
        for table in self._tables(container, path):
            for start, mask in self._bad(table):
                faulty[table.rows_of(start, mask.any(axis=1))] = True
        return faulty

    def bad_values(self, container: Container, path: str) -> list[np.ndarray]:
        """Returns a mask of the errors for each table of an added leaf."""
        found = []
        for table in self._tables(container, path):
            whole = np.zeros((table.array.size // table.columns, table.columns), bool)
            inner = table.array[:1].size // table.columns
            for start, mask in self._bad(table):
                whole[start * inner : start * inner + len(mask)] = mask
            found.append(whole)
        return found

    def _tables(self, container: Container, path: str) -> list[Table]:
        joined = path in self._joined
        return [
            dataclasses.replace(
                table,
                is_single=self._is_single,
                has_columns=table.has_columns and not joined,
            )
            for table in container.tables(path)
        ]

    def _bad(self, table: Table) -> Iterator[tuple[int, np.ndarray]]:
        tally = self.tallies[table.path]
        faults = severity.errors(tally)
        for start, values in table.chunks() if faults else ():
            mask = severity.faulty(tally.faults(table, values)[1], faults)
            if mask is not None:
                yield start, mask


def require_labels(paths: Collection[str], limits: Limits) -> None:
    """Refuses a number of classes for data without labels."""
    if limits.classes is not None and "y" not in paths:
        raise ValueError(
            "`num_classes` is for labels `y`, an array of integers. Received: "
            f"num_classes={limits.classes} for data with {', '.join(paths)}. Pass "
            "`(x, y)`."
        )


def containers(data: Any) -> list[tuple[str, Container]]:
    """Returns the leaves of nested data as containers.

    Raises:
      ValueError: If they differ in their number of rows.
    """
    held = [(path, container_of(part, path)) for path, part in structure.parts(data)]
    sizes = {path: container.rows for path, container in held}
    if len(set(sizes.values())) > 1:
        received = ", ".join(f"{path}: {rows} rows" for path, rows in sizes.items())
        raise ValueError(
            "check_finite takes data whose parts have the same number of rows. "
            f"Received: {received}. Pass `(x, y)` as `fit` takes them, and inputs of "
            "different lengths one by one."
        )
    return held


def _features(tally: Tally, limits: Limits) -> Iterator[Feature]:
    faults = severity.errors(tally)
    missing = np.zeros(tally.columns, np.int64)
    for fault in {"missing", "blank", "text"} & set(faults):
        missing += tally.counts[fault]
    constant = severity.is_constant(tally, limits.rounded)
    for column in range(tally.columns):
        rows = [
            tally.first[fault, column].row for fault in faults if faults[fault][column]
        ]
        yield Feature(
            tally.stats(column),
            int(missing[column]),
            int(tally.counts["beyond"][column]),
            bool(constant[column]),
            min(rows, default=None),
        )


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
    _, kinds = tables.read(
        np.array([".".join(name.split(".")[:2]) for name in names], object)
    )
    if (kinds != tables.NUMERAL).any():
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
