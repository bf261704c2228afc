"""Finding the operation, the line and the cause of the first NaN or Inf."""

from tfsafe.debugging._checked import checked
from tfsafe.debugging._plot import plot
from tfsafe.debugging._report import report
from tfsafe.debugging._retain import retain, retain_gradients
from tfsafe.debugging._summary import Summaries, Summary, summarize
from tfsafe.debugging._switch import (
    check_numerics,
    disable_check_numerics,
    enable_check_numerics,
)

__all__ = [
    "Summaries",
    "Summary",
    "check_numerics",
    "checked",
    "disable_check_numerics",
    "enable_check_numerics",
    "plot",
    "report",
    "retain",
    "retain_gradients",
    "summarize",
]
