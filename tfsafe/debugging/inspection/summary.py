"""What tensors hold, as a table: finite range, and the shares that deserve a look."""

import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfsafe import _compat
from tfsafe._limits import LIMITS
from tfsafe.debugging.tracing import values

_HEADER = ("tensor", "shape", "dtype", "min", "max", "mean", "first bad")
# Shares that get a column of their own where one of them is not 0.
_SHARES = {
    "nan": "NaN",
    "posinf": "+Inf",
    "neginf": "-Inf",
    "zero": "zeros",
    "subnormal": "subnormal",
}


@dataclasses.dataclass(frozen=True)
class Summary:
    """What one tensor holds.

    Attributes:
      path: Where it stands in the structure.
      shape: Its shape.
      dtype: Name of its dtype.
      min: Smallest finite element; of the moduli, if complex. None without any.
      max: Largest finite element, likewise.
      mean: Mean of the finite elements in float64, likewise.
      nan: Share of NaN, from 0 to 1.
      posinf: Share of +Inf; of any infinity, if complex.
      neginf: Share of -Inf.
      zero: Share of zeros.
      subnormal: Share of numbers so small that they lose digits, or are flushed to 0.
      first_bad: Index of the first NaN or Inf; None without any.
    """

    path: str
    shape: tuple[int, ...]
    dtype: str
    min: float | None
    max: float | None
    mean: float | None
    nan: float
    posinf: float
    neginf: float
    zero: float
    subnormal: float
    first_bad: tuple[int, ...] | None


class Summaries(tuple[Summary, ...]):
    """The summaries of a structure's tensors, in its order; prints as a table."""

    @property
    def bad(self) -> "Summaries":
        """Those with a NaN or an Inf."""
        return Summaries(each for each in self if each.first_bad is not None)

    def __str__(self) -> str:
        shares = [s for s in _SHARES if any(getattr(each, s) for each in self)]
        head = [*_HEADER[:-1], *(_SHARES[s] for s in shares), _HEADER[-1]]
        rows = [head, *(_cells(each, shares) for each in self)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        # Names to the left, figures to the right.
        return "\n".join(
            "  ".join(
                cell.ljust(width) if place < 3 else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        )

    __repr__ = __str__


def summarize(structure: Any) -> Summaries:
    """Says what every tensor of a structure holds.

    Args:
      structure: Tensor, variable or NumPy array of any shape and numeric dtype, nested
        dicts, lists and tuples of these, or a Keras model, whose weights are meant. Of
        a sparse or ragged tensor and of `tf.IndexedSlices` the values count. None, such
        as the gradient of a variable that the loss does not depend on, and strings are
        left out. For the gradients of a model give them names:
        `{v.path: g for v, g in zip(model.trainable_variables, gradients)}`.

    Returns:
      One `Summary` for each tensor. It prints as a table, with a column for each kind
      of share (NaN, infinities, zeros, subnormal numbers) that occurs; `.bad` holds
      those with a NaN or an Inf.

    Raises:
      TypeError: If a tensor has no values yet, as while a `tf.function` is traced.

    Numerics:
      NaN, Inf: counted, and left out of `min`, `max` and `mean`.
      mean: in float64, scaled by the largest magnitude, so that it does not overflow.
      no finite element: `min`, `max` and `mean` are None.

    Examples:
      >>> from tfsafe.debugging import summarize
      >>> print(summarize({"kernel": np.array([[1, np.nan], [3, 0]]), "bias": [2.0]}))
      tensor   shape  dtype    min  max   mean   NaN  zeros  first bad
      kernel   2x2    float64    0    3  1.333  25 %   25 %     (0, 1)
      bias[0]  -      float64    2    2      2     -      -          -
    """
    return Summaries(_summary(path, leaf) for path, leaf in named_arrays(structure))


def named_arrays(structure: Any) -> Iterator[tuple[str, np.ndarray]]:
    """Yields the tensors of a structure, each with its path."""
    if isinstance(structure, keras.Model | keras.Layer):
        structure = {weight.path: weight for weight in structure.weights}
    whole = "" if isinstance(structure, dict | list | tuple) else "tensor"
    by_path = itertools.groupby(values.leaves(structure, whole), lambda leaf: leaf[0])
    for path, leaves in by_path:
        arrays = [array_of(leaf, "summarize") for _, leaf in leaves if leaf is not None]
        # Of a sparse or ragged tensor the values, not the integers that place them.
        placed = len(arrays) > 1
        for array in arrays:
            if array.dtype.kind in ("fcV" if placed else "biufcV"):
                yield _plain(path), array


def array_of(tensor: Any, caller: str) -> np.ndarray:
    """Returns the values of a tensor, variable or array.

    Raises:
      TypeError: If it has none yet.
    """
    if _compat.is_keras_variable(tensor):
        tensor = tensor.value
    if tf.is_tensor(tensor) and not hasattr(tensor, "numpy"):
        raise TypeError(
            f"`{caller}` needs tensors with values. Received: {tensor}, which is "
            "symbolic. Return it from the `tf.function` and look at it outside, or put "
            "`tfsafe.checked` around the function."
        )
    return np.asarray(tensor)


def real_numbers(array: np.ndarray) -> np.ndarray:
    """Returns an array in float64, the moduli if it is complex."""
    if np.iscomplexobj(array):
        return np.where(np.isnan(array), np.nan, np.abs(array))
    return array.astype(np.float64)


def mean(finite: np.ndarray) -> float | None:
    """Returns the mean of finite numbers, which no sum of them overflows."""
    scale = float(np.abs(finite).max(initial=0.0)) or 1.0
    return float(np.mean(finite / scale)) * scale if finite.size else None


def _plain(path: str) -> str:
    """Drops the brackets of a name that stands alone: `['kernel']` is `kernel`."""
    head, bracket, rest = path.partition("']")
    return head.removeprefix("['") + rest if bracket else path


def _summary(path: str, array: np.ndarray) -> Summary:
    name = array.dtype.name
    bad = ~np.isfinite(array)
    real = real_numbers(array)
    finite = real[~bad]
    tiny = LIMITS[name].tiny if name in LIMITS else 0.0
    count = max(array.size, 1)
    return Summary(
        path,
        array.shape,
        name,
        float(finite.min()) if finite.size else None,
        float(finite.max()) if finite.size else None,
        mean(finite),
        float(np.isnan(real).sum()) / count,
        float(np.isposinf(real).sum()) / count,
        float(np.isneginf(real).sum()) / count,
        float((finite == 0).sum()) / count,
        float(((finite != 0) & (np.abs(finite) < tiny)).sum()) / count,
        values.first(bad) if bad.any() else None,
    )


def _cells(summary: Summary, shares: list[str]) -> list[str]:
    return [
        summary.path,
        "x".join(map(str, summary.shape)) or "-",
        summary.dtype,
        *(_figure(getattr(summary, name)) for name in ("min", "max", "mean")),
        *(percent(getattr(summary, name)) for name in shares),
        str(summary.first_bad or "-") if summary.first_bad != () else "()",
    ]


def _figure(number: float | None) -> str:
    return "-" if number is None else f"{number:.4g}"


def percent(share: float) -> str:
    """Writes a share so that neither 0 nor 100 % is ever a rounded number."""
    if share == 0:
        return "-"
    if share < 1e-4:
        return "<0.01 %"
    return f"{min(share * 100, 100 if share == 1 else 99.99):.4g} %"
