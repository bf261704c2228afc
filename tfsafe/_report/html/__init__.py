"""The report as a web page, made of plain data by nothing but Python."""

from tfsafe._report.html._page import (
    Context,
    fragment_of_findings,
    fragment_of_table,
    of_findings,
    of_tensors,
    write,
)

__all__ = [
    "Context",
    "fragment_of_findings",
    "fragment_of_table",
    "of_findings",
    "of_tensors",
    "write",
]
