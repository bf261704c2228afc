"""What a check reports: findings, and the error that carries them."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

from tfsafe import _explain
from tfsafe._explain import listed as listed
from tfsafe._explain import wrapped as wrapped


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

    def __str__(self) -> str:
        text = f"{self.path}:{self.line} in {self.function}"
        return f"{text}\n    {self.source}" if self.source else text


@dataclasses.dataclass(frozen=True)
class Picture:
    """A tensor as a small picture, rows from top to bottom.

    Attributes:
      rows: One character for each cell: `0` for zero; `1` to `9` for positive numbers
        and `a` to `i` for negative ones, the larger the magnitude the later; `N` for
        NaN, `P` for +Inf, `M` for -Inf. In a cell of several elements a bad one
        counts before any number, and else the largest magnitude.
      low: Decimal exponent of the magnitude that `1` and `a` begin at.
      high: Decimal exponent that `9` and `i` end at.
    """

    rows: tuple[str, ...]
    low: float
    high: float


@dataclasses.dataclass(frozen=True)
class Operand:
    """A tensor that went into an operation or came out of it, in figures.

    Attributes:
      name: What it is: ``"argument `x`"``, or the type of the operation that made it.
      dtype: Name of its dtype.
      shape: Its shape.
      min: Smallest finite element; of the moduli, if complex. None without any.
      max: Largest finite element, likewise.
      mean: Mean of the finite elements, likewise.
      zeros: How many elements are 0.
      negatives: How many finite elements are negative.
      nans: How many are NaN.
      posinfs: How many are +Inf; of any infinity, if complex.
      neginfs: How many are -Inf.
      picture: What it looks like, if it has elements.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    min: float | None = None
    max: float | None = None
    mean: float | None = None
    zeros: int = 0
    negatives: int = 0
    nans: int = 0
    posinfs: int = 0
    neginfs: int = 0
    picture: Picture | None = None


@dataclasses.dataclass(frozen=True)
class Link:
    """One step of the way of bad values, from where they began to a result.

    Attributes:
      op_type: TensorFlow's type of the operation; empty for a result or a variable.
      op_name: Name of the operation in its graph; empty in eager mode.
      kind: `"NaN"`, `"+Inf"`, `"-Inf"`, or several joined by ` and `.
      count: How many elements of its output are bad.
      size: How many elements its output has.
      shape: Shape of its output.
      dtype: Name of the dtype of its output.
      site: The user's line, or None where only library code is on the stack.
      scope: Where Keras built the operation: the path of its layers.
      is_gradient: Whether the operation belongs to the backward pass.
      subject: What holds the values if no operation is meant: ``"output['loss']"``,
        ``"variable `w`"``.
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
    subject: str = ""


@dataclasses.dataclass(frozen=True)
class Finding:
    """The first place where non-finite values were made or came in.

    All fields are plain data, so that `dataclasses.asdict` gives JSON. `str(finding)`
    explains it in a few lines: what, where, why, and what to write instead.

    Attributes:
      kind: `"NaN"`, `"+Inf"`, `"-Inf"`, or several joined by ` and `.
      op_type: TensorFlow's type of the operation, such as `"RealDiv"`. Empty where no
        operation made the values: `subject` then says what holds them.
      op_name: Name of the operation in its graph; empty in eager mode.
      dtype: Name of the dtype of the bad tensor.
      count: How many of its elements are bad.
      size: How many elements it has.
      index: Index of the first bad element.
      site: The user's line, or None where only library code is on the stack.
      is_gradient: Whether the operation belongs to the backward pass. `site` is
        then the line of the forward operation that it differentiates.
      cause: What is wrong with the operation's inputs, in words.
      cure: What `paste`, or the change it stands for, does; in words.
      row: Index along the first axis of the failing batch, where the first axis of
        the tensor is the batch.
      shape: Shape of the bad tensor.
      forward_op: Type of the forward operation, where `is_gradient`.
      scope: Where Keras built the operation: the path of its layers.
      iteration: Iterations of the loops around the operation, outermost first,
        counted from 0.
      paste: The line to write instead, where there is one.
      subject: What holds the values if no operation made them: ``"argument `x`"``,
        ``"variable `w`"``, ``"output"``.
      inputs: What went into the operation.
      output: What came out of it.
      chain: The way of the bad values, from this operation to the result.
    """

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
    cure: str = ""
    row: int | None = None
    shape: tuple[int, ...] = ()
    forward_op: str = ""
    scope: str = ""
    iteration: tuple[int, ...] = ()
    paste: str = ""
    subject: str = ""
    inputs: tuple[Operand, ...] = ()
    output: Operand | None = None
    chain: tuple[Link, ...] = ()

    def __str__(self) -> str:
        return "\n".join(_explain.lines_of(self))

    def explain(self, *, chain: bool = False, color: bool | None = None) -> str:
        """Returns the explanation, with more of it than `str(finding)` on request.

        Args:
          chain: Whether to add the way of the bad values, one line a step.
          color: Whether to use the colours of a terminal. If None, they are used where
            the standard output is a terminal and `NO_COLOR` is not set.
        """
        return _explained(str(self), self.chain if chain else (), color)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Finding":
        """Makes a finding again from what `dataclasses.asdict` gave, JSON between."""
        return _revived(cls, data)


def _explained(text: str, chain: Sequence[Link], color: bool | None) -> str:
    if chain:
        text = "\n".join([text, *_explain.chain_lines(chain)])
    use_color = _explain.wants_color() if color is None else color
    return _explain.painted(text) if use_color else text


# Fields that hold plain data of their own.
_NESTED = {
    "site": Site,
    "picture": Picture,
    "inputs": Operand,
    "output": Operand,
    "chain": Link,
}


def _revived(cls: Any, data: Mapping[str, Any]) -> Any:
    """Makes a dataclass of nested dicts, with tuples where JSON has lists."""

    def field(name: str, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return tuple(field(name, each) for each in value)
        return _revived(_NESTED[name], value) if isinstance(value, Mapping) else value

    return cls(**{name: field(name, value) for name, value in data.items()})


class NumericsError(ArithmeticError):
    """Raised when a numeric check finds NaN or Inf.

    Attributes:
      findings: The findings, first cause first. Empty where the error reports a
        count rather than a place.
    """

    def __init__(self, message: str, findings: Sequence[Finding] = ()):
        super().__init__(message)
        self.findings = tuple(findings)

    def explain(self, *, chain: bool = False, color: bool | None = None) -> str:
        """Returns the message, with more of it than `str(error)` on request.

        Args:
          chain: Whether to add the way of the bad values of the first finding, one
            line a step.
          color: Whether to use the colours of a terminal. If None, they are used where
            the standard output is a terminal and `NO_COLOR` is not set.
        """
        links = self.findings[0].chain if chain and self.findings else ()
        return _explained(str(self), links, color)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Returns the error as a web page, and writes it to a file if one is named.

        The page has the findings, the source around their lines, figures and pictures
        of the tensors, and the way of the bad values as a graph. It is one file that
        loads nothing from anywhere, in light and dark colours.

        Args:
          path: File to write, replaced if it exists.

        Returns:
          The page.
        """
        from tfsafe import _html

        return _html.write(_html.of_findings(self.findings, str(self)), path)

    # BaseException pickles `args` alone, which would lose the findings on the way
    # back from a worker process.
    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.findings)
