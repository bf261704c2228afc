"""Finds bounds of a tensor's elements from the operations that make it."""

import math
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from tfsafe.graph import OP_FACTS, SEGMENT_SUMS, OpFact, OpFacts, op_types
from tfsafe.rewriting.facts.interface import Bounds, GraphFacts

_ANY = Bounds(-math.inf, math.inf)
_POSITIVE = Bounds(0.0, math.inf)
_Rule = Callable[[tf.Operation, GraphFacts], Bounds]


def bounds_of(tensor: tf.Tensor, reader: GraphFacts) -> Bounds:
    """Returns bounds of `tensor`; `reader` knows those of its inputs."""
    op = tensor.op
    facts = OP_FACTS.get(op.type)
    if facts is not None and facts.bounds is not None:
        return _within(facts, op, reader)
    value = reader.constant(tensor)
    if value is not None:
        return _of_constant(value)
    if op.type in _KEEP_FIRST:
        return reader.bounds(op.inputs[0])
    rule = _RULES.get(op.type)
    return _ANY if rule is None or tensor.dtype.is_complex else rule(op, reader)


def _within(facts: OpFacts, op: tf.Operation, reader: GraphFacts) -> Bounds:
    """Tightens the bounds of a function by those of its argument."""
    fixed = Bounds(*facts.bounds) if facts.bounds else _ANY
    if op.type == "Square":
        a = reader.bounds(op.inputs[0])
        return Bounds(0.0, max(a.low * a.low, a.high * a.high))
    if facts.rising is None:
        return fixed
    a = reader.bounds(op.inputs[0])
    return Bounds(max(fixed.low, facts.rising(a.low)), facts.rising(a.high))


def _of_constant(value: np.ndarray) -> Bounds:
    if value.size == 0 or value.dtype.kind in "cOSU":
        return _ANY
    numbers = value.astype(np.float64)
    if np.isnan(numbers).any():
        return _ANY
    return Bounds(float(numbers.min()), float(numbers.max()))


def _times(a: float, b: float) -> float:
    return 0.0 if a == 0 or b == 0 else a * b


def _mul(op: tf.Operation, reader: GraphFacts) -> Bounds:
    a, b = (reader.bounds(each) for each in op.inputs)
    if reader.same(*op.inputs):
        ends = [_times(a.low, a.low), _times(a.high, a.high)]
        return Bounds(0.0 if a.low <= 0 <= a.high else min(ends), max(ends))
    if _are_opposite(op, reader):
        return Bounds(-math.inf, 0.0)
    products = [_times(x, y) for x in a for y in b]
    return Bounds(min(products), max(products))


def _are_opposite(op: tf.Operation, reader: GraphFacts) -> bool:
    """Returns whether `op` is `-x * x`."""
    x, y = op.inputs
    signs = [(reader.value_source(each).op, other) for each, other in ((x, y), (y, x))]
    return any(
        each.type == "Neg" and reader.same(each.inputs[0], other)
        for each, other in signs
    )


def _add(op: tf.Operation, reader: GraphFacts) -> Bounds:
    a, b = (reader.bounds(each) for each in op.inputs)
    return Bounds(a.low + b.low, a.high + b.high)


def _sub(op: tf.Operation, reader: GraphFacts) -> Bounds:
    a, b = (reader.bounds(each) for each in op.inputs)
    return Bounds(a.low - b.high, a.high - b.low)


def _div(op: tf.Operation, reader: GraphFacts) -> Bounds:
    a, b = (reader.bounds(each) for each in op.inputs)
    if b.low >= 0 >= a.high:
        return Bounds(-math.inf, 0.0)
    if a.low < 0 or b.low < 0:
        return _ANY
    high = math.inf if b.low == 0 or math.isinf(a.high) else a.high / b.low
    if _is_part(op, reader):
        high = min(high, 1.0)
    return Bounds(0.0 if b.high in {0, math.inf} else a.low / b.high, high)


def _is_part(op: tf.Operation, reader: GraphFacts) -> bool:
    """Returns whether `op` divides nonnegative numbers by a sum of the same ones."""
    total = reader.value_source(op.inputs[1]).op
    while total.type in {"ExpandDims", "Reshape", "Maximum"}:
        total = reader.value_source(total.inputs[0]).op
    return total.type == "Sum" and reader.same(total.inputs[0], op.inputs[0])


def _neg(op: tf.Operation, reader: GraphFacts) -> Bounds:
    a = reader.bounds(op.inputs[0])
    return Bounds(-a.high, -a.low)


def _maximum(op: tf.Operation, reader: GraphFacts) -> Bounds:
    a, b = (reader.bounds(each) for each in op.inputs)
    return Bounds(max(a.low, b.low), max(a.high, b.high))


def _minimum(op: tf.Operation, reader: GraphFacts) -> Bounds:
    a, b = (reader.bounds(each) for each in op.inputs)
    return Bounds(min(a.low, b.low), min(a.high, b.high))


def _pow(op: tf.Operation, reader: GraphFacts) -> Bounds:
    a = reader.bounds(op.inputs[0])
    exponent = reader.bounds(op.inputs[1])
    if a.low >= 0:
        return Bounds(0.0, 1.0 if a.high <= 1 and exponent.low >= 0 else math.inf)
    number = reader.scalar(op.inputs[1])
    if number is None or number % 2:
        return _ANY
    return Bounds(0.0, 1.0) if number > 0 and -1 <= a.low <= a.high <= 1 else _POSITIVE


