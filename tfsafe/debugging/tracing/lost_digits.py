"""Follows numbers that rounding, a ReLU, a draw or integers made to what fails."""

import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfsafe.debugging import values
from tfsafe.debugging.tracing.step import Step
from tfsafe.graph import MATRIX_PRODUCTS, OpFact, Place, op_types

UNDERFLOW = "underflow"
CANCELLATION = "cancellation"
OVERFLOW = "overflow"
RECTIFIED = "rectified"
WRAPPED = "wrapped"
DRAWN = "drawn"

_PRODUCTS = frozenset({"Cumprod", "Mul", "Prod", "Square"})
_RECTIFIERS = frozenset({"Relu", "Relu6"})
_TAILS = frozenset({"Erfc", "Exp", "Sigmoid", "Softmax", "Softplus"})
_DIFFERENCES = frozenset({"Add", "AddV2", "Sub"})
# Integers begin at 0, too, unless the program says otherwise.
INTEGER_DRAWS = frozenset({
    *("RandomUniformInt", "StatelessRandomUniformInt", "StatelessRandomUniformIntV2"),
})
_DRAWS = INTEGER_DRAWS | {
    *("RandomUniform", "StatelessRandomUniform", "StatelessRandomUniformV2"),
}
_MAKERS = _DIFFERENCES | _DRAWS | _PRODUCTS | _RECTIFIERS | _TAILS
_MAKERS |= {"Pow", "RealDiv", "Sum"}
_LISTS = frozenset({"TensorListGetItem", "TensorListSetItem", "TensorListStack"})
# Operations that make integers overflow.
_WRAPS: dict[str, Callable[..., np.ndarray]] = {
    "Add": np.add,
    "AddV2": np.add,
    "Mul": np.multiply,
    "Prod": np.prod,
    "Square": np.square,
    "Sub": np.subtract,
    "Sum": np.sum,
}
# Which elements of the output come from which of the input is known.
_ELEMENTWISE = op_types(OpFact.ELEMENTWISE) | {"Identity"}
_SUMS = op_types(OpFact.MOVES) | MATRIX_PRODUCTS
_SUMS |= op_types(OpFact.PICKS) | {"Cumprod", "Cumsum", "Einsum"}
_SUMS |= {"Max", "Mean", "Min", "Prod", "Split", "SplitV", "Sum", "Unpack"}


class Zero(NamedTuple):
    """Where a number became 0 that need not be, or an integer another one.

    Attributes:
      kind: `UNDERFLOW`, `CANCELLATION`, `RECTIFIED`, `DRAWN`, `OVERFLOW`, that of a
        denominator, or `WRAPPED`, that of integers.
      type: Type of the operation.
      place: Where it comes from.
      dtype: Name of the dtype of integers.
    """

    kind: str
    type: str
    place: Place
    dtype: str = ""


class _Mark(NamedTuple):
    end: Any
    where: np.ndarray
    zero: Zero


