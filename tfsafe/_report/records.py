"""Holds a finding as plain data: source line, tensor statistics, picture, link.

They know no text and no HTML: `explain` and `html` are built on them.
"""

import dataclasses
import math
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any


def cell_of(path: str) -> str:
    """Returns the name that IPython shows for a cell's file; empty for other files."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or not hasattr(shell.compile, "format_code_name"):
        return ""
    return " ".join(shell.compile.format_code_name(path) or ())


@dataclasses.dataclass(frozen=True)
class Site:
    """A source line of the user's program.

    Attributes:
      path: File as Python reports it.
      line: Line number, from 1.
      function: Name of the enclosing function.
      source: The line's text, stripped; empty where the file cannot be read.
    """

    path: str
    line: int
    function: str
    source: str = ""

    @property
    def place(self) -> str:
        """File and line, or `Cell In[2], line 5` in a notebook."""
        cell = cell_of(self.path)
        return f"{cell}, line {self.line}" if cell else f"{self.path}:{self.line}"

    @property
    def short_place(self) -> str:
        """The place without folders."""
        name = os.path.basename(self.path)
        return self.place if cell_of(self.path) else f"{name}:{self.line}"

    def __str__(self) -> str:
        text = f"{self.place} in {self.function}"
        return f"{text}\n    {self.source}" if self.source else text


@dataclasses.dataclass(frozen=True)
class Picture:
    """A tensor as a small picture, rows from top to bottom.

    Attributes:
      rows: One character for each cell: `0` for zero; `1` to `9` for positive numbers
        and `a` to `i` for negative ones, the larger the magnitude the later; `N` for
        NaN, `P` for +Inf, `M` for -Inf. A cell of several elements shows a non-finite
        one before any number, and else the largest magnitude.
      low: Decimal exponent of the magnitude that `1` and `a` begin at.
      high: Decimal exponent that `9` and `i` end at.
    """

    rows: tuple[str, ...]
    low: float
    high: float


@dataclasses.dataclass(frozen=True)
class Sample:
    """The row of the batch that failed.

    Attributes:
      kind: `"image"`, `"series"`, `"table"` or `"tokens"`, a ragged row.
      name: Name of the input: `x`.
      row: Index of the row.
      cells: Shades from 0 to 1 of an image, by rows; values of a series, by features;
        column and value of a table; position and value of tokens. None where a value
        is not finite.
      words: Where the values that are not finite are, or else the value at which the
        operation failed; empty where that is not known.
      box: Top, left, bottom and right of these in an image; empty without any.
      columns: Names of the columns of a table in `cells`; empty if they have none.
      mark: Position in `cells` of a finite value at which the operation failed: the
        step of a series, the place of a column in a table, or of a token; -1 without.
      length: Number of tokens of a ragged row; None for other rows.
      is_finite: Whether all values are finite.
    """

    kind: str
    name: str
    row: int
    cells: tuple[tuple[float | None, ...], ...]
    words: str = ""
    box: tuple[int, ...] = ()
    columns: tuple[str, ...] = ()
    mark: int = -1
    is_finite: bool = False
    length: int | None = None


@dataclasses.dataclass(frozen=True)
class TensorStats:
    """Statistics of one tensor, as counts of its elements.

    Complex elements count by their moduli.

    Attributes:
      name: Its path in a structure, the type of the operation that made it, or what
        it is: ``"argument `x`"``.
      dtype: Name of its dtype.
      shape: Its shape.
      min: Smallest finite element. None without any.
      max: Largest finite element. None without any.
      mean: Mean of the finite elements in float64. None without any.
      nans: Number of NaN.
      posinfs: Number of +Inf; of any infinity, if complex.
      neginfs: Number of -Inf.
      zeros: Number of zeros; None where they were not counted.
      negatives: Number of negative finite elements; None where they were not counted.
      subnormals: Number of elements so small that they lose digits, or are flushed
        to 0; None where they were not counted.
      first_nonfinite: Index of the first NaN or Inf; None without any.
      picture: The tensor as a picture, where one was made.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    min: float | None = None
    max: float | None = None
    mean: float | None = None
    nans: int = 0
    posinfs: int = 0
    neginfs: int = 0
    zeros: int | None = None
    negatives: int | None = None
    subnormals: int | None = None
    first_nonfinite: tuple[int, ...] | None = None
    picture: Picture | None = None

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nonfinite(self) -> int:
        """Number of elements that are NaN or infinite."""
        return self.nans + self.posinfs + self.neginfs

    def fraction(self, count: str) -> float:
        """Returns a count as a fraction of all elements, from 0 to 1.

        Args:
          count: Name of the count, such as `"nans"`, `"zeros"` or `"nonfinite"`.

        Raises:
          ValueError: If these elements were not counted.
        """
        found = getattr(self, count)
        if found is None:
            raise ValueError(f"`{count}` of {self.name} were not counted.")
        return found / max(self.size, 1)


def drawn_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """Returns the shape in which a tensor is drawn: without axes of 1 at its end."""
    while len(shape) > 1 and shape[-1] == 1:
        shape = shape[:-1]
    return tuple(shape)


@dataclasses.dataclass(frozen=True)
class Link:
    """One step of the propagation path of non-finite values.

    Attributes:
      op_type: TensorFlow's type of the operation; empty for a result or a variable.
      op_name: Name of the operation in its graph; empty in eager mode.
      kind: `"NaN"`, `"+Inf"`, `"-Inf"`, or several joined by ` and `.
      count: Number of non-finite elements in its output.
      size: Number of elements in its output.
      shape: Shape of its output.
      dtype: Name of the dtype of its output.
      site: The user's line, or None where only library code is on the stack.
      scope: Name scope of the operation.
      layer: Path of the Keras layer that made it, by the names that
        `model.get_layer` knows; empty outside of layers.
      is_gradient: Whether the operation belongs to the backward pass.
      origin: The holder of the values where no operation is meant:
        ``"output['loss']"``, ``"variable `w`"``.
    """

    op_type: str
    op_name: str
    kind: str
    count: int
    size: int
    shape: tuple[int, ...] = ()
    dtype: str = ""
    site: Site | None = None
    scope: str = ""
    is_gradient: bool = False
    origin: str = ""
    layer: str = ""


@dataclasses.dataclass(frozen=True)
class FindingFields:
    """The fields of a `tfsafe.Finding`, where they are documented."""

    kind: str
    op_type: str
    op_name: str
    dtype: str
    count: int
    size: int
    index: tuple[int, ...]
    site: Site | None = None
    is_gradient: bool = False
    cause: str = ""
    suggestion: str = ""
    row: int | None = None
    shape: tuple[int, ...] = ()
    forward_op: str = ""
    scope: str = ""
    iteration: tuple[int, ...] = ()
    suggested_code: str = ""
    origin: str = ""
    inputs: tuple[TensorStats, ...] = ()
    output: TensorStats | None = None
    chain: tuple[Link, ...] = ()
    layer: str = ""
    replaces: str = ""
    replaced_line: int = 0


# Fields that hold records of their own.
_NESTED = {
    "site": Site,
    "picture": Picture,
    "inputs": TensorStats,
    "output": TensorStats,
    "chain": Link,
}


def from_dict(cls: Any, data: Mapping[str, Any]) -> Any:
    """Makes a record of nested dicts, with tuples where JSON has lists."""

    def field(name: str, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return tuple(field(name, each) for each in value)
        return from_dict(_NESTED[name], value) if isinstance(value, Mapping) else value

    return cls(**{name: field(name, value) for name, value in data.items()})
