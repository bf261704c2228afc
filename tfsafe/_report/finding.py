"""Defines the finding: where non-finite values were made, and what to do about it."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from tfsafe._report import explain, html, records
from tfsafe._report.text import painted, wants_color


@dataclasses.dataclass(frozen=True)
class Finding(records.FindingFields):
    """The first place where non-finite values were made or came in.

    All fields are plain data, so that `dataclasses.asdict` gives JSON. `str(finding)`
    explains it in a few lines: what, where, why, and what to write instead. The
    checks make it: `findings` of a `NumericsError`.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> @tfsafe.checked
      ... def normalise(x):
      ...     return x / tf.reduce_sum(x)
      >>> try:
      ...     normalise(tf.constant([0.0, 0.0]))
      ... except tfsafe.NumericsError as error:
      ...     finding = error.findings[0]
      >>> print(finding.kind, finding.op_type, finding.index, finding.site.function)
      NaN RealDiv (0,) normalise
      >>> print(finding.suggested_code)
      tfsafe.ops.divide(x, tf.reduce_sum(x))
      >>> print(next(iter(finding.traps.items())))
      ('O42', 'tf.where(y != 0, x / y, 0) at y = 0')

    Attributes:
      kind: `"NaN"`, `"+Inf"`, `"-Inf"`, or several joined by "and".
      op_type: TensorFlow's type of the operation, such as `"RealDiv"`. Empty where no
        operation made the values: `origin` then names their holder.
      op_name: Name of the operation in its graph; empty in eager mode.
      dtype: Name of the dtype of the non-finite tensor.
      count: Number of its elements that are non-finite.
      size: Number of its elements.
      index: Index of the first non-finite element.
      site: The user's line, or None where only library code is on the stack. Where no
        operation made the values and their holder has no name, the line that reads
        them first.
      is_gradient: Whether the operation belongs to the backward pass. `site` is
        then the line of the forward operation that it differentiates.
      cause: What is wrong with the operation's inputs, in words.
      suggestion: What `suggested_code` does, or the change to make; in words.
      row: Row of the batch that failed, where the tensor's first axis is the batch.
      shape: Shape of the non-finite tensor.
      forward_op: Type of the forward operation, where `is_gradient`.
      scope: Name scope of the operation.
      iteration: Iterations of the loops around it from 0, outermost first.
      suggested_code: The line to write instead, where there is one.
      origin: The holder of the values if no operation made them: ``"argument `x`"``,
        ``"variable `w`"``, ``"output"``.
      inputs: Statistics of the operation's inputs.
      output: Statistics of its output.
      chain: The propagation path of the values, from this operation to the result.
      layer: Path of the operation's Keras layer, by names that `get_layer` knows.
      replaces: The user's expression that `suggested_code` takes the place of; empty
        where that is not one expression.
      replaced_line: Number of the line of this expression; 0 for that of `site`.
    """

    def __str__(self) -> str:
        return "\n".join(explain.lines_of(self))

    @property
    def traps(self) -> dict[str, str]:
        """The measured traps that the suggested names fix: what each is, by row."""
        return explain.traps_of(self)

    def explain(self, *, chain: bool = False, color: bool | None = None) -> str:
        """Returns the explanation, with more of it than `str(finding)` on request.

        Args:
          chain: Whether to add the propagation path, one line a step, and the measured
            trap that is most like it.
          color: Whether to use the colours of a terminal. If None, they are used where
            the standard output is a terminal and `NO_COLOR` is not set.
        """
        return explained(str(self), self if chain else None, color)

    def _repr_html_(self) -> str:
        """Shows the finding in a notebook."""
        return html.fragment_of_findings([self], str(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Finding":
        """Makes a finding from the result of `dataclasses.asdict`, JSON between."""
        return records.from_dict(cls, data)


def explained(text: str, of: Finding | None, color: bool | None) -> str:
    """Returns a text with the rest of a finding, in colours where they are wanted."""
    if of:
        path = explain.chain_lines(of.chain) if of.chain else []
        text = "\n".join([text, *path, *explain.trap_lines(of)])
    use_color = wants_color() if color is None else color
    return painted(text) if use_color else text
