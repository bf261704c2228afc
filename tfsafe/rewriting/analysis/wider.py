"""Computes sums of products and powers in float64, where those of float32 vanish."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import tensorflow as tf

from tfsafe import ops
from tfsafe.graph import (
    ADDITIONS,
    DIVISIONS,
    RECIPROCALS,
    SEGMENT_SUMS,
    SUMS,
    OpFact,
    op_types,
    raw_kernel,
)
from tfsafe.ops.formulas import unchanged_values
from tfsafe.ops.formulas.out_of_range import fractions
from tfsafe.ops.kernels.exponential import exp
from tfsafe.ops.kernels.statistics.moments import without_rounding
from tfsafe.ops.kernels.zeros import square
from tfsafe.rewriting.analysis.degrees import quotient_may_leave
from tfsafe.rewriting.analysis.raw_moments import is_difference, is_known_window
from tfsafe.rewriting.engine.rule import Build, Value
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.match.arithmetic import exp_less_one, square_of, terms, walk

Divide = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]


def _multiply(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    if x is y:
        return square(x)
    known = (tf.get_static_value(each) for each in (x, y))
    has_slope = any(each is not None and np.isfinite(each).all() for each in known)
    return x * y if has_slope else unchanged_values.multiply(x, y)


# The functions that have the gradients of `tfsafe.ops`.
SAFE: Mapping[str, Callable[..., tf.Tensor]] = {
    "Div": unchanged_values.divide,
    "DivNoNan": unchanged_values.divide_no_nan,
    "Exp": exp,
    "Expm1": ops.expm1,
    "Inv": unchanged_values.reciprocal,
    "Log": unchanged_values.log,
    "Log1p": ops.log1p,
    "Mul": _multiply,
    "Pow": unchanged_values.pow,
    "RealDiv": unchanged_values.divide,
    "Reciprocal": unchanged_values.reciprocal,
    "Rsqrt": unchanged_values.rsqrt,
    "Sqrt": ops.sqrt,
    "Square": square,
}
_STEEP: Mapping[str, Callable[[tf.Tensor], tf.Tensor]] = {
    "Acosh": unchanged_values.elementwise(tf.acosh),
    "Atanh": unchanged_values.elementwise(tf.atanh),
    "Cos": unchanged_values.elementwise(tf.cos),
    "Cosh": unchanged_values.elementwise(tf.cosh),
    "Sin": unchanged_values.elementwise(tf.sin),
    "Sinh": unchanged_values.elementwise(tf.sinh),
    "Tan": unchanged_values.elementwise(tf.tan),
}
_CONTRACTIONS = frozenset({"BatchMatMulV2", "Einsum", "MatMul"})
_POWERS = frozenset({"Pow", "Square", "SquaredDifference"})
_REDUCED = frozenset({"Max", "Mean", "Min", "Sum"})
_SUMS = _CONTRACTIONS | SEGMENT_SUMS | _REDUCED | {"ScatterNd", "SegmentMean"}
_LAYOUTS = frozenset({"GatherV2", "Neg", "Transpose", *op_types(OpFact.RESHAPES)})
_INSIDE = frozenset({
    *ADDITIONS,
    *op_types(OpFact.RESHAPES),
    *(SAFE.keys() - {"Exp", "Expm1", "Log"}),
    *_POWERS,
    *_SUMS,
    *("Abs", "BroadcastTo", "GatherV2", "Maximum", "Minimum", "Mul", "Neg", "Relu"),
    *("StopGradient", "StridedSlice", "Sub", "Tile", "Transpose"),
})
# They leave the range for arguments that are in it.
_GROWING = frozenset({"Exp", "Expm1", "Pow"})
_ELEMENTWISE = frozenset({
    *ADDITIONS,
    *_GROWING,
    *("Abs", "Div", "Inv", "Mul", "Neg", "RealDiv", "Reciprocal", "Sqrt", "Square"),
    "Sub",
})
_PARTS = _ELEMENTWISE | {"Maximum", "Minimum", "Rsqrt", "SquaredDifference"}
_MOVES = op_types(OpFact.MOVES | OpFact.PICKS | OpFact.RESHAPES)
_SINGLE = op_types(OpFact.ELEMENTWISE) | {"ReadVariableOp", "Split", "SplitV", "Unpack"}
# They are 0 only where all of their inputs are, or two of these are alike.
_TOGETHER = frozenset({*ADDITIONS, "Maximum", "Minimum", "Sub"})
# Longer formulas are computed as they are written.
_DEPTH = 12


def may_vanish(reader: Reader, tensor: tf.Tensor, depth: int = _DEPTH) -> bool:
    """Returns whether a tensor of float32 adds up products or powers of others.

    These may all underflow, so that the sum is 0, or overflow.
    """
    op = reader.op(tensor)
    if tensor.dtype != tf.float32 or not depth or op.type not in _INSIDE:
        return False
    is_product = op.type == "Mul" or op.type in _CONTRACTIONS
    if is_product and square_of(reader, tensor) is None:
        if all(_is_open(reader, each) for each in op.inputs):
            return True
    elif op.type in _POWERS | {"Mul", "Sqrt"}:
        return _is_open(reader, op.inputs[0])
    if op.type in _TOGETHER:
        others = [each for each in op.inputs if not reader.is_number(each, 0)]
        return all(may_vanish(reader, each, depth - 1) for each in others)
    if op.type in DIVISIONS | RECIPROCALS and may_overflow(
        reader, op.inputs[-1], depth - 1
    ):
        return True
    return any(may_vanish(reader, each, depth - 1) for each in op.inputs)


def may_overflow(reader: Reader, tensor: tf.Tensor, depth: int) -> bool:
    """Returns whether one of the terms of a tensor may leave the range of float32."""
    op = reader.op(tensor)
    if not depth or op.type not in _TOGETHER:
        return may_vanish(reader, tensor, depth)
    return any(may_overflow(reader, each, depth - 1) for each in op.inputs)


def may_leave_range(
    reader: Reader, tensor: tf.Tensor, depth: int = _DEPTH // 2
) -> bool:
    """Returns whether a formula of float32 has an exponential or open power."""
    op = reader.op(tensor)
    if tensor.dtype != tf.float32 or not depth or op.type not in _ELEMENTWISE:
        return False
    if op.type in _GROWING:
        return all(_is_open(reader, each) for each in op.inputs)
    return any(may_leave_range(reader, each, depth - 1) for each in op.inputs)


def may_overflow_together(reader: Reader, x: tf.Tensor, y: tf.Tensor) -> bool:
    """Returns whether `x / y` is of polynomials in float32 with a variable in common.

    Such as `x * x / (x * x + c)`, `a * x / (b + c * x)` and `x / (x * x + c) ** 1.5`.
    """
    if x.dtype != tf.float32:
        return False
    power = reader.scalar(y.op.inputs[1]) if y.op.type == "Pow" else None
    base = y.op.inputs[0] if power is not None and power > 0 else y
    found = terms(reader, base)
    if len(found) < 2 or not any(_is_product(reader, each.tensor) for each in found):
        return False
    if math.isfinite(max(map(abs, reader.bounds(y)))):
        return False
    above, below = _variables(reader, x), _variables(reader, y)
    is_one_formula = not above.keys().isdisjoint(below)
    return is_one_formula and not _is_of_moments(reader, above | below)


def may_leave(reader: Reader, x: tf.Tensor, y: tf.Tensor) -> bool:
    """Returns whether sides of `x / y` without sums over axes may be out of range."""
    return (
        all(may_leave_range(reader, each) for each in (x, y))
        or may_overflow_together(reader, x, y)
        or quotient_may_leave(reader, x, y)
    )


def _is_product(reader: Reader, tensor: tf.Tensor) -> bool:
    op = reader.op(tensor)
    if op.type in DIVISIONS:
        return _is_product(reader, op.inputs[0])
    is_product = op.type == "Mul" and square_of(reader, tensor) is None
    factors = op.inputs if is_product else op.inputs[:1]
    return op.type in _POWERS | {"Mul"} and all(_is_open(reader, x) for x in factors)


def _variables(reader: Reader, tensor: tf.Tensor) -> dict[int, tf.Tensor]:
    """Returns the tensors that an elementwise formula begins with, by number."""
    return {
        reader.number(each): each
        for each, is_inside in walk(reader, tensor, _ELEMENTWISE | _POWERS, _DEPTH)
        if not is_inside and reader.constant(each) is None
    }


def _is_of_moments(reader: Reader, variables: Mapping[int, tf.Tensor]) -> bool:
    """Returns whether two or more are sums, whose products other rules know."""

    def is_sum(tensor: tf.Tensor) -> bool:
        op = reader.op(tensor)
        while op.type in _MOVES:
            op = reader.op(op.inputs[0])
        return bool(op.inputs) and op.type not in _SINGLE

    return sum(map(is_sum, variables.values())) > 1


def adds_products(reader: Reader, *tensors: tf.Tensor) -> bool:
    """Returns whether formulas of any dtype all have sums and products or powers.

    A number may stand in place of one of them.
    """

    def adds(tensor: tf.Tensor) -> bool:
        inside = [each for each, _ in walk(reader, tensor, _INSIDE, _DEPTH // 2)]
        has_sum = any(reader.op(each).type in {"Mean", "Sum"} for each in inside)
        return has_sum and any(_is_product(reader, each) for each in inside)

    formulas = [each for each in tensors if reader.constant(each) is None]
    return bool(formulas) and all(map(adds, formulas))


def adds_up(reader: Reader, tensor: tf.Tensor, depth: int = _DEPTH) -> bool:
    """Returns whether a tensor is a sum over axes or segments, also moved about."""
    op = reader.op(tensor)
    is_moved = bool(depth) and op.type in _LAYOUTS
    return op.type in _SUMS or (is_moved and adds_up(reader, op.inputs[0], depth - 1))


def _is_open(reader: Reader, tensor: tf.Tensor) -> bool:
    """Returns whether a tensor may be tiny or huge: not a constant or a mask."""
    return reader.constant(tensor) is None and not reader.is_mask(tensor)


def run(op: tf.Operation, inputs: Sequence[tf.Tensor]) -> tf.Tensor:
    """Computes an operation in the dtype of other inputs, with safe gradients."""
    safe = SAFE.get(op.type) or _STEEP.get(op.type)
    return raw_kernel(op)(inputs)[0] if safe is None else safe(*inputs)


class _Wide(dict[tuple[Value, str, bool], tuple[tf.Tensor, int]]):
    """Tensors in float64, and the depth of the formulas that they are made by."""


def in_float64(
    reader: Reader, tensor: tf.Tensor, value: Value, is_elementwise: bool = False
) -> tf.Tensor:
    """Builds a tensor in float64; what formulas have in common is built for all.

    Args:
      reader: Reader of the graph.
      tensor: The tensor.
      value: Returns the counterpart of a tensor.
      is_elementwise: Whether the formula begins after the last sum over an axis.

    Returns:
      The tensor in float64.
    """
    is_elementwise |= may_leave_range(reader, tensor)
    inside = _PARTS if is_elementwise else _INSIDE
    made = reader.memory.setdefault(_Wide, _Wide())

    def wide(tensor: tf.Tensor, depth: int) -> tf.Tensor:
        if tensor.dtype != tf.float32:
            return value(tensor)
        source = reader.source(tensor)
        key = value, source.name, is_elementwise
        if key not in made or made[key][1] < depth:
            made[key] = compute(source, depth), depth
        return made[key][0]

    def is_end(tensor: tf.Tensor, depth: int) -> bool:
        op = reader.op(tensor)
        is_inside = op.type in inside
        if is_elementwise:
            # Computed from its own sums in float64, and rounded.
            is_inside = is_inside and not is_difference(reader, op)
        else:
            is_inside = is_inside or is_known_window(reader, op)
        is_given = reader.source(tensor).name in reader.kept
        return not (depth and is_inside) or is_given

    def compute(tensor: tf.Tensor, depth: int) -> tf.Tensor:
        op = tensor.op
        if is_end(tensor, depth) or reader.constant(tensor) is not None:
            return tf.cast(value(tensor), tf.float64)
        less_one = exp_less_one(reader, op)
        if less_one is not None:
            exponent, sign = less_one
            return sign * ops.expm1(wide(exponent, depth - 1))
        inputs = [wide(each, depth - 1) for each in op.inputs]
        result = run(op, inputs)
        if is_difference(reader, op):
            return without_rounding(result, inputs[0])
        # What is made of one term may be rounded in the other, as in `t - sort(t)`.
        ends = {is_end(each, depth - 1) for each in op.inputs if reader.op(each).inputs}
        if op.type in SUMS and len(ends) == 2:
            return without_rounding(result, inputs[0], 2.0**-23)
        return result

    return wide(tensor, _DEPTH)


class _Safe(dict[tuple[Value, str, bool], tf.Tensor]):
    """Sums of products, and parts of them, whose slopes are never 0 times infinity."""


def with_safe_products(
    reader: Reader, tensor: tf.Tensor, value: Value, together: bool = False
) -> tf.Tensor:
    """Builds a sum of products and powers: no slope is 0 times infinity."""
    inside = ADDITIONS | {"Mul", *DIVISIONS} if together else ADDITIONS | {"Mul"}
    made = reader.memory.setdefault(_Safe, _Safe())

    def safe(tensor: tf.Tensor) -> tf.Tensor:
        source = reader.source(tensor)
        key = value, source.name, together
        if key not in made:
            is_kept = source.name in reader.kept
            made[key] = value(source) if is_kept else compute(source)
        return made[key]

    def compute(tensor: tf.Tensor) -> tf.Tensor:
        op = tensor.op
        # It has a rule of its own: its terms cancel.
        if is_difference(reader, op):
            return value(tensor)
        is_open = together or all(reader.constant(each) is None for each in op.inputs)
        is_inside = op.type in inside and is_open
        may_leave = together or may_leave_range(reader, tensor)
        has_steep = op.type in ADDITIONS and any(
            _is_steep(reader, each) for each in op.inputs
        )
        if has_steep or (is_inside and may_leave):
            return run(op, [safe(each) for each in op.inputs])
        if _is_steep(reader, tensor):
            count = 2 if op.type == "Mul" else 1
            rest = [value(each) for each in op.inputs[count:]]
            return run(op, [*map(safe, op.inputs[:count]), *rest])
        return value(tensor)

    return safe(tensor)


def _is_steep(reader: Reader, tensor: tf.Tensor) -> bool:
    """Returns whether a tensor is a power or product of products, or a sum of them."""
    op = reader.op(tensor)
    if op.type in {"Mul", "Square"}:
        return any(may_vanish(reader, each) for each in op.inputs)
    # One to a tensor may have a limit, which its own rule knows.
    if op.type == "Pow" and reader.scalar(op.inputs[1]) is None:
        return False
    return op.type in _REDUCED | {"Pow"} and may_vanish(reader, tensor)


def quotient(reader: Reader, x: tf.Tensor, y: tf.Tensor, divide: Divide) -> Build:
    """Returns how to build a quotient, from float64 where a side is out of range."""
    together = may_overflow_together(reader, x, y)
    squares = together or quotient_may_leave(reader, x, y)
    is_elementwise = together or (squares and not _adds_products(reader, x, y))

    def build(value: Value) -> tf.Tensor:
        a, b = (with_safe_products(reader, each, value, together) for each in (x, y))
        c, d = (in_float64(reader, each, value, is_elementwise) for each in (x, y))
        return fractions.quotient_in_range(a, b, c, d, divide, squares=squares)

    return build


def product(reader: Reader, x: tf.Tensor, y: tf.Tensor) -> Build:
    """Returns how to build a product, from float64 where a factor is out of range."""
    is_elementwise = not _adds_products(reader, x, y)

    def build(value: Value) -> tf.Tensor:
        a, b = (with_safe_products(reader, each, value) for each in (x, y))
        c, d = (in_float64(reader, each, value, is_elementwise) for each in (x, y))
        return fractions.product_in_range(a, b, c, d)

    return build


def function_of(
    reader: Reader, x: tf.Tensor, function: Callable[..., tf.Tensor], has_limit: bool
) -> Build:
    """Returns how to build a function, from float64 where `x` is out of range."""

    def build(value: Value) -> tf.Tensor:
        args = reader, x, value, not _adds_products(reader, x)
        # Where another rule knows its limit, that makes it.
        plain = value(x) if has_limit else with_safe_products(*args)
        return fractions.in_range(function, plain, in_float64(*args))

    return build


def _adds_products(reader: Reader, *tensors: tf.Tensor) -> bool:
    """Returns whether formulas have sums over axes of products or powers."""
    return any(
        reader.op(each).type in _SUMS and may_vanish(reader, each)
        for tensor in tensors
        for each, _ in walk(reader, tensor, _INSIDE - _SUMS, _DEPTH)
    )
