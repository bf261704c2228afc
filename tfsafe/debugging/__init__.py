"""Finds the operation, the line and the cause of the first NaN or Inf.

`entry` has the public functions, `models` the checks of Keras models, `checks` those of
functions. A failed call is kept by `capsule`, followed by `tracing` and explained by
`explain`; `inspection` shows tensors, `state` restores variables, `values` knows what
is finite. Each may import those below it in `setup.cfg`, and `tfsafe.graph`.

Example: `checked(f)(x)` returns `f(x)`, or raises `NumericsError`.
"""

from tfsafe._report.records import TensorStats
from tfsafe.debugging.entry.checked import checked
from tfsafe.debugging.entry.replay import replay
from tfsafe.debugging.entry.switch import (
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
