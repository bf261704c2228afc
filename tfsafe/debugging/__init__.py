"""Finding the operation, the line and the cause of the first NaN or Inf."""

from tfsafe._report.records import TensorStats
from tfsafe.debugging.capsule.replay import replay
from tfsafe.debugging.checks.checked import checked
from tfsafe.debugging.checks.switch import (
    check_numerics,
    disable_check_numerics,
    enable_check_numerics,
)
from tfsafe.debugging.inspection.plot import plot
from tfsafe.debugging.inspection.retain import retain, retain_gradients
from tfsafe.debugging.inspection.summary import Summaries, report, summarize

__all__ = [
    "Summaries",
    "TensorStats",
    "check_numerics",
    "checked",
    "disable_check_numerics",
    "enable_check_numerics",
    "plot",
    "replay",
    "report",
    "retain",
    "retain_gradients",
    "summarize",
]
