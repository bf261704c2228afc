"""Rewriting the formulas of traced functions into their stable form."""

from tfsafe.rewriting.reports.report import Change, Report
from tfsafe.rewriting.targets.stabilize import stabilize
from tfsafe.rewriting.targets.switch import disable_stabilize, enable_stabilize

__all__ = ["Change", "Report", "disable_stabilize", "enable_stabilize", "stabilize"]
