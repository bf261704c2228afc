"""Finds non-finite values and text in data, before a model sees them.

Knows arrays, frames, `tf.data` pipelines and generators, and what to do with their
faulty rows. `sources` reads the rows, `faults` finds the faults, `checks` applies a
policy. The first two may not import `checks`; all may import the modules at the root
of tfsafe.

Example: `check_finite((x, y), policy="drop")` surveys all columns once, and returns
the rows without errors.
"""

from tfsafe.data.checks.check import check_finite
from tfsafe.data.faults.report import DataFinding, DataReport, Feature

__all__ = ["DataFinding", "DataReport", "Feature", "check_finite"]
