"""The rows of a `Numerics` block, which are the rows of the edge tests."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tests.support.oracle import assert_close

NAN = float("nan")
INF = float("inf")


def documented(op: Callable[..., Any]) -> list[str]:
    """Returns the left column of the `Numerics` block of `op`, without the errors."""
    # `getdoc` takes the indentation off, as Python 3.13 does by itself.
    block = inspect.getdoc(op).split("Numerics:\n")[1].split("\n\n")[0]
    rows = re.findall(r"^ {2}(\S.*?)  +\S", block, re.MULTILINE)
    return [row for row in rows if row != "error"]


# What is computed in float32 is rounded once.
_IN_HALF = {"float16": 1.0, "bfloat16": 0.51}


def assert_rounded(got: Any, truth: Any) -> None:
    """Compares as `assert_close`, and in half precision more closely."""
    first = got
    while isinstance(first, list | tuple):
        first = first[0]
    dtype = tf.as_dtype(getattr(first, "dtype", "float64"))
    assert_close(got, truth, _IN_HALF.get(dtype.name, 4))
