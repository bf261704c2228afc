"""The same three rows with one NaN, in every kind of container."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import tensorflow as tf

# Row 1 is bad, in its last value.
BAD_ROW = 1
VALUES = [1.0, np.nan, 4.0]
MEAN = 2.5


def _structured(values: list[float]) -> np.ndarray:
    array = np.zeros(len(values), [("age", "f4"), ("id", "i4")])
    array["age"], array["id"] = values, range(len(values))
    return array


def _ragged(values: list[float]) -> tf.RaggedTensor:
    return tf.ragged.constant([[7.0] * row + [v] for row, v in enumerate(values)])


def frame(values: list[float]) -> pd.DataFrame:
    """Returns a frame with an index of its own."""
    return pd.DataFrame({"age": values, "sex": ["f", "m", "f"]}, index=[7, 8, 9])


def _sparse(values: list[float]) -> tf.SparseTensor:
    indices = [[row, 2] for row in range(len(values))]
    return tf.SparseTensor(indices, values, [len(values), 5])


@dataclasses.dataclass(frozen=True)
class Case:
    """A kind of container.

    Attributes:
      name: Of the kind.
      make: Makes one of a list of numbers, one for each row.
      read: Returns that list again.
      path: What its feature is called.
    """

    name: str
    make: Callable[[list[float]], Any]
    read: Callable[[Any], Any]
    path: str = "x"

    def __str__(self) -> str:
        return self.name


def _of_dtype(dtype: Any) -> Case:
    def make(values: list[float]) -> np.ndarray:
        return np.array(values).astype(dtype)

    name = f"array of {np.dtype(dtype).name}"
    return Case(name, make, lambda a: a.astype("f8"))


CASES = [
    *map(_of_dtype, ["f2", "f4", "f8", np.longdouble, tf.bfloat16.as_numpy_dtype]),
    Case("objects", lambda v: np.array(v, object), lambda a: a.astype("f8")),
    Case("text", lambda v: np.array([str(n) for n in v]), lambda a: a.astype("f8")),
    Case("list", list, list),
    Case("rows", lambda v: np.array(v)[:, None], lambda a: a[:, 0], "x[:, 0]"),
    Case(
        "images",
        lambda v: np.asfortranarray(np.array(v)[:, None, None] * np.ones((2, 1))),
        lambda a: a[:, 1, 0],
        "x[..., 0]",
    ),
    Case("structured", _structured, lambda a: a["age"], 'x["age"]'),
    Case("complex", lambda v: np.array(v) + 1j, lambda a: a.real, "x.real"),
    Case("tensor", lambda v: tf.constant(v, tf.float16), lambda t: t.numpy()),
    Case("ragged", _ragged, lambda t: np.array([row[-1] for row in t])),
    Case("sparse", _sparse, lambda t: t.values.numpy()),
    Case(
        "frame",
        frame,
        lambda f: f["age"].to_numpy(),
        'x["age"]',
    ),
    Case("series", pd.Series, lambda s: s.to_numpy()),
    Case(
        "nullable series",
        lambda v: pd.Series(v).astype("Float64"),
        lambda s: s.to_numpy("f8"),
    ),
    Case("dict", lambda v: {"age": np.array(v)}, lambda d: d["age"], 'x["age"]'),
    Case("nest", lambda v: {"a": [np.array(v)]}, lambda d: d["a"][0], 'x["a"][0]'),
]
