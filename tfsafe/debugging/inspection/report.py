"""Writes a web page of an error, of findings or of tensors."""

import os
from typing import Any

from tfsafe import _html
from tfsafe._records import TensorStats
from tfsafe.debugging.inspection import pictures
from tfsafe.debugging.inspection import summary as _summary
from tfsafe.debugging.inspection.summary import Summaries
from tfsafe.errors import Finding


def report(
    content: Any, path: str | os.PathLike[str] | None = None, *, title: str = ""
) -> str:
    """Makes a web page of an error, of findings, or of what tensors hold.

    The page of an error has the findings, the source around their lines, figures and
    pictures of the tensors, what to do, and the propagation path as a graph. The
    page of tensors has the figures and the picture of each. It is one file that loads
    nothing from anywhere and needs no JavaScript, in light and dark colours.

    Args:
      content: A `NumericsError`, what `tfsafe.data.check_finite` reports, a `Finding`
        or several, `Summaries`, or anything that `tfsafe.debugging.summarize` takes:
        tensors, nested structures of them, models.
      path: File to write, replaced if it exists.
      title: Heading; if empty, the first finding or the number of tensors.

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
    if hasattr(content, "findings"):
        findings = [*content.findings, *getattr(content, "notes", ())]
        page = _html.of_findings(findings, str(content), title)
    elif _is_all(content, Finding):
        page = _of_findings(_listed(content), title)
    else:
        page = _html.of_tensors(_stats(content), title)
    return _html.write(page, path)


def _is_all(content: Any, kind: type) -> bool:
    each = _listed(content)
    return bool(each) and all(isinstance(one, kind) for one in each)


def _listed(content: Any) -> list[Any]:
    return list(content) if isinstance(content, list | tuple) else [content]


def _of_findings(findings: list[Finding], title: str) -> str:
    message = "\n\n".join(str(each) for each in findings)
    return _html.of_findings(findings, message, title)


def _stats(content: Any) -> list[TensorStats]:
    if isinstance(content, Summaries) or _is_all(content, TensorStats):
        return _listed(content)
    return [pictures.stats_of(*each) for each in _summary.named_arrays(content)]
