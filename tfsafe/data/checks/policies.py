"""Applies a policy to faulty rows and faulty values of data in memory."""

import dataclasses
import math
import warnings
from typing import Any

import numpy as np
import tensorflow as tf

from tfsafe import _args
from tfsafe.data.faults import explain
from tfsafe.data.faults.report import DataReport
from tfsafe.data.faults.survey import Survey, containers
from tfsafe.data.faults.tally import Limits, Tally
from tfsafe.data.sources import structure
from tfsafe.errors import NumericsError

POLICIES = ("raise", "drop", "replace", "report")


@dataclasses.dataclass(frozen=True)
class Policy:
    """A policy and its settings.

    Attributes:
      name: One of `POLICIES`.
      value: The number that replaces a faulty value, or `"mean"`.
      limits: The limits of the values that the model accepts.
    """

    name: str
    value: float | str
    limits: Limits


def checked(
    data: Any,
    policy: Policy,
    origin: explain.Origin,
    batch: int | None = None,
    before: int | None = 0,
) -> Any:
    """Applies the policy to data in memory.

    Args:
      data: Leaves in tuples, lists and dicts.
      policy: What to do.
      origin: The source of the data.
      batch: Number of the batch; None where the data come in one piece.
      before: Number of rows in the previous batches; None if unknown.

    Returns:
      The report for the policy "report"; `data` itself if it has no faults; otherwise
      the same structure with the same kinds of objects.

    Raises:
      NumericsError: If there is a fault that the policy does not repair.
    """
    survey = Survey(policy.limits, origin, counts_rows=before is not None)
    survey.add(data, batch, before)
    report = survey.report(data if batch is None else None)
    if policy.name == "report":
        return report
    if report.is_finite:
        return data
    if policy.name == "raise":
        report.raise_if_bad()
    if policy.name == "drop":
        return _dropped(data, survey, report)
    return _replaced(data, survey, report, policy)


def tell(what: str, report: DataReport, stacklevel: int = 6) -> None:
    """Warns about the changes made to the data."""
    heads = [finding.headline() for finding in report.findings]
    warnings.warn(
        f"check_finite {what}: {'; '.join(heads[:3])}. "
        'The policy "report" lists all findings.',
        stacklevel=stacklevel,
    )


def _dropped(data: Any, survey: Survey, report: DataReport) -> Any:
    if not report.rows:
        report.raise_if_bad()
    held = containers(data)
    faulty = np.any([survey.faulty_rows(each, path) for path, each in held], axis=0)
    if faulty.all():
        raise NumericsError(
            f"check_finite would drop all {len(faulty)} rows. {report.findings[0]}",
            report.findings,
        )
    tell(f"dropped {faulty.sum()} of {len(faulty)} rows", report)
    return structure.rebuilt(data, (each.take(~faulty) for _, each in held))


def _replaced(data: Any, survey: Survey, report: DataReport, policy: Policy) -> Any:
    refuse_unmendable(report)
    held = containers(data)
    new, count = [], 0
    for path, container in held:
        masks = survey.bad_values(container, path)
        count += sum(int(mask.sum()) for mask in masks)
        tables = container.tables(path)
        fills = [
            (mask, fill_values(survey.tallies[table.path], mask.any(axis=0), policy))
            for mask, table in zip(masks, tables, strict=True)
        ]
        is_hit = any(mask.any() for mask in masks)
        new.append(container.fill(fills) if is_hit else None)
    tell(f"replaced {count} values", report)
    parts = [
        old if made is None else made
        for made, (_, old) in zip(new, structure.parts(data), strict=True)
    ]
    return structure.rebuilt(data, iter(parts))


def refuse_unmendable(report: DataReport) -> None:
    """Raises the findings that no replacement number can repair."""
    rest = [finding for finding in report.findings if not finding.is_replaceable]
    if rest:
        raise NumericsError(
            f'{rest[0]}\n  note:  policy="replace" has no number for this; '
            'policy="drop" removes the row.',
            rest,
        )


def fill_values(tally: Tally, columns: Any, policy: Policy) -> np.ndarray:
    """Returns the number to write into each column.

    Raises:
      NumericsError: If the value is "mean" and a column has no numbers.
    """
    if policy.value != "mean":
        return np.full(tally.columns, float(policy.value))
    empty = columns & (tally.finite == 0)
    if empty.any():
        path = tally.table.column_path(int(np.flatnonzero(empty)[0]))
        raise NumericsError(
            f"`{path}` has no finite value, so it has no mean to replace with. Leave "
            "the feature out, or give a number: value=0.0."
        )
    return tally.means()


def policy_of(name: str, value: Any, limits: Limits) -> Policy:
    """Returns the policy that these arguments describe.

    Raises:
      TypeError: If `value` is neither a number nor `"mean"`.
      ValueError: If the policy is unknown, or `value` is not finite.
    """
    _args.one_of(name, POLICIES, "policy")
    if value == "mean":
        return Policy(name, value, limits)
    if isinstance(value, str):
        raise TypeError(
            '`value` must be a number, or "mean" for that of the column. Received: '
            f"value={value!r}."
        )
    number = _args.number(value, "value", tf.as_dtype(limits.dtype))
    if not math.isfinite(number):
        raise ValueError(
            f'`value` must be a finite number, or "mean". Received: value={value!r}.'
        )
    return Policy(name, number, limits)
