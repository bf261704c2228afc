"""The rows of a `Numerics` block, which are the rows of the edge tests."""

import inspect
import re
from collections.abc import Callable
from typing import Any

NAN = float("nan")
INF = float("inf")


def documented(op: Callable[..., Any]) -> list[str]:
    """Returns the left column of the `Numerics` block of `op`, without the errors."""
    # `getdoc` takes the indentation off, as Python 3.13 does by itself.
    block = inspect.getdoc(op).split("Numerics:\n")[1].split("\n\n")[0]
    rows = re.findall(r"^ {2}(\S.*?)  +\S", block, re.MULTILINE)
    return [row for row in rows if row != "error"]
