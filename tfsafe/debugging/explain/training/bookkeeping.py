"""Knows the variables of Keras' metrics and optimizers, which only repeat others."""

import contextlib
from collections.abc import Iterable, Iterator

import keras

from tfsafe.debugging.explain.training.layers import alive
from tfsafe.debugging.state.variables import Slot, variables_in

# Labels of the variables in a capsule.
_REMEMBERED: set[str] = set()


def labels(slots: Iterable[Slot]) -> set[str]:
    """Returns the labels of those slots that belong to a metric or an optimizer.

    The metrics of a model repeat its loss, the slots of an optimizer its gradients.
    """
    handles = {
        id(variable.handle)
        for each in (*alive(keras.Metric), *alive(keras.Optimizer))
        # One whose `__init__` was refused has none.
        for variable in variables_in(list(getattr(each, "variables", ())))
    }
    return _REMEMBERED | {slot.label for slot in slots if id(slot.handle) in handles}


@contextlib.contextmanager
def remembered(those: Iterable[str]) -> Iterator[None]:
    """Makes the variables of a capsule known, as if their owners were alive.

    Args:
      those: What `labels` returned.
    """
    _REMEMBERED.update(those)
    try:
        yield
    finally:
        _REMEMBERED.clear()
