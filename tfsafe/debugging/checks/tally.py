"""Marks and counts checked calls: only the outermost of a thread is checked.

The count is for the last line of `tfsafe run`.
"""

import contextlib
import threading
from collections.abc import Iterator

from tfsafe.errors import Site

_LOCAL = threading.local()


def is_inside() -> bool:
    """Returns whether this thread is inside a checked call."""
    return getattr(_LOCAL, "depth", 0) > 0


@contextlib.contextmanager
def entered() -> Iterator[None]:
    """Marks what runs within as the inside of a checked call."""
    _LOCAL.depth = getattr(_LOCAL, "depth", 0) + 1
    try:
        yield
    finally:
        _LOCAL.depth -= 1


class Tally:
    """Number of steps whose results were looked at.

    Attributes:
      failed: Number of errors that the checks have raised.
      infinity: The operation, and its line, that began the first infinite result of a
        step that passed.
      notes_infinities: Whether a last line will name it.
    """

    def __init__(self) -> None:
        self.notes_infinities = False
        self.begin()

    def begin(self) -> None:
        """Starts to count from 0."""
        self.calls = self.gradients = self.failed = 0
        self.infinity: tuple[str, Site | None] | None = None

    @property
    def steps(self) -> int:
        """The gradients that eager code took, or the calls of functions if more.

        A step of an eager loop calls functions as well; a compiled one takes no
        gradient in eager code, but the program may do so after it.
        """
        return max(self.gradients, self.calls)


TALLY = Tally()
