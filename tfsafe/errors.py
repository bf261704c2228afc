"""What a check reports: findings, and the error that carries them."""

import dataclasses
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

_INDENT = " " * 9


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

    def __str__(self) -> str:
        lines = [*self._what(), *self._where()]
        if self.cause:
            lines += wrapped("  why:   ", self.cause)
        lines += self._cure()
        return "\n".join(lines)

    def _what(self) -> list[str]:
        if self.subject:
            head = f"{self.kind} in {self.subject}"
        elif self.is_gradient and self.forward_op:
            head = f"{self.kind} in the gradient of `{self.forward_op}`, from "
            head += f"`{self.op_type}`"
        else:
            where = " in the backward pass" if self.is_gradient else ""
            head = f"{self.kind} from `{self.op_type}`{where}"
        row = "" if self.row is None else f", first in row {self.row} of the batch"
        what = (
            "the only value"
            if not self.shape
            else (
                f"{self.count} of {self.size} values, the first at {self.index}; "
                f"shape {self.shape}"
            )
        )
        return [f"{head}{row}.", f"  what:  {what}, {self.dtype}"]

    def _where(self) -> list[str]:
        notes = [f"scope {self.scope}"] if self.scope else []
        if self.iteration:
            notes.append(f"loop iteration {', '.join(map(str, self.iteration))}")
        if self.is_gradient and self.forward_op:
            notes.insert(0, "the forward operation")
        note = f" ({'; '.join(notes)})" if notes else ""
        if self.site is None:
            if self.subject:
                return []
            operation = self.op_name or self.op_type
            return [f"  where: no line of yours; operation `{operation}`{note}"]
        where = f"{self.site.path}:{self.site.line} in {self.site.function}"
        lines = [f"  where: {where}{note}"]
        if self.site.source:
            lines.append(f"{_INDENT}    {self.site.source}")
        return lines

    def _cure(self) -> list[str]:
        if not self.cure:
            return []
        if not self.paste:
            return wrapped("  cure:  ", self.cure)
        return [f"  cure:  {self.paste}", *wrapped(_INDENT, self.cure)]


def listed(names: Iterable[str], most: int = 3) -> str:
    """Names the first few, and counts the others."""
    first, rest = list(names)[:most], list(names)[most:]
    return ", ".join(first) + (f" and {len(rest)} more" if rest else "")


def wrapped(head: str, text: str) -> list[str]:
    """Breaks a line of an explanation at 88 columns, under its heading."""
    return textwrap.wrap(
        text,
        width=88,
        initial_indent=head,
        subsequent_indent=_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )


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
