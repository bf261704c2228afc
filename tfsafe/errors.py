"""What a check reports: findings, and the error that carries them."""

import dataclasses
from collections.abc import Sequence
from typing import Any


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
class Finding:
    """One operation that made non-finite values from finite ones.

    All fields are plain data, so that `dataclasses.asdict` gives JSON.

    Attributes:
      kind: `"NaN"`, `"+Inf"`, `"-Inf"`, or several joined by ` and `.
      op_type: TensorFlow's type of the operation, such as `"RealDiv"`.
      op_name: Name of the operation in its graph; empty in eager mode.
      dtype: Name of the dtype of the bad output.
      count: How many elements of the output are bad.
      size: How many elements the output has.
      index: Index of the first bad element.
      site: The user's line, or None where only library code is on the stack.
      is_gradient: Whether the operation belongs to the backward pass. `site` is
        then the line of the forward operation that it differentiates.
      cause: What is wrong with the operation's inputs, in words.
      cure: What to write instead, in words.
      row: Index along the first axis of the failing batch, where the first axis of
        the output is the batch.
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


class NumericsError(ArithmeticError):
    """Raised when a numeric check finds NaN or Inf.

    Attributes:
      findings: The findings, first cause first. Empty where the error reports a
        count rather than a place.
    """

    def __init__(self, message: str, findings: Sequence[Finding] = ()):
        super().__init__(message)
        self.findings = tuple(findings)

    # BaseException pickles `args` alone, which would lose the findings on the way
    # back from a worker process.
    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.findings)
