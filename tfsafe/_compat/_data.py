"""Reads the data of a running `fit`, and what a `tf.data.Dataset` is made of."""

import sys
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import tensorflow as tf


class Fit(NamedTuple):
    """A `fit`, `evaluate` or `predict` that is running.

    Attributes:
      data: Its argument `x`.
      epoch: The epoch, from 0; None but in `fit`.
      batch: The first batch of the call under way, from 0; None where not known.
    """

    data: Any
    epoch: int | None
    batch: int | None


def running_fit(model: Any, method: str = "fit") -> Fit | None:
    """Returns the `fit` of a model that is on this thread's stack, or None.

    So too its `evaluate` or `predict`, if `method` names one.

    The locals `x`, `epoch`, `begin_step` and `epoch_iterator` of Keras' trainer, tried
    with Keras 3.3.3 and 3.15.1. A callback receives the numbers, but not the data.
    """
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        names = frame.f_locals if frame.f_code.co_name == method else {}
        needed = {"epoch_iterator", "epoch"} if method == "fit" else {"epoch_iterator"}
        if names.get("self") is model and needed <= set(names):
            batch = names.get("begin_step", names.get("step"))
            return Fit(names.get("x"), names.get("epoch"), batch)
        frame = frame.f_back
    return None


Mapped = tuple["tf.data.Dataset", Callable[..., Any]]


def mapped(dataset: "tf.data.Dataset") -> list[Mapped]:
    """Returns the functions that a dataset maps, the first one first, and their data.

    `_input_dataset`, `_map_func` and `_func`, tried with TensorFlow 2.16.1 and 2.21.0.
    Empty where a function of the dataset calls Python, which might have an effect.
    """
    found = []
    for each in _parts(dataset):
        wrapper = getattr(each, "_map_func", None)
        if wrapper is None:
            continue
        operations = wrapper.function.graph.get_operations()
        if any("PyFunc" in operation.type for operation in operations):
            return []
        if type(each).__name__ in {"_MapDataset", "_ParallelMapDataset"}:
            found.append((each._input_dataset, wrapper._func))
    return found[::-1]


def _parts(dataset: Any) -> Iterator[Any]:
    while dataset is not None:
        yield dataset
        dataset = getattr(dataset, "_input_dataset", None)
