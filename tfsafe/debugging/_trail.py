"""From which operation does a bad value come: the trail of non-finite values."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfsafe.debugging import _values
from tfsafe.graph import Place

# Element i of the output depends on the elements i of the inputs alone, so that a
# bad element can be told from one that was bad before.
_ELEMENTWISE = frozenset([
    "Abs",
    "Acos",
    "Acosh",
    "Add",
    "AddV2",
    "Asin",
    "Asinh",
    "Atan",
    "Atan2",
    "Atanh",
    "Cast",
    "Cos",
    "Cosh",
    "Div",
    "DivNoNan",
    "Erf",
    "Erfc",
    "Erfinv",
    "Exp",
    "Expm1",
    "FloorDiv",
    "FloorMod",
    "Inv",
    "InvGrad",
    "Lgamma",
    "Log",
    "Log1p",
    "Maximum",
    "Minimum",
    "Mod",
    "Mul",
    "MulNoNan",
    "Neg",
    "Pow",
    "RealDiv",
    "Reciprocal",
    "ReciprocalGrad",
    "Relu",
    "ReluGrad",
    "Rsqrt",
    "RsqrtGrad",
    "Select",
    "SelectV2",
    "Sigmoid",
    "SigmoidGrad",
    "Sin",
    "Sinh",
    "Softplus",
    "Sqrt",
    "SqrtGrad",
    "Square",
    "SquaredDifference",
    "Sub",
    "Tan",
    "Tanh",
    "TanhGrad",
    "Xdivy",
    "Xlog1py",
    "Xlogy",
])
_WRITES = (
    "AssignAddVariableOp",
    "AssignSubVariableOp",
    "AssignVariableOp",
    "ResourceApply",
    "ResourceScatter",
    "ResourceSparseApply",
    "ResourceStridedSliceAssign",
)


class Step(NamedTuple):
    """An operation that ran.

    Attributes:
      type: Type of the operation.
      name: Its name; empty in eager mode.
      inputs: Values that went in.
      outputs: Values that came out.
      place: Finds where the operation comes from.
      producers: Finds the types of the operations that made the inputs.
      loops: Iterations of the loops around it.
    """

    type: str
    name: str
    inputs: Sequence[Any]
    outputs: Sequence[Any]
    place: Callable[[], Place]
    producers: Callable[[], list[str]]
    loops: tuple[int, ...] = ()


class Origin:
    """Where non-finite values begin: an operation, or a value from outside.

    Attributes:
      order: Position among all origins.
      value: The bad tensor.
      births: Which elements became bad here; None for all that are bad.
      step: The operation, or None for a value from outside.
      place: Where the operation comes from.
      producers: Types of the operations that made its inputs.
      subject: What the value from outside is, such as ``"argument `x`"``.
      is_intended: Whether it is an infinity that the program wrote down as such,
        the `-inf` of a mask for one.
    """

    def __init__(
        self,
        order: int,
        value: Any,
        *,
        step: Step | None = None,
        births: np.ndarray | None = None,
        subject: str = "",
        is_intended: bool = False,
    ):
        self.order = order
        self.value = value
        self.step = step
        self.births = births
        self.subject = subject
        self.is_intended = is_intended
        self.place = step.place() if step else Place(None)
        self.producers = step.producers() if step else []


Origins = frozenset[Origin]


class Trail:
    """Follows bad values from operation to operation.

    Args:
      name: Says what a value from outside is called, or nothing.
    """

    def __init__(self, name: Callable[[Any], str]):
        self.all: list[Origin] = []
        self._name = name
        # The tensor stands beside its origins so that its `id` stays taken.
        self._marks: dict[int, tuple[Any, Origins]] = {}

    def origins(self, value: Any) -> Origins:
        """Returns where the bad elements of a value come from; empty if it is good."""
        return self._marks[id(value)][1] if id(value) in self._marks else frozenset()

    def mark(self, value: Any, origins: Iterable[Origin]) -> None:
        """Notes that a value is bad, and why."""
        self._marks[id(value)] = value, frozenset(origins)

    def outside(self, value: Any, subject: str, key: Any = None) -> Origin:
        """Notes a bad value that no operation of the run made.

        Args:
          value: The bad tensor.
          subject: What it is.
          key: What carries it; `value` itself where None.

        Returns:
          The origin that was noted.
        """
        infinite = not np.isnan(_values.numbers(value)).any()
        origin = self._new(value, subject=subject, is_intended=infinite and not subject)
        self.mark(value if key is None else key, [origin])
        return origin

    def observe(self, step: Step) -> None:
        """Follows bad values through one operation."""
        if step.type.startswith(_WRITES):
            self._observe_write(step, step.inputs[0])
        carriers = [each for each in step.outputs if _is_container(each)]
        bad = [
            each
            for each in step.outputs
            if _values.is_float(each) and not _values.is_finite(each)
        ]
        if not bad and not carriers:
            return
        sources = self._sources(step)
        for each in carriers:
            if sources:
                self.mark(each, sources)
        for each in bad:
            self.mark(each, self._causes(step, each, sources))

    def _new(self, value: Any, **what: Any) -> Origin:
        origin = Origin(len(self.all), value, **what)
        self.all.append(origin)
        return origin

    def _sources(self, step: Step) -> Origins:
        """Returns the origins of the bad inputs."""
        found: set[Origin] = set()
        for each in step.inputs:
            known = self.origins(each)
            if not known and _values.is_float(each) and not _values.is_finite(each):
                known = frozenset([self.outside(each, self._name(each))])
            found |= known
        return frozenset(found)

    def _causes(self, step: Step, bad: tf.Tensor, sources: Origins) -> Origins:
        """Returns where the bad elements of one output come from."""
        value = _values.numbers(bad)
        if not sources:
            if step.type in {"ReadVariableOp", "ResourceGather", "ResourceGatherNd"}:
                handle = step.inputs[0]
                name = self._name(handle) or "a variable"
                return frozenset([self.outside(bad, name, handle)])
            infinite = step.type == "Const" and not np.isnan(value).any()
            return frozenset([self._new(bad, step=step, is_intended=infinite)])
        if np.isnan(value).any() and all(each.is_intended for each in sources):
            # `inf - inf`, or a row that is masked as a whole.
            return frozenset([self._new(bad, step=step)])
        if step.type not in _ELEMENTWISE:
            return sources
        births = ~np.isfinite(value)
        inherited = np.zeros_like(births)
        for each in step.inputs:
            if _values.is_float(each):
                inherited |= births & ~np.isfinite(_values.numbers(each))
        births &= ~inherited
        if not births.any():
            return sources
        new = frozenset([self._new(bad, step=step, births=births)])
        return sources | new if inherited.any() else new

    def _observe_write(self, step: Step, handle: tf.Tensor) -> None:
        floats = [each for each in step.inputs if _values.is_float(each)]
        if not floats:
            return
        value = tf.raw_ops.ReadVariableOp(resource=handle, dtype=floats[-1].dtype)
        if _values.is_finite(value):
            self._marks.pop(id(handle), None)
            return
        sources = self._sources(step)
        self.mark(handle, sources or [self._new(value, step=step)])


def _is_container(value: Any) -> bool:
    # The lists in which loops keep values for their gradients.
    return isinstance(value, tf.Tensor) and value.dtype == tf.variant
