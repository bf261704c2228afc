"""Traces non-finite values from operation to operation, back to their origins."""

import functools
import math
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfsafe.debugging import values
from tfsafe.debugging.tracing.batch_rows import Rows
from tfsafe.debugging.tracing.lost_digits import LostDigits
from tfsafe.debugging.tracing.origins import Met, Origin, Origins, PathStep
from tfsafe.debugging.tracing.step import Step, draws_element
from tfsafe.graph import OpFact, Place, op_types

_ELEMENTWISE = op_types(OpFact.ELEMENTWISE)
_ELEMENT = "an element of the dataset"
# They only pass values on.
_PASS = frozenset({"Cast", "Identity", "Neg", "Reshape"})
# Maximum number of what is noted that an origin's values met, in their first steps.
_PATHS = 100
_FIRST = 4
# Number of origins to remember of a program whose values are not kept.
_LAST = 20
# Number of elements of the largest tensor in it whose zeros are followed: all steps of
# such a program are, the good ones too.
_LARGEST = 2**20
# What a non-finite value met, see `Propagation.met_next`, besides types of operations.
QUOTIENT_OF_BOTH = "RealDiv of both"
QUOTIENT_OF_OTHERS = "RealDiv of others"
PRODUCT_WITH_ZERO = "Mul with 0"
PRODUCT_WITH_BOTH = "Mul with 0 and others"
WRITES = (
    "AssignAddVariableOp",
    "AssignSubVariableOp",
    "AssignVariableOp",
    "ResourceApply",
    "ResourceScatter",
    "ResourceSparseApply",
    "ResourceStridedSliceAssign",
)
_NONE: Origins = frozenset()
_OUTSIDE = Step("", "", (), (), lambda: Place(None), list)


