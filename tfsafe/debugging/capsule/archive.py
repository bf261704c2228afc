"""Reads and writes the zip file of a capsule: arrays, JSON and graphs, without pickle.

A file of unknown origin may be of any size and hold anything: sizes are
compared with the limit before something is read, an array is read only if its header
says what its size is, and nothing is ever extracted to a path.
"""

import io
import itertools
import json
import math
import os
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfsafe import _compat

# Of the JSON and of each graph, whatever the limit of the arrays is.
_LARGEST_PART = 2**28
_MOST_PARTS = 10**5
_TEXT = "string"


class Writer:
    """Collects the parts of a capsule."""

    def __init__(self, max_bytes: int):
        self._max_bytes = max_bytes
        self._arrays: list[np.ndarray] = []
        self._bytes = 0
        self._parts: dict[str, bytes] = {}

    def array(self, value: Any) -> dict[str, Any]:
        """Adds a tensor or an array.

        Returns:
          What `Reader.array` finds it by.

        Raises:
          ValueError: If the arrays are larger than the limit.
        """
        array = _compat.host_array(value)
        number = len(self._arrays)
        if array.dtype.kind in "OSU":
            texts = [tf.compat.as_bytes(each) for each in array.ravel().tolist()]
            self._add(np.frombuffer(b"".join(texts), np.uint8))
            lengths = [len(each) for each in texts]
            record = {"dtype": _TEXT, "lengths": lengths}
        else:
            # NumPy's format knows the dtypes of NumPy alone.
            self._add(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
            record = {"dtype": tf.as_dtype(array.dtype).name}
        return {"array": number, "shape": list(array.shape), **record}

    def _add(self, array: np.ndarray) -> None:
        self._arrays.append(array)
        self._bytes += array.nbytes
        if self._bytes > self._max_bytes:
            raise ValueError(
                f"The variables and the batch take more than max_bytes="
                f"{self._max_bytes:,} bytes. Pass a larger `max_bytes`."
            )

    def json(self, name: str, data: Any) -> None:
        """Adds plain data."""
        self._parts[f"{name}.json"] = json.dumps(data).encode()

    def graph(self, number: int, data: bytes) -> None:
        """Adds a graph."""
        self._parts[f"graphs/{number}.pb"] = data

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the file; an interrupted write leaves an earlier file as it was."""
        unfinished = f"{os.fspath(path)}.part"
        with zipfile.ZipFile(unfinished, "w") as file:
            for name, data in self._parts.items():
                file.writestr(name, data, zipfile.ZIP_DEFLATED)
            # Weights hardly get any smaller.
            for number, array in enumerate(self._arrays):
                name = f"arrays/{number}.npy"
                with file.open(name, "w", force_zip64=True) as part:
                    np.lib.format.write_array(part, array, allow_pickle=False)
        os.replace(unfinished, path)


class Reader:
    """Reads a capsule.

    Raises:
      ValueError: If the file is not a capsule, or is too large.
    """

    def __init__(self, path: str | os.PathLike[str], max_bytes: int):
        if not isinstance(path, str | os.PathLike):
            raise TypeError(
                "`path` must be that of a file which `error.save` wrote, such as "
                f"'nan.zip'. Received: path={path!r:.80}."
            )
        self._path = os.fspath(path)
        self._file = self._opened()
        parts = self._file.infolist()
        self._sizes = {part.filename: part.file_size for part in parts}
        total = sum(part.file_size for part in parts)
        if len(parts) > _MOST_PARTS or total > max_bytes:
            raise self._refusal(
                f"has {len(parts):,} parts of {total:,} bytes, more than "
                f"max_bytes={max_bytes:,}. Pass a larger `max_bytes` if you know where "
                "it comes from"
            )

    def _opened(self) -> zipfile.ZipFile:
        try:
            return zipfile.ZipFile(self._path)
        except (zipfile.BadZipFile, OSError) as error:
            raise self._refusal(f"cannot be read: {error}") from None

    def _refusal(self, why: str) -> ValueError:
        return ValueError(
            f"A capsule is a file that `error.save` wrote. {self._path!r} {why}."
        )

    def json(self, name: str) -> Any:
        """Returns plain data."""
        try:
            return json.loads(self._part(f"{name}.json", _LARGEST_PART))
        except (ValueError, RecursionError) as error:
            raise self._refusal(f"has an unreadable {name}.json: {error}") from None

    def graph(self, number: int) -> bytes:
        """Returns a graph."""
        return self._part(f"graphs/{int(number)}.pb", _LARGEST_PART)

    def array(self, record: dict[str, Any]) -> np.ndarray:
        """Returns an array; see `Writer.array`."""
        name = f"arrays/{int(record['array'])}.npy"
        shape = tuple(int(size) for size in record["shape"])
        raw = self._raw(name)
        if record["dtype"] == _TEXT:
            return _texts(raw, record["lengths"], shape)
        dtype = tf.as_dtype(record["dtype"]).as_numpy_dtype
        if len(raw) != math.prod(shape) * np.dtype(dtype).itemsize:
            raise self._refusal(f"has an array {name} of another size than it says")
        return np.frombuffer(raw, dtype).reshape(shape)

    def _raw(self, name: str) -> bytes:
        data = self._part(name, self._sizes.get(name, 0))
        stream = io.BytesIO(data)
        try:
            version = np.lib.format.read_magic(stream)
            if version != (1, 0):
                raise self._refusal(f"has an array {name} of an unknown format")
            shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
        except ValueError as error:
            raise self._refusal(f"has an unreadable array {name}: {error}") from None
        raw = data[stream.tell() :]
        if dtype != np.uint8 or shape != (len(raw),):
            raise self._refusal(f"has an array {name} of another size than it says")
        return raw

    def _part(self, name: str, limit: int) -> bytes:
        if name not in self._sizes:
            raise self._refusal(f"has no {name}")
        if self._sizes[name] > limit:
            raise self._refusal(f"has a {name} of {self._sizes[name]:,} bytes")
        try:
            return self._file.read(name)
        except (
            zipfile.BadZipFile,
            NotImplementedError,
            OSError,
            RuntimeError,
        ) as error:
            raise self._refusal(f"is damaged: {error}") from None


def _texts(raw: bytes, lengths: Sequence[int], shape: tuple[int, ...]) -> np.ndarray:
    ends = np.cumsum([0, *lengths])
    texts = [raw[start:end] for start, end in itertools.pairwise(ends)]
    array = np.empty(len(texts), object)
    array[:] = texts
    return array.reshape(shape)
