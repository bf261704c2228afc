"""Finds what makes the data of a failed step: an operation of a map, or Python."""

import contextlib
import inspect
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

import keras
import tensorflow as tf

from tfsafe import _compat
from tfsafe._faults import contained
from tfsafe._report import caller
from tfsafe._report.text import capital, listed
from tfsafe.debugging.checks.options import Options
from tfsafe.debugging.checks.traced.compiled import CompiledCheck
from tfsafe.debugging.explain.outside import FROM_NUMPY
from tfsafe.errors import Finding, NumericsError, Site
from tfsafe.graph import is_user_file, locate

# Seconds that the search may take, and elements that it looks at however long that is:
# TensorFlow may wait as long for another dataset to end.
_LIMIT = 5.0
_FEW = 16
_CHECKED = "check_finite(x, "
_PART = "check_finite(itertools.islice(x, 100), "


def note(error: NumericsError, data: object) -> None:
    """Adds to an error that names an argument what makes the data.

    The functions that a dataset maps are called again, on its elements in order. If
    one of them calls Python, as `tf.py_function` does, nothing is called.

    Args:
      error: The error of a training step.
      data: What `fit` trains on.
    """
    first = error.findings[0] if error.findings else None
    if first is None or not first.origin.startswith("argument "):
        return
    if isinstance(data, tf.data.Dataset):
        with contained("the search in `Dataset.map`"):
            found = _found(data)
            if found is not None:
                finding, place = found
                error.add_source(
                    finding,
                    f"{place}; the training step received it as {first.origin}.",
                )
                return
    with contained("the search for the Python that makes the data"):
        if places := list(dict.fromkeys(each.short_place for each in _python(data))):
            error.add_cause(f"Python makes the data, at {listed(places)}.")
            words = f"{first.suggestion} {capital(FROM_NUMPY)}"
            code = first.suggested_code
            if isinstance(data, types.GeneratorType):
                # It may have no end.
                code = code.replace(_CHECKED, _PART)
            error.change_first(suggested_code=code, suggestion=words)


@contextlib.contextmanager
def named() -> Iterator[None]:
    """Adds to an error of a call what makes the data of the user's loop around it."""
    try:
        yield
    except NumericsError as error:
        with contained("the search for the data of a loop"):
            note(error, caller.looped_over(is_user_file))
        raise


def _python(data: object) -> Iterator[Site]:
    """Yields where the functions begin, or are called, that make data in Python."""
    if isinstance(data, tf.data.Dataset):
        for op in _compat.python_calls(data):
            if site := locate(op).site:
                yield site
    elif isinstance(data, types.GeneratorType):
        yield _begin(data.gi_code)
    elif isinstance(data, keras.utils.PyDataset):
        method = inspect.unwrap(type(data).__getitem__)
        yield _begin(method.__code__)


def _begin(code: types.CodeType) -> Site:
    return Site(code.co_filename, code.co_firstlineno, code.co_name, "")


def _found(
    data: tf.data.Dataset, end: float | None = None
) -> tuple[Finding, str] | None:
    """Returns the first operation that makes non-finite values, and the element."""
    end = end or time.monotonic() + _LIMIT
    for source, function, method in _compat.mapped(data):
        check = CompiledCheck(tf.function(_numbers(function)), options=Options())
        for number, element in enumerate(source):
            place = f"element {number} of the data of `Dataset.{method}`"
            arguments = element if isinstance(element, tuple) else (element,)
            try:
                check(*arguments)
            except NumericsError as error:
                if error.findings and error.findings[0].op_type:
                    return error.findings[0], place
            if method != "map":
                within = _found(function(*arguments), end)
                if within is not None:
                    finding, inner = within
                    return finding, f"{inner}, within {place}"
            if number >= _FEW and time.monotonic() > end:
                return None
    return None


def _numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns what a function of a dataset makes; of a dataset, what fills it."""

    def numbers(*element: Any) -> Any:
        made = _compat.as_converted(function)(*element)
        is_dataset = isinstance(made, tf.data.Dataset)
        return _compat.given_tensors(made) if is_dataset else made

    return numbers