class Propagation:
    """Follows non-finite values from operation to operation.

    Args:
      name: Returns the name of a value from outside, or an empty string.
      keeps: Whether non-finite values are kept, for the path from an origin to a
        result. If not, a value that the program has freed is forgotten.

    Attributes:
      all: The origins that were met.
      absorbed: The origins whose infinity a division turned into 0, wrongly.
      names: Functions that return the name of a value from outside, or of a variable
        by its handle; the first name that is not empty counts.
      rows: Follows the rows of the batch, where there is one.
    """

    def __init__(self, name: Callable[[Any], str], *, keeps: bool = True):
        self.all: list[Origin] = []
        self.names = [name]
        self.absorbed: list[Origin] = []
        self.rows: Rows | None = None
        self._keeps = keeps
        self._lost_digits = LostDigits(math.inf if keeps else _LARGEST)
        # The handle of the variable that a tensor was read from.
        self._reads: dict[int, tuple[Any, Any]] = {}
        # By `id` of the tensor or handle: it is kept, or its step goes with it.
        self._marks: dict[int, PathStep] = {}
        self._count = 0

    def origins(self, value: Any) -> Origins:
        """Returns the origins of a value's non-finite elements, if it has any."""
        return self._marks[id(value)].origins if id(value) in self._marks else _NONE

    def value(self, key: Any) -> Any:
        """Returns the value that was marked last; None for one that is finite."""
        return self._marks[id(key)].value() if id(key) in self._marks else None

    def mark(
        self,
        key: Any,
        origins: Iterable[Origin],
        step: Step | None = None,
        value: Any = None,
    ) -> None:
        """Notes that a value is non-finite, and why.

        Args:
          key: The non-finite tensor, or the handle of a variable.
          origins: Origins of its non-finite elements.
          step: The operation that made it.
          value: The non-finite tensor, where `key` is a handle.
        """
        value = key if value is None else value
        what = _OUTSIDE if step is None else step
        parents = tuple(id(each) for each in what.inputs if id(each) in self._marks)
        place = what.place
        if not what.name:
            # An eager operation is at its place only now.
            place = functools.partial(lambda value: value, what.place())
        path_step = PathStep(
            *self._held(key, value),
            frozenset(origins),
            what.type,
            what.name,
            place,
            parents,
        )
        self._marks[id(key)] = path_step._replace(met=self._met_by(key, path_step))

    def unmark(self, key: Any) -> None:
        """Notes that a value is finite again."""
        self._marks.pop(id(key), None)

    def _held(self, key: Any, value: Any) -> tuple[Any, Callable[[], Any]]:
        if self._keeps:
            return key, functools.partial(lambda value: value, value)
        drop, number = self._marks.pop, id(key)
        end = weakref.ref(key, lambda _: drop(number, None))
        # Only this record holds the tensor of a variable's value.
        return end, weakref.ref(value) if key is value else lambda: value

    def path(self, value: Any, origin: Origin) -> list[PathStep]:
        """Returns the steps from an origin to a value, origin first."""
        found: list[PathStep] = []
        key: int | None = id(value)
        seen: set[int] = set()
        while key is not None and key in self._marks and key not in seen:
            seen.add(key)
            step = self._marks[key]
            found.append(step)
            if step.value() is origin.value:
                break
            known = [each for each in step.parents if each in self._marks]
            reached = (x for x in known if origin in self._marks[x].origins)
            key = next(reached, None)
        return found[::-1]

    def met_next(self, origin: Origin) -> list[tuple[str, ...]]:
        """Returns the operations that the values of an origin met in their first steps.

        Returns:
          For each path, the types of the operations in a row: `("Sum", "Log")`. A
          quotient of two non-finite values is `QUOTIENT_OF_BOTH`, or
          `QUOTIENT_OF_OTHERS` where they begin in the same operation of other
          arguments, and a product that makes NaN of infinities `PRODUCT_WITH_ZERO`, or
          `PRODUCT_WITH_BOTH` where it leaves some of them infinite.
        """
        return [words for _, words in sorted(origin.met, key=lambda each: each[0])]

    def _met_by(self, key: Any, step: PathStep) -> dict[Origin, list[Met]]:
        """Returns what the values of origins met up to a step, and notes it there."""
        found: dict[Origin, list[Met]] = {
            each: [(0, ())] for each in step.origins if each.value is key
        }
        for parent in dict.fromkeys(step.parents):
            if parent == id(key):
                continue
            for origin, paths in self._marks[parent].met.items():
                if origin not in step.origins or origin.value is key:
                    continue
                own = self._met(step, origin)
                longer = [(n + 1, words + own) for n, words in paths if n < _FIRST]
                if longer and len(origin.met) < _PATHS:
                    origin.met += longer
                    found.setdefault(origin, []).extend(longer)
        return found

    def _met(self, step: PathStep, origin: Origin) -> tuple[str, ...]:
        """Returns what `met_next` says of a step; none if it only passes values on."""
        marks = [self._marks[each] for each in step.parents if each in self._marks]
        alike = [[o for o in mark.origins if _is_alike(o, origin)] for mark in marks]
        if step.type == "RealDiv" and len(step.parents) > 1 and all(alike):
            begun = [each for some in alike for each in some]
            is_same = all(_has_same_inputs(each, origin) for each in begun)
            return (QUOTIENT_OF_BOTH if is_same else QUOTIENT_OF_OTHERS,)
        if step.type == "Mul":
            value = step.value()
            if value is not None and values.has_nan(value):
                is_left = np.isinf(values.numbers(value)).any()
                return (PRODUCT_WITH_BOTH if is_left else PRODUCT_WITH_ZERO,)
        return () if step.type in _PASS else (step.type,)

    def name(self, value: Any) -> str:
        """Returns the name of a value from outside; empty if it is not known."""
        return next(filter(None, (name(value) for name in self.names)), "")

    def outside(self, value: Any, holder: str, key: Any = None) -> Origin:
        """Notes a non-finite value that no operation of the run made.

        Args:
          value: The non-finite tensor.
          holder: Its name.
          key: The handle that represents it; `value` itself if None.

        Returns:
          The origin that was noted.
        """
        if self.rows is not None and holder.startswith("argument"):
            self.rows.start(holder, value)
        infinite = not values.has_nan(value)
        origin = self._new(value, holder=holder, is_intended=infinite and not holder)
        self.mark(value if key is None else key, [origin], value=value)
        return origin

    def observe(self, step: Step) -> None:
        """Follows non-finite values through one operation."""
        if self.rows is not None:
            self.rows.observe(step)
        self._note_read(step)
        self._lost_digits.observe(step)
        if step.type.startswith(WRITES):
            self._observe_write(step, step.inputs[0])
        if self._keeps:
            self._observe_choice(step)
        carriers = [each for each in step.outputs if is_container(each)]
        nonfinite = [
            each
            for each in step.outputs
            if values.is_float(each) and not values.is_finite(each)
        ]
        if values.may_absorb(step.type) and not nonfinite:
            self._observe_division(step)
        if not nonfinite and not carriers:
            return
        sources = self._sources(step)
        for each in carriers:
            if sources:
                self.mark(each, sources, step)
        for each in nonfinite:
            self.mark(each, self._causes(step, each, sources), step)

    def _new(self, value: Any, **what: Any) -> Origin:
        self._count += 1
        origin = Origin(self._count, value, **what)
        if self.rows is not None:
            origin.row_of = functools.partial(self.rows.of, value)
        if origin.step is not None:
            made = zip(origin.step.inputs, origin.producers, strict=True)
            origin.names = [self._called(value, producer) for value, producer in made]
            origin.is_ragged = self.rows is not None and any(
                map(self.rows.is_ragged, origin.step.inputs)
            )
            births = origin.births
            if births is None:
                births = ~np.isfinite(values.numbers(value))
            origin.zero = self._lost_digits.behind(origin.step, births)
        self.all.append(origin)
        if not self._keeps:
            del self.all[:-_LAST]
        return origin

    def _called(self, value: Any, producer: str) -> str:
        """Returns the name of an input of an operation."""
        if not producer:
            return self.name(value) or "a tensor from outside"
        if id(value) in self._reads:
            return self.name(self._reads[id(value)][1]) or "a variable"
        return _ELEMENT if draws_element(producer) else producer

    def _note_read(self, step: Step) -> None:
        if step.type == "ReadVariableOp":
            handle = step.inputs[0]
        elif step.type == "Identity" and id(step.inputs[0]) in self._reads:
            handle = self._reads[id(step.inputs[0])][1]
        else:
            return
        key, drop = id(step.outputs[0]), self._reads.pop
        end = weakref.ref(step.outputs[0], lambda _: drop(key, None))
        self._reads[key] = end, handle

    def _sources(self, step: Step) -> Origins:
        """Returns the origins of the non-finite inputs."""
        found: set[Origin] = set()
        for each in _taken(step):
            known = self.origins(each)
            if not known and values.is_float(each) and not values.is_finite(each):
                origin = self.outside(each, self.name(each))
                if origin.step is None:
                    origin.place = step.place()
                known = frozenset([origin])
            found |= known
        return frozenset(found)

    def _causes(self, step: Step, output: tf.Tensor, sources: Origins) -> Origins:
        """Returns the origins of the non-finite elements of one output."""
        value = values.numbers(output)
        if not sources:
            if step.type in {"ReadVariableOp", "ResourceGather", "ResourceGatherNd"}:
                handle = step.inputs[0]
                name = self.name(handle) or "a variable"
                return frozenset([self.outside(output, name, handle)])
            if draws_element(step.type):
                return frozenset([self.outside(output, _component(step, output))])
            infinite = step.type == "Const" and not np.isnan(value).any()
            return frozenset([self._new(output, step=step, is_intended=infinite)])
        if np.isnan(value).any() and all(each.is_intended for each in sources):
            # `inf - inf`, or a row that is masked as a whole. Others may be infinite.
            return frozenset([self._new(output, step=step, births=np.isnan(value))])
        if step.type not in _ELEMENTWISE:
            return sources
        births = ~np.isfinite(value)
        inherited = np.zeros_like(births)
        for each in step.inputs:
            if values.is_float(each):
                inherited |= births & ~np.isfinite(values.numbers(each))
        births &= ~inherited
        if not births.any():
            return sources
        new = frozenset([self._new(output, step=step, births=births)])
        return sources | new if inherited.any() else new

    def _observe_division(self, step: Step) -> None:
        """Notes the overflows that a division turned into 0."""
        denominator = step.inputs[values.DENOMINATORS[step.type]]
        for origin in sorted(self.origins(denominator), key=lambda each: each.order):
            made_by = "" if origin.step is None else origin.step.type
            is_new = made_by and not origin.is_intended and origin.absorbed_at is None
            if is_new and values.is_wrong_zero(step.type, step.inputs, made_by):
                origin.absorbed_at = step.type, step.place()
                self.absorbed.append(origin)

    def _observe_choice(self, step: Step) -> None:
        """Marks the integers that NaN chose, and what passes them on."""
        for each in step.outputs:
            if values.is_float(each) or not values.is_number(each):
                continue
            numbers = values.chosen_by(step.type, step.inputs, each)
            origins: Iterable[Origin] = ()
            if numbers is None:
                passed = values.passed_on(step.type, step.inputs, each)
                origins = frozenset().union(*map(self.origins, passed))
            elif values.has_nan(numbers):
                origins = [o for o in self._sources(step) if not o.is_intended]
            if origins:
                self.mark(each, origins, step)

    def _observe_write(self, step: Step, handle: tf.Tensor) -> None:
        floats = [each for each in step.inputs if values.is_float(each)]
        if not floats:
            return
        value = tf.raw_ops.ReadVariableOp(resource=handle, dtype=floats[-1].dtype)
        if values.is_finite(value):
            self.unmark(handle)
            return
        sources = self._sources(step)
        self.mark(handle, sources or [self._new(value, step=step)], step, value)


