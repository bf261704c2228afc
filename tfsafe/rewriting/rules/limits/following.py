"""Finds out whether a formula depends on one argument by operations that are known."""

import math
import operator
from collections.abc import Callable, Mapping
from typing import NamedTuple

import tensorflow as tf

from tfsafe.graph import ADDITIONS, DIVISIONS, RECIPROCALS, SUMS
from tfsafe.ops.formulas.differences.divided_differences import DIVIDED_DIFFERENCES
from tfsafe.rewriting.facts.layouts import reshapes
from tfsafe.rewriting.facts.tensors import Reader, is_float
from tfsafe.rewriting.log_space.logsumexp_by_hand import any_logsumexp
from tfsafe.rewriting.match.linear import parts

REDUCED = frozenset({"Mean", "Sum"})
_FOLLOWED = frozenset({
    *DIVIDED_DIFFERENCES,
    *DIVISIONS,
    *RECIPROCALS,
    *SUMS,
    *("Mul", "Neg", "Pow"),
})
_CURVES = {"Exp", "Expm1", "Log", "Log1p", "Pow"}
_NUMBERS: Mapping[str, Callable[..., float]] = {
    **dict.fromkeys(ADDITIONS, lambda *terms: sum(terms)),
    **dict.fromkeys(DIVISIONS, operator.truediv),
    "Exp": math.exp,
    "Expm1": math.expm1,
    "Log": math.log,
    "Log1p": math.log1p,
    "Mul": operator.mul,
    "Neg": operator.neg,
    "Pow": math.pow,
    "Sub": operator.sub,
}
# Formulas of more operations are left alone.
_MOST = 64
# Points nearer to 0 are epsilons that someone added.
_LEAST = 1e-3


class Step(NamedTuple):
    """A divisor `factor * (argument - start)`."""

    divisor: tf.Tensor
    argument: tf.Tensor
    factor: float
    start: float


def step_of(reader: Reader, divisor: tf.Tensor) -> Step | None:
    """Reads a divisor as a step; None for a sum of tensors and next to an epsilon."""
    found = parts(reader, divisor)
    tensors = [each for each in found if each.tensor is not None]
    if len(tensors) != 1 or tensors[0].tensor is None or tensors[0].axes is not None:
        return None
    factor, argument = tensors[0].factor, reader.source(tensors[0].tensor)
    start = -sum(each.factor for each in found if each.tensor is None) / factor
    if reader.constant(argument) is not None or 0 < abs(start) < _LEAST:
        return None
    return Step(divisor, argument, factor, start)


