"""Rules for norms, deviations and means that were written out by hand."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from tfsafe import ops
from tfsafe.graph import DIVISIONS, upstream
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.finiteness import is_watched
from tfsafe.rewriting.facts.tensors import Reader, both_ways, is_float
from tfsafe.rewriting.match.arithmetic import (
    Base,
    Term,
    number,
    root_of,
    squared,
    terms,
    without_floor,
)
from tfsafe.rewriting.match.reductions import (
    Norm,
    Reduction,
    along,
    norm,
    reduction,
    reshaped,
    single_mean,
    sum_of_squares,
)
from tfsafe.rewriting.match.trees import Tree, Trees
from tfsafe.rewriting.rules import references
from tfsafe.rewriting.rules.differences.cancellation import difference_form
from tfsafe.rewriting.rules.masks import empty_sums

# A vector shorter than the root of this counts as a zero vector.
_LARGEST_EPSILON = 1e-6
# More lengths than a few are put into one vector. More than many are left alone.
_FEW, _MANY = 4, 64
_LARGER = ("Maximum", ("Abs", "x"), ("Abs", "y"))
_SMALLER = ("Minimum", ("Abs", "x"), ("Abs", "y"))


def _match_norm(op: tf.Operation, reader: Reader) -> Build | None:
    found = norm(reader, op.outputs[0])
    if found is None:
        return None
    base, axes, keepdims = found
    return lambda value: ops.norm(base.make(value), axis=axes, keepdims=keepdims)


def _match_p_norm(op: tf.Operation, reader: Reader) -> Build | None:
    outer = number(reader, op.inputs[1], op.inputs[0])
    total = reduction(reader, op.inputs[0], "Sum")
    power = None if total is None else reader.op(total.x)
    if not outer or total is None or power is None:
        return None
    if power.type != "Pow" or reader.op(power.inputs[0]).type != "Abs":
        return None
    order = number(reader, power.inputs[1], power.inputs[0])
    is_one_axis = total.axes is not None and len(total.axes) == 1
    if order is None or order < 1 or not is_one_axis:
        return None
    if abs(outer * order - 1) > 1e-6:
        return None
    x = reader.op(power.inputs[0]).inputs[0]
    return lambda value: ops.norm(
        value(x), ord=order, axis=total.axes, keepdims=total.keepdims
    )


def _match_std(op: tf.Operation, reader: Reader) -> Build | None:
    inside = root_of(reader, op.outputs[0])
    if inside is None:
        return None
    inside = without_floor(reader, inside)
    found = deviation_form(reader, inside) or difference_form(reader, inside)
    if found is None:
        return None
    x, axes, keepdims = found
    return lambda value: ops.std(value(x), axis=axes, keepdims=keepdims)


def deviation_form(reader: Reader, tensor: tf.Tensor) -> Reduction | None:
    """Reads the mean of the squared distances from the mean."""
    whole = reduction(reader, tensor, "Mean")
    base = None if whole is None else squared(reader, whole.x)
    if whole is None or base is None:
        return None
    difference = (base.x, base.minus)
    if base.minus is None and reader.op(base.x).type == "Sub":
        difference = tuple(reader.op(base.x).inputs)
    for x, mean in (difference, difference[::-1]):
        if x is None or mean is None:
            return None
        middle = single_mean(reader, mean)
        if middle is None or middle.axes != whole.axes or not reader.same(middle.x, x):
            continue
        # The mean has to line up with its own row.
        is_whole = middle.axes is None or len(middle.axes) == x.shape.rank
        if middle.keepdims or is_whole:
            return Reduction(x, whole.axes, whole.keepdims)
    return None


def _match_hypot(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches the root of a sum of squares, and of sums of squares over axes."""
    inside = root_of(reader, op.outputs[0])
    if inside is None:
        return None
    lengths: list[Build] = []
    shapes: list[tf.TensorShape] = []
    floor = 0.0
    for term in terms(reader, inside):
        constant = reader.scalar(term.tensor)
        if constant is not None and term.tensor.shape.rank == 0:
            if term.factor != 1 or constant < 0:
                return None
            floor += constant
            continue
        length = _length(reader, term)
        if length is None:
            return None
        lengths.append(length)
        shapes.append(term.tensor.shape)
    count = len(lengths) + bool(floor)
    if not lengths or count < 2 or (count > _FEW and not _are_scalars(shapes)):
        return None
    return _hypot(lengths, floor)


