"""Knows whether this thread is inside a checked call: only the outermost is checked."""

import contextlib
import threading
from collections.abc import Iterator

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