class Follower:
    """Finds what depends on the argument of a step.

    Args:
      reader: Reader of the graph.
      step: The step.

    Attributes:
      reader: As given.
      step: As given.
    """

    def __init__(self, reader: Reader, step: Step):
        self.reader = reader
        self.step = step
        self._known: dict[str, bool] = {}
        self._curved: dict[str, bool] = {}
        self._starts: dict[str, float | None] = {}
        self._axes: dict[str, frozenset[int] | None] = {}

    def depends(self, tensor: tf.Tensor) -> bool:
        """Returns whether a tensor depends on the argument; also for large formulas."""
        tensor = self.reader.source(tensor)
        if tensor.name not in self._known:
            if len(self._known) > _MOST:
                return True
            self._known[tensor.name] = False
            self._known[tensor.name] = self.is_argument(tensor) or (
                self.reader.constant(tensor) is None
                and any([self.depends(each) for each in tensor.op.inputs])
            )
        return self._known[tensor.name]

    def is_argument(self, tensor: tf.Tensor) -> bool:
        """Returns whether a tensor is the argument."""
        return self.reader.same(tensor, self.step.argument)

    def can_follow(self, tensor: tf.Tensor) -> bool:
        """Returns whether the operations from the argument to a tensor are known.

        Each element depends on the one element of the argument with which a division
        pairs it: the argument is not summed over, and its axes stay in their places.
        """
        # This counts what the tensor is made of.
        self.depends(tensor)
        if len(self._known) > _MOST:
            return False
        own, found = _open_axes(self.step.argument), self._axes_of(tensor)
        return own is not None and found is not None and found <= own

    def _axes_of(self, tensor: tf.Tensor) -> frozenset[int] | None:
        """Returns the axes along which a tensor has other elements of the argument.

        They are counted from the end. None if elements meet in a sum, or if an
        operation is not known.
        """
        tensor = self.reader.source(tensor)
        if tensor.name not in self._axes:
            self._axes[tensor.name] = self._found_axes(tensor)
        return self._axes[tensor.name]

    def _found_axes(self, tensor: tf.Tensor) -> frozenset[int] | None:
        if not self.depends(tensor):
            return frozenset()
        if self.is_argument(tensor):
            return _open_axes(tensor)
        op, summed = self.reader.op(tensor), any_logsumexp(tensor, self.reader)
        if not is_float(tensor):
            return None
        if summed is not None:
            return self._kept_axes(*summed)
        if op.type in REDUCED:
            axes = self.reader.axes(op.inputs[1], op.inputs[0].shape.rank)
            return self._kept_axes(op.inputs[0], axes, op.get_attr("keep_dims"))
        if reshapes(self.reader, op):
            return self._moved_axes(op, tensor)
        if op.type not in _FOLLOWED or self._has_pole(op):
            return None
        found = [self._axes_of(each) for each in op.inputs]
        known = [each for each in found if each is not None]
        return frozenset().union(*known) if len(known) == len(found) else None

    def _kept_axes(
        self, x: tf.Tensor, reduced: tuple[int, ...] | None, keepdims: bool
    ) -> frozenset[int] | None:
        axes, rank = self._axes_of(x), x.shape.rank
        if axes is None or rank is None or not reduced:
            return None
        gone = {axis % rank - rank for axis in reduced}
        if axes & gone:
            return None
        if keepdims:
            return axes
        return frozenset(axis + sum(each > axis for each in gone) for axis in axes)

    def _moved_axes(self, op: tf.Operation, moved: tf.Tensor) -> frozenset[int] | None:
        x, *shape = op.inputs
        axes = self._axes_of(x)
        if x.shape.rank is None or any(map(self.depends, shape)):
            return None
        if not axes:
            return axes
        old, new = (sorted(_open_axes(each) or ()) for each in (x, moved))
        if [x.shape[i] for i in old] != [moved.shape[i] for i in new]:
            return None
        places = dict(zip(old, new, strict=True))
        if not axes <= places.keys():
            return None
        return frozenset(places[axis] for axis in axes)

    def _has_pole(self, op: tf.Operation) -> bool:
        """Returns whether an operation divides by what is 0 before the step."""
        return op.type in DIVISIONS | RECIPROCALS and self._start(op.inputs[-1]) == 0

    def may_start_at(self, tensor: tf.Tensor, wanted: float) -> bool:
        """Returns False for a tensor that is another number before the step."""
        found = self._start(tensor)
        return found is None or abs(found - wanted) < _LEAST

    def _start(self, tensor: tf.Tensor) -> float | None:
        """Returns the number that a tensor is before the step; NaN at a pole."""
        if tensor.name not in self._starts:
            self._starts[tensor.name] = self._found_start(tensor)
        return self._starts[tensor.name]

    def _found_start(self, tensor: tf.Tensor) -> float | None:
        known = self.reader.scalar(tensor)
        if known is not None or not self.depends(tensor):
            return known
        if self.is_argument(tensor):
            return self.step.start
        op = self.reader.op(tensor)
        inputs = [self._start(each) for each in op.inputs]
        if any(each is not None and math.isnan(each) for each in inputs):
            return math.nan
        if op.type == "Mul" and 0 in inputs:
            return 0.0
        if op.type == "Pow" and inputs[1] == 0:
            return 1.0
        if op.type == "Mean" or reshapes(self.reader, op):
            return inputs[0]
        numbers = [each for each in inputs if each is not None]
        function = _NUMBERS.get(op.type)
        if function is None or len(numbers) < len(inputs):
            return None
        try:
            return function(*numbers)
        except (ArithmeticError, ValueError):
            return math.nan

    def is_curved(self, tensor: tf.Tensor) -> bool:
        """Returns whether a function is between the argument and a tensor."""
        if not self.depends(tensor) or self.is_argument(tensor):
            return False
        op = self.reader.op(tensor)
        if op.name not in self._curved:
            inside = (self.is_curved(each) for each in op.inputs)
            self._curved[op.name] = op.type in _CURVES or any(inside)
        return self._curved[op.name]


class _Curved(frozenset[str]):
    """Names of the operations that a curve is, or comes before."""


def has_curve(reader: Reader, op: tf.Operation) -> bool:
    """Returns whether an operation is a curve or is computed from one."""
    known: _Curved | None = reader.memory.get(_Curved)
    if known is None:
        found: set[str] = set()
        for each in reader.graph.get_operations():
            above = (tensor.op.name in found for tensor in each.inputs)
            if each.type in _CURVES or any(above):
                found.add(each.name)
        known = reader.memory[_Curved] = _Curved(found)
    return op.name in known


def _open_axes(tensor: tf.Tensor) -> frozenset[int] | None:
    """Returns the axes whose size is not 1, from the end; None for an unknown rank."""
    rank = tensor.shape.rank
    if rank is None:
        return None
    return frozenset(i - rank for i, size in enumerate(tensor.shape) if size != 1)
