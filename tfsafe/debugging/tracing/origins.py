"""Records where non-finite values begin, and the steps that they take."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfsafe.debugging.tracing.lost_digits import Zero
from tfsafe.debugging.tracing.step import OnLine, Step
from tfsafe.graph import Place

# Number of steps, and the operations that count among them.
Met = tuple[int, tuple[str, ...]]


class Origin:
    """Where non-finite values begin: an operation, or a value from outside.

    Attributes:
      order: Position among all origins.
      value: The non-finite tensor.
      births: Which elements became non-finite here; None for all that are.
      step: The operation, or None for a value from outside.
      place: Where the operation comes from; of a value from outside, where it is read
        first, if that is known.
      producers: Types of the operations that made its inputs.
      on_line: Finds which of the operations on its line it is.
      names: Names of its inputs: their producers, or values from outside.
      holder: Name of the value from outside, such as ``"argument `x`"``.
      is_intended: Whether it is an infinity that the program wrote down as such,
        the `-inf` of a mask for one.
      absorbed_at: The division that turned its infinity into 0, or what made an
        integer of its NaN, and its place.
      row_of: Finds the row of the batch that an element of `value` belongs to.
      zero: Where the zero began that made it non-finite, if rounding made it.
      is_ragged: Whether its inputs are the values of ragged rows.
      met: What its values met in their first steps, see `Propagation.met_next`.
    """

    def __init__(
        self,
        order: int,
        value: Any,
        *,
        step: Step | None = None,
        births: np.ndarray | None = None,
        holder: str = "",
        is_intended: bool = False,
    ):
        self.order = order
        self.value = value
        self.step = step
        self.births = births
        self.holder = holder
        self.is_intended = is_intended
        self.absorbed_at: tuple[str, Place] | None = None
        self.row_of: Callable[[tuple[int, ...]], int | None] = lambda _: None
        self.zero: Zero | None = None
        self.is_ragged = False
        self.met: list[Met] = []
        self.place = step.place() if step else Place(None)
        self.producers = step.producers() if step else []
        # Of an eager operation it is known now alone.
        self.on_line = step.on_line if step else OnLine
        if step and not step.name:
            self.on_line = functools.partial(OnLine, *step.on_line())
        self.names = list(self.producers)


Origins = frozenset[Origin]


class PathStep(NamedTuple):
    """A non-finite value on its path, and the operation that made it.

    Attributes:
      kept: Object that must not be freed while this is known.
      value: Returns the non-finite tensor, or None if it is gone.
      origins: Origins of its non-finite elements.
      type: Type of the operation; empty for a value from outside.
      name: Name of the operation.
      place: Finds where the operation comes from.
      parents: `id` of its non-finite inputs.
      met: What the values of its origins met up to here.
    """

    kept: Any
    value: Callable[[], Any]
    origins: Origins
    type: str = ""
    name: str = ""
    place: Callable[[], Place] = lambda: Place(None)
    parents: tuple[int, ...] = ()
    met: Mapping[Origin, Sequence[Met]] = {}
