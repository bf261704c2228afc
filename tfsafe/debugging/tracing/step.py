"""An operation that ran, as its observers see it."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tfsafe.graph import Place


def _unknown(name: str) -> Any:
    del name


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
    """

    type: str
    name: str
    inputs: Sequence[Any]
    outputs: Sequence[Any]
    place: Callable[[], Place]
    producers: Callable[[], list[str]]
    loops: tuple[int, ...] = ()
    attribute: Callable[[str], Any] = _unknown