def _reciprocal(op: tf.Operation, reader: GraphFacts) -> Bounds:
    a = reader.bounds(op.inputs[0])
    if a.low < 0:
        return _ANY
    return Bounds(
        0.0 if math.isinf(a.high) else 1 / a.high if a.high else math.inf,
        1 / a.low if a.low > 0 else math.inf,
    )


def _sum(op: tf.Operation, reader: GraphFacts) -> Bounds:
    a = reader.bounds(op.inputs[0])
    high = 1.0 if _is_pick(op, reader) else math.inf if a.high > 0 else 0.0
    return Bounds(0.0 if a.low >= 0 else -math.inf, high)


def _is_pick(op: tf.Operation, reader: GraphFacts) -> bool:
    """Returns whether parts of 1 are summed, each times at most 1."""
    factors = [op.inputs[0]]
    inner = reader.value_source(op.inputs[0]).op
    if inner.type == "Mul":
        factors = list(inner.inputs)
    if not all(reader.is_probability(each) for each in factors):
        return False
    axes = reader.axes(op.inputs[1], op.inputs[0].shape.rank)
    return axes is not None and any(
        (row := row_axis(each, reader))
        and row == axes_of_factor(each, op.inputs[0], axes)
        for each in factors
    )


def axes_of_factor(
    factor: tf.Tensor, whole: tf.Tensor, axes: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Returns the axes of `factor` that are `axes` of the product `whole`.

    None if the factor has not all of them, or may be repeated along them.
    """
    if factor is whole:
        return axes
    if whole.shape.rank is None or factor.shape.rank is None:
        return None
    found = tuple(axis - whole.shape.rank + factor.shape.rank for axis in axes)
    if min(found, default=0) < 0:
        return None
    # A size of 1 would be repeated; unknown sizes could be 1.
    spans = all(
        factor.shape[own] == whole.shape[axis] is not None
        or (factor.shape[own] or 0) > 1
        for own, axis in zip(found, axes, strict=True)
    )
    return found if spans else None


def row_axis(tensor: tf.Tensor, reader: GraphFacts) -> tuple[int, ...] | None:
    """Returns the axis along which the elements sum to at most 1."""
    op = reader.value_source(tensor).op
    rank = tensor.shape.rank
    last = -1 if rank is None else rank - 1
    if op.type == "Softmax":
        return (last,)
    if op.type == "OneHot" and reader.is_mask(tensor):
        axis = op.get_attr("axis")
        return (last if axis == -1 else axis,)
    if op.type == "Transpose":
        inner = row_axis(op.inputs[0], reader)
        order = reader.constant(op.inputs[1])
        if inner is None or order is None:
            return None
        return (list(order).index(inner[0] % order.size),)
    return None


def _sum_of(place: int) -> _Rule:
    def rule(op: tf.Operation, reader: GraphFacts) -> Bounds:
        return _POSITIVE if reader.is_nonnegative(op.inputs[place]) else _ANY

    return rule


def _union(places: slice) -> _Rule:
    def rule(op: tf.Operation, reader: GraphFacts) -> Bounds:
        found = [reader.bounds(each) for each in list(op.inputs)[places]]
        return Bounds(min(b.low for b in found), max(b.high for b in found))

    return rule


def _cast(op: tf.Operation, reader: GraphFacts) -> Bounds:
    source = op.inputs[0]
    if source.dtype == tf.bool:
        return Bounds(0.0, 1.0)
    if source.dtype.is_unsigned and op.outputs[0].dtype.is_floating:
        return _POSITIVE
    # What a narrow integer cannot hold changes its sign.
    keeps = op.outputs[0].dtype.is_floating and not source.dtype.is_complex
    return reader.bounds(source) if keeps else _ANY


def _one_hot(op: tf.Operation, reader: GraphFacts) -> Bounds:
    on, off = (reader.bounds(each) for each in op.inputs[2:4])
    return Bounds(min(on.low, off.low), max(on.high, off.high))


_KEEP_FIRST = op_types(OpFact.MOVES) | {"Max", "Mean", "Min"}
_RULES: dict[str, _Rule] = {
    "Add": _add,
    "AddV2": _add,
    "Cast": _cast,
    "ConcatV2": _union(slice(0, -1)),
    "Fill": _union(slice(1, 2)),
    "Maximum": _maximum,
    "Minimum": _minimum,
    "Mul": _mul,
    "Neg": _neg,
    "OneHot": _one_hot,
    "Pack": _union(slice(None)),
    "Pow": _pow,
    "Prod": lambda op, reader: (
        Bounds(0.0, 1.0)
        if reader.is_probability(op.inputs[0])
        else _POSITIVE
        if reader.is_nonnegative(op.inputs[0])
        else _ANY
    ),
    "RealDiv": _div,
    "Reciprocal": _reciprocal,
    "ScatterNd": _sum_of(1),
    "SegmentMean": _sum_of(0),
    "Select": _union(slice(1, 3)),
    "SelectV2": _union(slice(1, 3)),
    "Sub": _sub,
    "Sum": _sum,
    **dict.fromkeys(SEGMENT_SUMS, _sum_of(0)),
}