class LostDigits:
    """Knows which zeros of the tensors that are alive were made, and where.

    Args:
      largest: Number of elements of the largest tensor that is looked at.
    """

    def __init__(self, largest: float = math.inf) -> None:
        self._largest = largest
        self._marks: dict[int, _Mark] = {}
        # The marks of the items of lists, such as those of a `tf.TensorArray`.
        self._lists: dict[int, tuple[Any, dict[int, _Mark]]] = {}

    def observe(self, step: Step) -> None:
        """Follows the zeros, and what integers became, through one operation."""
        if step.type in _LISTS:
            self._observe_list(step)
        if step.type not in _MAKERS and not any(
            id(each) in self._marks for each in step.inputs
        ):
            return
        for output in filter(_is_real, step.outputs):
            if output.shape.num_elements() > self._largest:
                continue
            is_zero = values.array(output) == 0
            found = _made(step, is_zero) or self._passed(step, is_zero)
            if found is not None:
                self._mark(output, *found)

    def _mark(self, value: tf.Tensor, where: np.ndarray, zero: Zero) -> None:
        end = weakref.ref(value, _dropper(self._marks.pop, id(value)))
        self._marks[id(value)] = _Mark(end, where, zero)

    def _observe_list(self, step: Step) -> None:
        """Follows the zeros of items into a list, and out of it."""
        output = step.outputs[0]
        _, items = self._lists.get(id(step.inputs[0]), (None, {}))
        if step.type == "TensorListSetItem":
            number, item = int(step.inputs[1]), self._marks.get(id(step.inputs[2]))
            items = {key: each for key, each in items.items() if key != number}
            if item is not None:
                items[number] = item
            if items:
                end = weakref.ref(output, _dropper(self._lists.pop, id(output)))
                self._lists[id(output)] = end, items
        elif step.type == "TensorListGetItem":
            if found := items.get(int(step.inputs[1])):
                self._mark(output, found.where, found.zero)
        elif items and output.shape.num_elements() <= self._largest:
            where = np.zeros(output.shape, bool)
            for number, item in items.items():
                where[number] = item.where
            self._mark(output, where, next(iter(items.values())).zero)

    def behind(self, step: Step, nonfinite: np.ndarray) -> Zero | None:
        """Returns where the zero began that made the first element non-finite."""
        index = values.first(nonfinite)
        inputs = step.inputs
        if step.type in values.DENOMINATORS:
            inputs = [inputs[values.DENOMINATORS[step.type]]]
        for each in inputs:
            mark = self._marks.get(id(each))
            if mark is None:
                continue
            try:
                is_lost = np.broadcast_to(mark.where, nonfinite.shape)[index]
            except ValueError:
                is_lost = False
            if is_lost:
                return mark.zero
        return None

    def _passed(
        self, step: Step, is_zero: np.ndarray
    ) -> tuple[np.ndarray, Zero] | None:
        if step.type == "ConcatV2":
            axis = int(step.inputs[-1])
            return self._joined(step.inputs[:-1], lambda x: np.concatenate(x, axis))
        if step.type == "Pack":
            return self._joined(
                step.inputs, lambda x: np.stack(x, step.attribute("axis"))
            )
        for each in step.inputs:
            mark = self._marks.get(id(each))
            if mark is None:
                continue
            is_whole = mark.zero.kind == WRAPPED
            is_lost = np.ones_like(is_zero) if is_whole else is_zero
            is_own = step.type in _ELEMENTWISE
            if is_own:
                is_lost = is_lost & np.broadcast_to(mark.where, is_zero.shape)
            elif step.type not in _SUMS:
                continue
            if is_lost.any() and (
                is_own or is_whole or not self._has_other_zeros(step)
            ):
                return is_lost, mark.zero
        return None

    def _has_other_zeros(self, step: Step) -> bool:
        """Says whether another zero may be behind that of the output."""
        for each in filter(values.is_float, step.inputs):
            is_zero, mark = values.array(each) == 0, self._marks.get(id(each))
            if mark is not None:
                is_zero &= ~mark.where
            if is_zero.any():
                return True
        return False

    def _joined(
        self, parts: Sequence[Any], join: Callable[[list[np.ndarray]], np.ndarray]
    ) -> tuple[np.ndarray, Zero] | None:
        marks = [self._marks.get(id(each)) for each in parts]
        zeros = [mark.zero for mark in marks if mark is not None]
        if not zeros:
            return None
        where = [
            np.zeros(each.shape, bool) if mark is None else mark.where
            for each, mark in zip(parts, marks, strict=True)
        ]
        return join(where), zeros[0]


def _dropper(drop: Callable[..., Any], key: int) -> Callable[[Any], Any]:
    return lambda _: drop(key, None)


def _is_real(value: Any) -> bool:
    return isinstance(value, tf.Tensor) and (
        value.dtype.is_floating or value.dtype.is_integer
    )


def _wrapped(step: Step, like: np.ndarray) -> tuple[np.ndarray, Zero] | None:
    """Recognises integers beyond those that their dtype holds."""
    dtype = step.outputs[0].dtype
    if step.type not in _WRAPS or dtype.is_unsigned:
        return None
    numbers = [values.array(each).astype(float) for each in step.inputs]
    exact_of = _WRAPS[step.type]
    with np.errstate(over="ignore"):
        if step.type in {"Prod", "Sum"}:
            axes = tuple(np.ravel(values.array(step.inputs[1])))
            exact = exact_of(numbers[0], axis=axes).reshape(like.shape)
        else:
            exact = exact_of(*numbers)
    end = 2.0 ** (8 * dtype.size - 1)
    where = (exact >= end) | (exact < -end)
    if not where.any():
        return None
    return where, Zero(WRAPPED, step.type, step.place(), dtype.name)


def _made(step: Step, is_zero: np.ndarray) -> tuple[np.ndarray, Zero] | None:
    """Recognises zeros of what is not 0, draws of 0, and integers that overflow."""
    if step.outputs[0].dtype.is_integer and step.type not in _DRAWS:
        return _wrapped(step, is_zero)
    if not is_zero.any():
        return None
    kind = UNDERFLOW
    inputs: Sequence[np.ndarray]
    if step.type in _RECTIFIERS:
        kind = RECTIFIED
        where = is_zero & (values.array(step.inputs[0]) < 0)
    elif step.type in _DRAWS:
        kind, where = DRAWN, is_zero
    elif step.type in _TAILS:
        where = is_zero & np.isfinite(values.array(step.inputs[0]))
    elif step.type in _PRODUCTS:
        inputs = [values.array(each) for each in step.inputs]
        if step.type in {"Cumprod", "Prod"}:
            where = is_zero if (inputs[0] != 0).all() else is_zero & False
        else:
            where = is_zero.copy()
            for x in inputs:
                where &= x != 0
    elif step.type == "Pow":
        base, exponent = map(values.array, step.inputs)
        where = is_zero & (base != 0) & np.isfinite(base) & np.isfinite(exponent)
    elif step.type in _DIFFERENCES:
        kind = CANCELLATION
        where = is_zero & (values.array(step.inputs[0]) != 0)
    elif step.type == "RealDiv":
        kind = OVERFLOW
        above, below = map(values.array, step.inputs)
        where = is_zero & np.isinf(below) & (above != 0)
    else:
        return None
    return (where, Zero(kind, step.type, step.place())) if where.any() else None
