"""Reads the rows of arrays, tensors and frames as tables, and rebuilds them."""

import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from tfsafe.data.sources import structure
from tfsafe.data.sources.tables import Table

# For each table of a container: the mask to write to, and a value for each column.
Fill = tuple[np.ndarray, np.ndarray]


class Container(Protocol):
    """An object with rows."""

    rows: int

    def tables(self, path: str) -> list[Table]:
        """Returns its values, without a copy if they are stored in an array."""

    def take(self, keep: np.ndarray) -> Any:
        """Returns the same kind of object with the rows where `keep` is True."""

    def fill(self, fills: Sequence[Fill]) -> Any:
        """Returns the same kind of object with new values, one fill for each table."""


class Dense:
    """A NumPy array, or an object that converts to one and back."""

    def __init__(self, array: np.ndarray, back: Callable[[np.ndarray], Any]):
        self.array, self.back, self.rows = array, back, len(array)

    def tables(self, path: str) -> list[Table]:
        """Returns one table; two for complex numbers, one for each field."""
        return [
            Table(name, array, self.rows) for name, array in _fields(path, self.array)
        ]

    def take(self, keep: np.ndarray) -> Any:
        """Returns the rows where `keep` is True."""
        return self.back(self.array[keep])

    def fill(self, fills: Sequence[Fill]) -> Any:
        """Returns a copy with the new values."""
        array = _widened(self.array, fills)
        for (_, part), (mask, values) in zip(_fields("", array), fills, strict=True):
            _write(part, mask, values)
        return self.back(array)


class Ragged:
    """A `tf.RaggedTensor` of any ragged rank."""

    def __init__(self, tensor: tf.RaggedTensor):
        self.tensor, self.rows = tensor, int(tensor.nrows())

    def tables(self, path: str) -> list[Table]:
        """Returns the flat values."""
        levels = [
            (ids.numpy(), splits.numpy())
            for ids, splits in zip(
                self.tensor.nested_value_rowids(),
                self.tensor.nested_row_splits,
                strict=True,
            )
        ]
        owners = levels[-1][0]
        for ids, _ in reversed(levels[:-1]):
            owners = ids[owners]

        def index_of(position: int) -> tuple[int, ...]:
            index: list[int] = []
            for ids, splits in reversed(levels):
                row = int(ids[position])
                index.append(position - int(splits[row]))
                position = row
            return (position, *reversed(index))

        values = self.tensor.flat_values.numpy()
        empty = self.rows - len(np.unique(owners))
        return [
            Table(name, array, self.rows, owners, index_of, empty_rows=empty)
            for name, array in _fields(path, values)
        ]

    def take(self, keep: np.ndarray) -> Any:
        """Returns the rows where `keep` is True."""
        return tf.ragged.boolean_mask(self.tensor, keep)

    def fill(self, fills: Sequence[Fill]) -> Any:
        """Returns the same rows with new values."""
        return self.tensor.with_flat_values(_filled(self.tensor.flat_values, fills))


class Sparse:
    """A `tf.SparseTensor`; its implicit zeros do not count as values."""

    def __init__(self, tensor: tf.SparseTensor):
        self.tensor, self.rows = tensor, int(tensor.dense_shape[0])

    def tables(self, path: str) -> list[Table]:
        """Returns the stored values."""
        indices = self.tensor.indices.numpy()

        def index_of(position: int) -> tuple[int, ...]:
            return tuple(map(int, indices[position]))

        return [
            Table(name, array, self.rows, indices[:, 0], index_of, has_columns=False)
            for name, array in _fields(path, self.tensor.values.numpy())
        ]

    def take(self, keep: np.ndarray) -> Any:
        """Returns the rows where `keep` is True, moved up."""
        return take_sparse(self.tensor, tf.constant(keep))

    def fill(self, fills: Sequence[Fill]) -> Any:
        """Returns the same tensor with new values."""
        return self.tensor.with_values(_filled(self.tensor.values, fills))


class Column:
    """A pandas Series."""

    def __init__(self, series: Any):
        self.series, self.rows = series, len(series)

    def tables(self, path: str) -> list[Table]:
        """Returns the values; objects if pandas has its own type for them."""
        series = self.series
        if not isinstance(series.dtype, np.dtype):
            is_number = getattr(series.dtype, "kind", "O") in "biuf"
            plain = is_number and not series.isna().any()
            series = series if plain else series.astype(object)
            array = series.to_numpy(dtype=series.dtype.numpy_dtype if plain else object)
        else:
            array = series.to_numpy()
        return [Table(name, part, self.rows) for name, part in _fields(path, array)]

    def take(self, keep: np.ndarray) -> Any:
        """Returns the rows where `keep` is True, with their index."""
        return self.series[keep]

    def fill(self, fills: Sequence[Fill]) -> Any:
        """Returns a copy with the new values, of the same dtype."""
        ((mask, values),) = fills
        series, value = self.series, float(values[0])
        kind = getattr(series.dtype, "kind", "O")
        if kind in "iu":
            value = round(value)
        elif not isinstance(series.dtype, np.dtype) and kind == "O":
            # Text and categories of pandas do not accept numbers.
            series = series.astype(object)
        return series.mask(mask[:, 0], value)


