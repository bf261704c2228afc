"""Finds the line in `Dataset.map` that made the non-finite values of a batch."""

import time

import tensorflow as tf

from tfsafe import _compat
from tfsafe._faults import contained
from tfsafe.debugging.checks.options import Options
from tfsafe.debugging.checks.traced.compiled import CompiledCheck
from tfsafe.errors import Finding, NumericsError

# Seconds that the search may take.
_LIMIT = 5.0


def note(error: NumericsError, data: object) -> None:
    """Adds the operation in `Dataset.map` to an error that names an argument.

    The functions that the dataset maps are called again, on its elements in order. If
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
                finding, element = found
                error.add_source(
                    finding,
                    f"element {element} of the data of `Dataset.map`; the training "
                    f"step received it as {first.origin}.",
                )


def _found(data: tf.data.Dataset) -> tuple[Finding, int] | None:
    """Returns the first operation that makes non-finite values, and the element."""
    end = time.monotonic() + _LIMIT
    for source, function in _compat.mapped(data):
        check = CompiledCheck(tf.function(function), options=Options())
        for number, element in enumerate(source):
            try:
                check(*element) if isinstance(element, tuple) else check(element)
            except NumericsError as error:
                if error.findings and error.findings[0].op_type:
                    return error.findings[0], number
            if time.monotonic() > end:
                return None
    return None