def _length(reader: Reader, term: Term) -> Build | None:
    """Returns how to build the root of a square, or of a sum of squares over axes."""
    base = squared(reader, term.tensor)
    if base is not None:
        return base.make if term.factor == 1 else None
    op, factor = reader.op(term.tensor), term.factor
    whole = sum_of_squares(reader, term.tensor)
    if op.type == "L2Loss":
        whole, factor = Norm(Base(op.inputs[0]), None, False), factor / 2
    if whole is None or factor <= 0:
        return None
    known, root = whole, math.sqrt(factor)

    def build(value: Value) -> tf.Tensor:
        x = known.base.make(value)
        length = ops.norm(x, axis=known.axes, keepdims=known.keepdims)
        return length if root == 1 else root * length

    return build


def _are_scalars(shapes: Sequence[tf.TensorShape]) -> bool:
    return len(shapes) <= _MANY and all(shape.rank == 0 for shape in shapes)


def _hypot(parts: Sequence[Build], floor: float) -> Build:
    def build(value: Value) -> tf.Tensor:
        lengths = [part(value) for part in parts]
        if floor:
            # First, so that no partial length is 0, where curvature is lost.
            lengths.insert(0, tf.constant(floor**0.5, lengths[0].dtype))
        if len(lengths) > _FEW:
            return ops.norm(tf.stack(lengths))
        total = lengths[0]
        for each in lengths[1:]:
            total = ops.hypot(total, each)
        return total

    return build


class UnitVector(NamedTuple):
    """A vector `x` over its length along `axes`, or over the root of `epsilon`."""

    x: tf.Tensor
    axes: tuple[int, ...] | None
    epsilon: float


def _match_unit(op: tf.Operation, reader: Reader) -> Build | None:
    if is_watched(reader, op):
        return None
    found = unit_vector(reader, op)
    if found is None:
        return _scaled_unit(op, reader)
    x, axes, epsilon = found
    return lambda value: ops.l2_normalize(value(x), axis=axes, epsilon=epsilon)


