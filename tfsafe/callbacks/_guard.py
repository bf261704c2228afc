"""Finds the `SafeOptimizer` of a model, under the wrappers that Keras adds."""

from typing import Any

from tfsafe.optimizers import SafeOptimizer


def find(optimizer: Any) -> SafeOptimizer | None:
    """Returns the `SafeOptimizer` that an optimizer is or wraps, or None."""
    while not (optimizer is None or isinstance(optimizer, SafeOptimizer)):
        optimizer = getattr(optimizer, "inner_optimizer", None)
    return optimizer
