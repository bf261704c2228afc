"""Rewriting the formulas of traced functions into their stable form."""

from tfsafe.rewriting._report import Change, Report
from tfsafe.rewriting._stabilize import stabilize

__all__ = ["Change", "Report", "stabilize"]