class Frame:
    """A pandas DataFrame."""

    def __init__(self, frame: Any):
        self.frame, self.rows = frame, len(frame)
        self.series = [Column(frame.iloc[:, i]) for i in range(frame.shape[1])]

    def tables(self, path: str) -> list[Table]:
        """Returns one table for each column."""
        return [
            table
            for name, column in zip(self.frame.columns, self.series, strict=True)
            for table in column.tables(f"{path}[{structure.quoted(name)}]")
        ]

    def take(self, keep: np.ndarray) -> Any:
        """Returns the rows where `keep` is True, with their index."""
        return self.frame[keep]

    def fill(self, fills: Sequence[Fill]) -> Any:
        """Returns a copy with the new values."""
        frame = self.frame.copy()
        for number, column in enumerate(self.series):
            if fills[number][0].any():
                frame.isetitem(number, column.fill(fills[number : number + 1]))
        return frame


def container_of(value: Any, path: str) -> Container:
    """Returns the container of a leaf.

    Raises:
      TypeError: If the leaf has no values yet, or values of an unknown kind.
      ValueError: If it is a scalar, which has no rows.
    """
    if isinstance(value, tf.RaggedTensor):
        return Ragged(_with_values(value, value.flat_values, path))
    if isinstance(value, tf.SparseTensor):
        return Sparse(_with_values(value, value.values, path))
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(value, pandas.DataFrame):
        return Frame(value)
    if pandas is not None and isinstance(value, pandas.Series):
        return Column(value)
    if isinstance(value, str):
        raise ValueError(
            "check_finite takes data, not the name of a file. Received: "
            f"{path}={value!r}. Read the file first, for example "
            f"`check_finite(pandas.read_csv({value!r}))`."
        )
    if isinstance(value, int | float | complex | str | bytes) or (
        hasattr(value, "shape") and not len(value.shape)
    ):
        raise ValueError(
            f"check_finite takes data with rows along their first axis. Received: "
            f"{path}={value!r}, a scalar. Pass an array, such as `np.array([{value}])`."
        )
    return _dense(value, path)


def take_sparse(tensor: tf.SparseTensor, keep: tf.Tensor) -> tf.SparseTensor:
    """Returns the rows of a sparse tensor where `keep` is True, moved up."""
    stays = tf.gather(keep, tensor.indices[:, 0])
    kept = tf.sparse.retain(tensor, stays)
    new_row = tf.cumsum(tf.cast(keep, tf.int64), exclusive=True)
    rows = tf.gather(new_row, kept.indices[:, :1])
    count = tf.reduce_sum(tf.cast(keep, tf.int64))[tf.newaxis]
    return tf.SparseTensor(
        tf.concat([rows, kept.indices[:, 1:]], axis=1),
        kept.values,
        tf.concat([count, kept.dense_shape[1:]], axis=0),
    )


def _dense(value: Any, path: str) -> Dense:
    if isinstance(value, np.ndarray):
        return Dense(value, lambda array: array)
    if isinstance(value, list):
        return Dense(_from_list(value, path), lambda array: array.tolist())
    if tf.is_tensor(value):
        _with_values(value, value, path)
        return Dense(value.numpy(), tf.constant)
    if hasattr(value, "__array__") and hasattr(value, "shape"):
        return Dense(np.asarray(value), lambda array: array)
    raise TypeError(
        "check_finite takes a tf.data.Dataset, a keras PyDataset, a generator of "
        "batches, or arrays, tensors and DataFrames in tuples, lists and dicts. "
        f"Received: {path} of type {type(value).__name__}."
    )


def _from_list(value: list[Any], path: str) -> np.ndarray:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise TypeError(
            f"check_finite takes a list whose rows have the same length. Received: "
            f"{path}, a list of {len(value)} rows of several lengths. Rows of "
            "different lengths belong into a `tf.ragged.constant(rows)`."
        ) from error
    # NumPy turns the numbers of a mixed list into text.
    return np.asarray(value, object) if array.dtype.kind in "SU" else array


def _with_values(value: Any, tensor: Any, path: str) -> Any:
    if not hasattr(tensor, "numpy") or not tf.executing_eagerly():
        raise TypeError(
            f"check_finite reads values. Received: {path}, which has none yet because "
            "a tf.function is being traced. Check the data before it reaches the "
            "function, or the function itself with `@tfsafe.checked`."
        )
    return value


def _fields(path: str, array: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """Returns an array, or views of its fields and of its real and imaginary parts."""
    if array.dtype.names:
        return [
            found
            for name in array.dtype.names
            for found in _fields(f"{path}[{structure.quoted(name)}]", array[name])
        ]
    if array.dtype.kind == "c":
        return [(f"{path}.real", array.real), (f"{path}.imag", array.imag)]
    return [(path, array)]


def _filled(values: tf.Tensor, fills: Sequence[Fill]) -> tf.Tensor:
    return Dense(values.numpy(), tf.constant).fill(fills)


def _widened(array: np.ndarray, fills: Sequence[Fill]) -> np.ndarray:
    """Returns a copy; a copy of text has room for the new values."""
    if array.dtype.kind not in "SU":
        return array.copy()
    ((_, values),) = fills
    return array.astype(np.result_type(array, values.astype(array.dtype.kind)))


def _write(array: np.ndarray, mask: np.ndarray, values: np.ndarray) -> None:
    """Writes one value for each column of the last axis where `mask` is True."""
    new = np.broadcast_to(values, mask.shape).reshape(array.shape)
    where = mask.reshape(array.shape)
    array[where] = new[where].astype(array.dtype)
