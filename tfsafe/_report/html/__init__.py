"""The report as a web page, made of plain data by nothing but Python.

`_page` puts the parts in order, the other modules draw one part each.

May import: the rest of `_report`. Example: `write(of_findings(found, text), path)`.
"""

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