def _scaled_unit(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `x * (c / norm(x))`; c may not be 0 together with x."""
    for x, quotient in both_ways(op, "Mul") if is_float(op.outputs[0]) else ():
        inner = reader.op(quotient)
        if inner.type not in DIVISIONS:
            continue
        c, length = inner.inputs
        found = _over_length(reader, x, length)
        if found is not None and not _is_made_of(reader, c, x):
            axes, epsilon = found.axes, found.epsilon
            return lambda value: (
                value(c) * ops.l2_normalize(value(x), axis=axes, epsilon=epsilon)
            )
    return None


def _is_made_of(reader: Reader, tensor: tf.Tensor, x: tf.Tensor) -> bool:
    """Returns whether a tensor is computed from `x`; also of a long formula."""
    behind = upstream([tensor], lambda op: op.inputs)
    return any(
        count == _MANY or reader.same(each, x) for count, each in enumerate(behind)
    )


def unit_vector(reader: Reader, op: tf.Operation) -> UnitVector | None:
    """Reads a vector over its length, or times the inverse of it."""
    if not op.outputs or not is_float(op.outputs[0]):
        return None
    if op.type == "Mul":
        return _by_rsqrt(reader, op)
    return _over_length(reader, *op.inputs) if op.type in DIVISIONS else None


def _over_length(reader: Reader, x: tf.Tensor, divisor: tf.Tensor) -> UnitVector | None:
    for tensor in reshaped(reader, divisor):
        found = norm(reader, tensor)
        if found is not None:
            return _unit(reader, x, divisor, found, 0.0)
    for length, floor in both_ways(reader.op(divisor), "Maximum"):
        found, epsilon = norm(reader, length), number(reader, floor, length)
        if found is not None and epsilon is not None and epsilon > 0:
            return _unit(reader, x, length, found, epsilon**2)
    return None


def _by_rsqrt(reader: Reader, op: tf.Operation) -> UnitVector | None:
    for x, inverse in both_ways(op, "Mul"):
        root = reader.op(inverse)
        least = 0.0
        for each, cap in both_ways(root, "Minimum"):
            largest = reader.scalar(cap)
            if largest is not None and largest > 0 and cap.shape.rank == 0:
                root, least = reader.op(each), largest**-2
        if root.type != "Rsqrt":
            continue
        total = root.inputs[0]
        found = sum_of_squares(reader, total)
        if found is not None:
            return _unit(reader, x, total, found, least)
        for inside, floor in both_ways(reader.op(total), "Maximum"):
            found = sum_of_squares(reader, inside)
            epsilon = number(reader, floor, inside)
            if found is not None and epsilon is not None and epsilon >= 0:
                return _unit(reader, x, inside, found, epsilon)
    return None


def _unit(
    reader: Reader, x: tf.Tensor, length: tf.Tensor, found: Norm, epsilon: float
) -> UnitVector | None:
    if found.base.minus is not None or not reader.same(found.base.x, x):
        return None
    if epsilon > _LARGEST_EPSILON or not along(reader, length, found, x):
        return None
    return UnitVector(x, found.axes, epsilon)


RULES = (
    Rule(
        name="norm",
        before="sqrt(sum(x * x))",
        after="ops.norm(x)",
        fails_when="x = 0; a square overflows or underflows",
        reference=references.NORM,
        op_types=["Sqrt", "Pow", "EuclideanNorm"],
        match=_match_norm,
    ),
    Rule(
        name="p-norm",
        before="sum(abs(x) ** p) ** (1 / p)",
        after="ops.norm(x, ord=p)",
        fails_when="x = 0; a power overflows or underflows",
        reference=references.NORM,
        op_types=["Pow"],
        match=_match_p_norm,
    ),
    Rule(
        name="std",
        before="sqrt(mean((x - mean(x)) ** 2))",
        after="ops.std(x)",
        fails_when="all elements are equal; a square overflows",
        reference=references.VARIANCE,
        op_types=["Sqrt", "Pow"],
        match=_match_std,
    ),
    Rule(
        name="hypot",
        before="sqrt(x * x + y * y), sqrt(sum(x * x) + sum(y * y))",
        after="ops.hypot(x, y), ops.hypot(ops.norm(x), ops.norm(y))",
        fails_when="x = y = 0; a square overflows or underflows",
        reference="tfsafe.ops.hypot",
        op_types=["Sqrt", "Pow"],
        match=_match_hypot,
    ),
    Rule(
        name="scaled-hypot",
        before="m * sqrt(1 + (n / m) ** 2), of the larger and the smaller magnitude",
        after="ops.hypot(x, y)",
        fails_when="x = y: the maximum and the minimum split the gradient wrongly",
        reference="tfsafe.ops.hypot",
        match=Trees(
            Tree(
                (
                    "Mul",
                    _LARGER,
                    (
                        "Sqrt",
                        ("Add", 1, ("Square", ("RealDiv|DivNoNan", _SMALLER, _LARGER))),
                    ),
                ),
                ops.hypot,
            )
        ),
    ),
    Rule(
        name="unit-vector",
        before="x / norm(x)",
        after="ops.l2_normalize(x)",
        fails_when="x = 0; a square overflows or underflows",
        reference=references.NORM,
        op_types=DIVISIONS,
        match=_match_unit,
    ),
    Rule(
        name="unit-vector-by-rsqrt",
        before="x * rsqrt(maximum(sum(x * x), epsilon)), x * (c / norm(x))",
        after="ops.l2_normalize(x, epsilon=epsilon), c * ops.l2_normalize(x)",
        fails_when="x = 0; a square overflows or underflows, or c over one",
        reference=references.NORM,
        op_types=["Mul"],
        match=_match_unit,
    ),
    *empty_sums.RULES,
)
