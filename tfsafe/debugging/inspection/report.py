"""A report as a web page: of an error, of findings, of tensors."""

import math
import os
from typing import Any

from tfsafe import _html
from tfsafe.debugging.inspection import pictures
from tfsafe.debugging.inspection import summary as _summary
from tfsafe.debugging.inspection.summary import Summaries, Summary
from tfsafe.errors import Finding, Operand


def report(
    subject: Any, path: str | os.PathLike[str] | None = None, *, title: str = ""
) -> str:
    """Makes a web page of an error, of findings, or of what tensors hold.

    The page of an error has the findings, the source around their lines, figures and
    pictures of the tensors, what to do, and the way of the bad values as a graph. The
    page of tensors has the figures and the picture of each. It is one file that loads
    nothing from anywhere and needs no JavaScript, in light and dark colours.

    Args:
      subject: A `NumericsError`, what `tfsafe.data.check_finite` reports, a `Finding`
        or several, `Summaries`, or anything that `tfsafe.debugging.summarize` takes:
        tensors, nested structures of them, models.
      path: File to write, replaced if it exists.
      title: Heading; where empty, the first finding or the number of tensors.

    Returns:
      The page, as text in HTML.

    Raises:
      TypeError: If a tensor has no values yet, as while a `tf.function` is traced.

    Examples:
      >>> import numpy as np
      >>> from tfsafe.debugging import report
      >>> page = report({"kernel": np.array([[1.0, np.nan]])}, title="My weights")
      >>> "1 NaN" in page
      True
    """
    if hasattr(subject, "findings"):
        findings = [*subject.findings, *getattr(subject, "remarks", ())]
        page = _html.of_findings(findings, str(subject), title)
    elif _is_all(subject, Finding):
        page = _of_findings(_listed(subject), title)
    else:
        page = _html.of_tensors(_operands(subject), title)
    return _html.write(page, path)


def _is_all(subject: Any, kind: type) -> bool:
    each = _listed(subject)
    return bool(each) and all(isinstance(one, kind) for one in each)


def _listed(subject: Any) -> list[Any]:
    return list(subject) if isinstance(subject, list | tuple) else [subject]


def _of_findings(findings: list[Finding], title: str) -> str:
    message = "\n\n".join(str(each) for each in findings)
    return _html.of_findings(findings, message, title)


def _operands(subject: Any) -> list[Operand]:
    if isinstance(subject, Summaries) or _is_all(subject, Summary):
        return [_operand(each) for each in _listed(subject)]
    return [pictures.operand(*each) for each in _summary.named_arrays(subject)]


def _operand(summary: Summary) -> Operand:
    """Returns a summary as an operand; it has shares where that has counts."""
    size = math.prod(summary.shape)
    shares = summary.zero, summary.nan, summary.posinf, summary.neginf
    zeros, nans, posinfs, neginfs = (round(share * size) for share in shares)
    return Operand(
        summary.path,
        summary.dtype,
        summary.shape,
        summary.min,
        summary.max,
        summary.mean,
        zeros=zeros,
        nans=nans,
        posinfs=posinfs,
        neginfs=neginfs,
    )
