"""An operation that ran, as its observers see it."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tfsafe.graph import OpFact, Place, op_types

# TensorFlow computes them over the last axis alone.
_OVER_LAST_AXIS = {"LogSoftmax", "Softmax"}
_ELEMENTS = op_types(OpFact.NEXT_ELEMENT) | {"OptionalGetValue"}


def maker(op_type: str, before: str) -> str:
    """Returns the type of the operation that made a tensor, for a finding.

    Args:
      op_type: Type of the operation.
      before: Type of the one that made its first input. A softmax over another axis is
        transposed back after it.
    """
    is_moved = op_type == "Transpose" and before in _OVER_LAST_AXIS
    return before if is_moved or (op_type == "Identity" and before) else op_type


def draws_element(op_type: str) -> bool:
    """Returns whether the numbers that an operation gives are elements of a dataset."""
    return op_type in _ELEMENTS or op_type.endswith("Dataset")


def _unknown(name: str) -> Any:
    del name


class OnLine(NamedTuple):
    """Which of the operations of its type on its line an operation is.

    Attributes:
      position: Its position among them, from 0.
      total: How many there are; 0 if that is not known.
      lines: The lines of its file that have operations of its type.
      text: The user's expression, where it is known from Python itself.
    """

    position: int = 0
    total: int = 0
    lines: frozenset[int] = frozenset()
    text: str = ""


class Step(NamedTuple):
    """An operation that ran.

    Attributes:
      type: Type of the operation.
      name: Its name; empty in eager mode.
      inputs: Values of its inputs.
      outputs: Values of its outputs.
      place: Finds where the operation comes from.
      producers: Finds the types of the operations that made the inputs; empty for
        values from outside.
      loops: Iterations of the loops around it.
      attribute: Returns one of its attributes, by name.
      on_line: Finds which of the operations of its type on its line it is.
    """

    type: str
    name: str
    inputs: Sequence[Any]
    outputs: Sequence[Any]
    place: Callable[[], Place]
    producers: Callable[[], list[str]]
    loops: tuple[int, ...] = ()
    attribute: Callable[[str], Any] = _unknown
    on_line: Callable[[], OnLine] = OnLine
