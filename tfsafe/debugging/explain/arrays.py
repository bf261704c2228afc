"""Finds the arrays of the program that NaN comes from."""

import sys
import traceback
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfsafe.debugging import values
from tfsafe.debugging.tracing.origins import Origin
from tfsafe.graph import is_user_file

# An array of more elements is not searched.
_LARGEST = 10**9


class Source(NamedTuple):
    """An array of the program.

    Attributes:
      name: The variable that holds it.
      row: Number of the row with the non-finite values.
    """

    name: str
    row: int


def holding(origin: Origin) -> Source | None:
    """Returns the array that the first non-finite row of a batch was taken from.

    It has more rows than the batch; of several, as of all data and those to train on,
    it is the one with the fewest rows.
    """
    batch = values.numbers(origin.value)
    if batch.ndim < 2 or batch.dtype.kind != "f":
        return None
    number, *_ = values.first(~np.isfinite(batch))
    row = batch[number]
    # A row of NaN alone is like any other.
    if not np.isfinite(row).any():
        return None
    found = [
        (len(array), Source(name, index))
        for name, array in _arrays()
        if array.shape[1:] == row.shape and len(array) > len(batch)
        for index in _rows(array, row, values.array(origin.value).dtype)
    ]
    return min(found, default=(0, None), key=lambda each: each[0])[1]


def has_gaps(feature: int) -> bool:
    """Returns whether an array of the program has NaN in part of a feature's rows."""
    for _, array in _arrays():
        if array.shape[-1] > feature:
            is_nan = np.isnan(array[..., feature])
            if is_nan.any() and not is_nan.all():
                return True
    return False


def is_constant(feature: int, features: int) -> bool:
    """Returns whether a feature is the same in all rows of an array with so many."""
    return any(
        len(array) > 1
        and array.shape[-1] == features
        and np.ptp(array[..., feature]) == 0
        for _, array in _arrays()
    )


def _rows(array: np.ndarray, row: np.ndarray, dtype: np.dtype) -> Iterator[int]:
    """Yields the first row of an array that is equal to a row with NaN."""
    axes = tuple(range(1, array.ndim))
    for index in np.flatnonzero(~np.isfinite(array).all(axes)):
        cast = array[index].astype(dtype).astype(row.dtype)
        if np.array_equal(cast, row, equal_nan=True):
            yield int(index)
            return


def _arrays() -> Iterator[tuple[str, np.ndarray]]:
    """Yields the arrays and tables of the functions that are being called."""
    for frame, _ in traceback.walk_stack(sys._getframe()):
        if is_user_file(frame.f_code.co_filename):
            for name, value in {**frame.f_globals, **frame.f_locals}.items():
                array = None if name.startswith("_") else _array(value)
                if array is not None:
                    yield name, array


def _array(value: Any) -> np.ndarray | None:
    """Returns what an array, a tensor or a table of numbers holds; None for others."""
    if type(value).__module__.startswith("pandas.") and hasattr(value, "to_numpy"):
        value = value.to_numpy()
    elif isinstance(value, tf.Tensor) and hasattr(value, "numpy"):
        value = values.numbers(value) if values.is_float(value) else None
    is_array = isinstance(value, np.ndarray) and value.dtype.kind == "f"
    return value if is_array and value.ndim > 1 and value.size < _LARGEST else None
