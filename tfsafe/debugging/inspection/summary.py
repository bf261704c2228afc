"""Summarizes tensors as a table: finite range, and fractions that deserve a look."""

import itertools
import os
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfsafe import _compat
from tfsafe._limits import LIMITS
from tfsafe._report import html
from tfsafe._report.records import TensorStats
from tfsafe._report.text import counted
from tfsafe.debugging import values
from tfsafe.debugging.inspection import pictures
from tfsafe.errors import Finding

_HEADER = ("tensor", "shape", "dtype", "min", "max", "mean", "first non-finite")
# Counts that get a column of their own, as fractions, where one of them is not 0.
_COUNTS = {
    "nans": "NaN",
    "posinfs": "+Inf",
    "neginfs": "-Inf",
    "zeros": "zeros",
    "subnormals": "subnormal",
}


class Summaries(tuple[TensorStats, ...]):
    """The statistics of a structure's tensors, in its order; prints as a table."""

    @property
    def nonfinite(self) -> "Summaries":
        """Those with a NaN or an Inf."""
        return Summaries(each for each in self if each.nonfinite)

    def _repr_html_(self) -> str:
        """Shows the table in a notebook."""
        title = counted(len(self), "tensor") or "No tensors"
        return html.fragment_of_table(title, self._rows())

    def _rows(self) -> list[list[str]]:
        counts = [name for name in _COUNTS if any(getattr(each, name) for each in self)]
        head = [*_HEADER[:-1], *(_COUNTS[name] for name in counts), _HEADER[-1]]
        return [head, *(_cells(each, counts) for each in self)]

    def __str__(self) -> str:
        rows = self._rows()
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
    """Summarizes every tensor of a structure.

    Args:
      structure: Tensor, variable or NumPy array of any shape and numeric dtype, nested
        dicts, lists and tuples of these, or a Keras model or layer, in place of
        its weights. The values of a sparse or ragged tensor and of `tf.IndexedSlices`
        count. None inside a structure, such as the gradient of a variable that the
        loss does not depend on, and strings are skipped. To name the gradients of a
        model, pass
        `{v.path: g for v, g in zip(model.trainable_variables, gradients)}`.

    Returns:
      One `TensorStats` for each tensor. The result prints as a table, with a column
      for each of NaN, infinities, zeros and subnormal numbers that occurs, as a
      fraction; `.nonfinite` holds the tensors with a NaN or an Inf.

    Raises:
      TypeError: If a tensor has no values yet, as while a `tf.function` is traced; if
        `structure` is None, text or a function.

    Numerics:
      NaN, Inf: counted, and excluded from `min`, `max` and `mean`.
      mean: in float64, scaled by the largest magnitude, so that it does not overflow.
      no finite element: `min`, `max` and `mean` are None.

    Examples:
      >>> from tfsafe.debugging import summarize
      >>> print(summarize({"kernel": np.array([[1, np.nan], [3, 0]]), "bias": [2.0]}))
      tensor   shape  dtype    min  max   mean   NaN  zeros  first non-finite
      kernel   2x2    float64    0    3  1.333  25 %   25 %            (0, 1)
      bias[0]  -      float64    2    2      2     -      -                 -
    """
    return Summaries(stats_of(path, leaf) for path, leaf in named_arrays(structure))


def named_arrays(
    structure: Any, caller: str = "summarize"
) -> Iterator[tuple[str, np.ndarray]]:
    """Yields the tensors of a structure, each with its path.

    Args:
      structure: What `summarize` takes.
      caller: The public function that messages name.

    Raises:
      TypeError: If `structure` is None, text or a function.
      ValueError: If it is a layer that is not built.
    """
    is_function = callable(structure) and not isinstance(structure, keras.Layer)
    if structure is None or is_function or isinstance(structure, str | bytes):
        raise TypeError(
            f"`{caller}` needs numbers. Expected tensors, arrays, nested structures of "
            f"them, or a model. Received: {structure!r}."
        )
    if isinstance(structure, keras.Model | keras.Layer):
        if not structure.built:
            raise ValueError(
                "The weights of a layer are shown once it has some. Received: "
                f"{structure.name!r}, which is not built. Call it on data first."
            )
        structure = {weight.path: weight for weight in structure.weights}
    whole = "" if isinstance(structure, dict | list | tuple) else "tensor"
    by_path = itertools.groupby(values.leaves(structure, whole), lambda leaf: leaf[0])
    for path, leaves in by_path:
        if path.endswith(values.SPLITS):
            continue
        arrays = [array_of(leaf, caller) for _, leaf in leaves if leaf is not None]
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
    return _compat.host_array(tensor)


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
    """Drops the brackets of a name on its own: `['kernel']` is `kernel`."""
    head, bracket, rest = path.partition("']")
    return head.removeprefix("['") + rest if bracket else path


