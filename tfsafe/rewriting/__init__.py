"""Rewriting the formulas of traced functions into their stable form."""

from tfsafe.rewriting.reports.report import Change, Report
from tfsafe.rewriting.targets.stabilize import stabilize

__all__ = ["Change", "Report", "stabilize"]