def _is_alike(origin: Origin, other: Origin) -> bool:
    """Returns whether two origins are operations of one type."""
    steps = origin.step, other.step
    return all(steps) and len({each and each.type for each in steps}) == 1


def _has_same_inputs(origin: Origin, other: Origin) -> bool:
    """Returns whether two origins are the same operation, or compute the same."""
    if origin is other:
        return True
    inputs = [map(values.array, o.step.inputs) for o in (origin, other) if o.step]
    return all(np.array_equal(*pair) for pair in zip(*inputs, strict=True))


def _taken(step: Step) -> Sequence[Any]:
    """Returns the inputs whose values are in the output: of a selection what it chose.

    What it leaves out may be NaN, as the mean of nothing is.
    """
    if step.type != "SelectV2" or not values.is_float(step.outputs[0]):
        return step.inputs
    chosen = values.array(step.inputs[0])
    return [
        branch
        for branch, mask in zip(step.inputs[1:], (chosen, ~chosen), strict=True)
        if (mask & ~np.isfinite(values.numbers(branch))).any()
    ]


def _component(step: Step, output: tf.Tensor) -> str:
    """Names one of the tensors of an element, in the order of `tf.nest.flatten`."""
    if len(step.outputs) == 1:
        return _ELEMENT
    number = next(i for i, each in enumerate(step.outputs) if each is output)
    return f"component {number} of {_ELEMENT}"


def is_container(value: Any) -> bool:
    """Whether a value holds others: a dataset, or what a loop keeps for gradients."""
    return isinstance(value, tf.Tensor) and value.dtype == tf.variant
