"""Data as a suspect: what is not finite, or not a number, before a model sees it."""

from tfsafe.data.checks.check import check_finite
from tfsafe.data.faults.report import DataFinding, DataReport, Feature

__all__ = ["DataFinding", "DataReport", "Feature", "check_finite"]
