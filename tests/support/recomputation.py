"""Checks every value that a gradient keeps from the forward pass against its formula.

`known(value, function, *args)` promises that `value` is `function(*args)`, and runs the
function only for the gradient of the gradient. Most tests never get there, so that a
wrong formula would pass them. Here each eager call runs the function at once.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import tensorflow as tf

import tfsafe.ops  # noqa: F401
from tfsafe import _gradients as module

# In units of the last place of the largest element: the two formulas round differently.
BUDGET = 16.0

_known = module.known


class WrongRecomputationError(AssertionError):
    """A formula for the gradient of the gradient gives another value."""


def checked_known(
    value: tf.Tensor, function: Callable[..., tf.Tensor], *args: tf.Tensor
) -> tf.Tensor:
    """Is `known`, and compares in eager mode."""
    if tf.executing_eagerly() and all(map(_is_eager, [value, *args])):
        # Constants: nothing of this is to reach a tape.
        again = function(*(tf.constant(each.numpy()) for each in args))
        has_inf = any(np.isinf(each.numpy()).any() for each in args)
        _compare(value.numpy(), again.numpy(), function, has_inf)
    return _known(value, function, *args)


def _is_eager(tensor: Any) -> bool:
    return hasattr(tensor, "numpy") and not tf.is_symbolic_tensor(tensor)


def _compare(
    value: Any, again: Any, function: Callable[..., Any], has_inf: bool
) -> None:
    if not value.size:
        return
    gap = np.finfo(value.dtype).eps
    finite = np.abs(value[np.isfinite(value)])
    scale = finite.max(initial=np.finfo(value.dtype).tiny / gap)
    with np.errstate(invalid="ignore"):
        difference = np.abs(value - again)
    is_same = (value == again) | (np.isnan(value) & np.isnan(again))
    is_same |= difference <= BUDGET * gap * scale
    if has_inf:
        # A second gradient may not exist at an infinity.
        is_same |= np.isnan(again)
    if not is_same.all():
        wrong = ~is_same
        name = f"{function.__module__}.{function.__qualname__}"
        raise WrongRecomputationError(
            f"{name} gives {again[wrong][:5]} for the known value {value[wrong][:5]}, "
            f"in a tensor whose largest element is {scale}."
        )


@contextmanager
def check_recomputations() -> Iterator[None]:
    """Replaces `known` in every module that imported it."""
    importers = [
        each
        for name, each in sorted(sys.modules.items())
        if name.startswith("tfsafe.") and getattr(each, "known", None) is _known
    ]
    assert importers
    for each in importers:
        each.known = checked_known
    try:
        yield
    finally:
        for each in importers:
            each.known = _known
