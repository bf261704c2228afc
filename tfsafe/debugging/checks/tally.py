"""Marks and counts checked calls: only the outermost of a thread is checked.

The count is for the last line of `tfsafe run`.
"""

import contextlib
import threading
from collections.abc import Iterator
from typing import NamedTuple

from tfsafe.errors import Site

# An operation and its line, if that is known.
Place = tuple[str, Site | None]
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


class Measured(NamedTuple):
    """Measures that are not finite, on which no training depends.

    Attributes:
      kind: `"NaN"` or `"an infinity"`.
      names: What they are called.
      began: Where it began; None if that is not known.
    """

    kind: str
    names: str
    began: Place | None

    def __str__(self) -> str:
        if self.began is None:
            return f"{self.kind} is in {self.names} alone"
        operation, site = self.began
        line = f" at {site.short_place}" if site else ""
        return f"`{operation}`{line} makes {self.kind}, which is in {self.names} alone"


class Tally:
    """Number of steps whose results were looked at.

    Attributes:
      failed: Number of errors that the checks have raised.
      infinity: The operation, and its line, that began the first infinite result of a
        step that passed.
      given: The argument, and the line that reads it, whose infinities such a step
        passed on.
      written: The same of NaN that the program writes.
      measured: The first measures of such a step that were not finite.
      notes_infinities: Whether a last line will name them.
    """

    def __init__(self) -> None:
        self.notes_infinities = False
        self.begin()

    def begin(self) -> None:
        """Starts to count from 0."""
        self.calls = self.gradients = self.failed = 0
        self.infinity: Place | None = None
        self.given: Place | None = None
        self.written: Place | None = None
        self.measured: Measured | None = None

    def note(self, measured: Measured) -> None:
        """Notes measures that are not finite."""
        self.measured = self.measured or measured

    @property
    def steps(self) -> int:
        """The gradients that eager code took, or the calls of functions if more.

        A step of an eager loop calls functions as well; a compiled one takes no
        gradient in eager code, but the program may do so after it.
        """
        return max(self.gradients, self.calls)


TALLY = Tally()
