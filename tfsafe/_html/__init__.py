"""The report as a web page, made of plain data by nothing but Python."""

from tfsafe._html._page import of_findings, of_tensors, write

__all__ = ["of_findings", "of_tensors", "write"]