def stats_of(name: str, array: np.ndarray) -> TensorStats:
    """Returns the statistics of an array of any numeric dtype."""
    dtype = array.dtype.name
    nonfinite = ~np.isfinite(array)
    real = real_numbers(array)
    finite = real[~nonfinite]
    tiny = LIMITS[dtype].tiny if dtype in LIMITS else 0.0
    return TensorStats(
        name,
        dtype,
        tuple(int(size) for size in array.shape),
        min=float(finite.min()) if finite.size else None,
        max=float(finite.max()) if finite.size else None,
        mean=mean(finite),
        zeros=int((finite == 0).sum()),
        negatives=int((finite < 0).sum()),
        nans=int(np.isnan(real).sum()),
        posinfs=int(np.isposinf(real).sum()),
        neginfs=int(np.isneginf(real).sum()),
        subnormals=int(((finite != 0) & (np.abs(finite) < tiny)).sum()),
        first_nonfinite=values.first(nonfinite) if nonfinite.any() else None,
    )


def _cells(stats: TensorStats, counts: list[str]) -> list[str]:
    first = stats.first_nonfinite
    return [
        stats.name,
        "x".join(map(str, stats.shape)) or "-",
        stats.dtype,
        *(_figure(getattr(stats, name)) for name in ("min", "max", "mean")),
        *(percent(stats.fraction(name)) for name in counts),
        "-" if first is None else str(first),
    ]


def _figure(number: float | None) -> str:
    return "-" if number is None else f"{number:.4g}"


def percent(fraction: float) -> str:
    """Formats a fraction so that neither 0 nor 100 % is ever a rounded number."""
    if fraction == 0:
        return "-"
    if fraction < 1e-4:
        return "<0.01 %"
    return f"{min(fraction * 100, 100 if fraction == 1 else 99.99):.4g} %"


def report(
    content: Any, path: str | os.PathLike[str] | None = None, *, title: str = ""
) -> str:
    """Makes a web page of an error, of findings, or of what tensors hold.

    The page of an error has the findings, the source around their lines, figures and
    pictures of the tensors, what to do, and the propagation path as a graph. The
    page of tensors has the figures and the picture of each. It is one file that loads
    nothing from anywhere and needs no JavaScript, in light and dark colours.

    Args:
      content: A `NumericsError`, what `tfsafe.data.check_finite` reports, a `Finding`
        or several, `Summaries`, or anything that `tfsafe.debugging.summarize` takes:
        tensors, nested structures of them, models.
      path: File to write, replaced if it exists.
      title: Heading; if empty, the first finding or the number of tensors.

    Returns:
      The page, as text in HTML.

    Raises:
      TypeError: If a tensor has no values yet, as while a `tf.function` is traced.

    Examples:
      >>> import numpy as np
      >>> from tfsafe.debugging import report
      >>> page = report({"kernel": np.array([[1.0, np.nan]])}, title="My weights")
      >>> "1 NaN" in page
      True
    """
    if hasattr(content, "findings"):
        findings = [*content.findings, *getattr(content, "notes", ())]
        page = html.of_findings(findings, str(content), title)
    elif _is_all(content, Finding):
        page = _of_findings(_listed(content), title)
    else:
        page = html.of_tensors(_stats(content), title)
    return html.write(page, path)


def _is_all(content: Any, kind: type) -> bool:
    each = _listed(content)
    return bool(each) and all(isinstance(one, kind) for one in each)


def _listed(content: Any) -> list[Any]:
    return list(content) if isinstance(content, list | tuple) else [content]


def _of_findings(findings: list[Finding], title: str) -> str:
    message = "\n\n".join(str(each) for each in findings)
    return html.of_findings(findings, message, title)


def _stats(content: Any) -> list[TensorStats]:
    if isinstance(content, Summaries) or _is_all(content, TensorStats):
        return _listed(content)
    return [pictures.stats_of(*each) for each in named_arrays(content)]
