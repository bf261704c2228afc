"""Finding the operation, the line and the cause of the first NaN or Inf."""

from tfsafe.debugging._checked import checked
from tfsafe.debugging._plot import plot
from tfsafe.debugging._summary import Summaries, Summary, summarize

__all__ = ["Summaries", "Summary", "checked", "plot", "summarize"]
