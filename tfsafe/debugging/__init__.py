"""Finding the operation, the line and the cause of the first NaN or Inf."""

from tfsafe.debugging._checked import checked

__all__ = ["checked"]
