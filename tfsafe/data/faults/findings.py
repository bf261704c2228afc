"""Builds a finding about one leaf from the positions of its values."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tfsafe._report.text import listed
from tfsafe.data.faults.report import DataFinding
from tfsafe.data.faults.tally import Tally, value_text
from tfsafe.data.sources.tables import Spot


def located(
    tally: Tally,
    faults: Mapping[str, np.ndarray],
    kind: str,
    cause: str,
    **more: Any,
) -> DataFinding:
    """Returns a finding at the first value that has one of the faults."""
    spot, column = first(tally, faults)
    table = tally.table
    columns = np.any(list(faults.values()), axis=0)
    return finding(
        kind=kind,
        origin=f"`{table.column_path(column)}`",
        dtype=table.dtype_name,
        count=sum(int(tally.counts[name][held].sum()) for name, held in faults.items()),
        size=tally.size * tally.columns,
        index=spot.place,
        shape=spot.shape,
        row=spot.row_in_batch,
        element=spot.row,
        batch=spot.batch,
        value=value_text(spot.value),
        cause=columns_told(tally, columns) + cause,
        **more,
    )


def finding(**facts: Any) -> DataFinding:
    """Returns a finding with these fields; the others are empty."""
    nothing: dict[str, Any] = {
        "origin": "",
        "dtype": "",
        "count": 0,
        "size": 0,
        "index": (),
    }
    return DataFinding(op_type="", op_name="", **(nothing | facts))


def first(tally: Tally, faults: Mapping[str, np.ndarray]) -> tuple[Spot, int]:
    """Returns the first value that has one of the faults, and its column."""
    spots = [
        (tally.first[fault, int(column)], int(column))
        for fault, columns in faults.items()
        for column in np.flatnonzero(columns)
    ]
    return min(spots, key=lambda pair: (pair[0].row, pair[0].place))


def columns_told(tally: Tally, columns: np.ndarray) -> str:
    """Returns the names of the columns, if several of them have the fault."""
    if columns.sum() < 2:
        return ""
    if columns.all():
        return f"in all {tally.columns} columns: "
    named = listed(map(str, np.flatnonzero(columns)), 6)
    return f"in {int(columns.sum())} of {tally.columns} columns ({named}): "
