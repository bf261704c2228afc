"""Finds products of float32 that leave the range, in formulas that do not."""

import math

import tensorflow as tf

from tfsafe.graph import ADDITIONS, DIVISIONS, RECIPROCALS
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.match.arithmetic import number, terms
from tfsafe.rewriting.match.products import factored

_SUMS = ADDITIONS | {"Sub"}
_ALIKE = {"Abs", "Maximum", "Minimum", "Neg"}
_PRODUCTS = DIVISIONS | {"Mul"}
# Formulas that are deeper count as one factor.
_DEPTH = 8


class _Degrees(dict[str, float]):
    """The degrees of the tensors of a graph, by their names."""


def degree(reader: Reader, tensor: tf.Tensor, depth: int = _DEPTH) -> float:
    """Returns how many open factors the largest product in a formula has.

    Each may be as small or as large as its dtype allows. A quotient counts the factors
    of both of its sides.
    """
    known = reader.memory.setdefault(_Degrees, _Degrees())
    if tensor.name not in known:
        known[tensor.name] = _degree(reader, tensor, depth)
    return known[tensor.name]


def _degree(reader: Reader, tensor: tf.Tensor, depth: int) -> float:
    if reader.constant(tensor) is not None or reader.is_mask(tensor):
        return 0.0
    low, high = reader.bounds(tensor)
    # Such as a sine: it is small where its argument is.
    if -math.inf < low < 0 < high < math.inf:
        return 0.0
    if not depth:
        return 1.0
    op = reader.op(tensor)
    if op.type == "Cast" and op.inputs[0].dtype.is_integer:
        return 0.0
    parts = [degree(reader, each, depth - 1) for each in op.inputs]
    if op.type in _SUMS:
        # The terms have one unit: `0.9 * v + 0.1 * g * g` is in range where v is.
        return min(filter(None, parts), default=0.0)
    if op.type in _ALIKE:
        return max(parts)
    if op.type in _PRODUCTS:
        return sum(parts)
    if op.type in {"Square", "SquaredDifference"}:
        return 2 * max(parts)
    if op.type in {"Rsqrt", "Sqrt", *RECIPROCALS}:
        return parts[0] / (1 if op.type in RECIPROCALS else 2)
    if op.type == "Pow":
        power = number(reader, op.inputs[1], op.inputs[0])
        if power is not None:
            return abs(power) * parts[0]
        # `0.9 ** t` with the number t of a step is a decay.
        return 2.0 if parts[0] else min(parts[1], 1.0)
    return 1.0


def quotient_may_leave(reader: Reader, x: tf.Tensor, y: tf.Tensor) -> bool:
    """Returns whether a side of `x / y` may leave the range, and the quotient not.

    Such as `a * b / (a + b)`, `a ** 2 / b` and `a * b / c ** 2`.
    """
    if x.dtype != tf.float32 or reader.constant(x) is not None:
        return False
    # A dividend that underflows is nothing, divided by what does not vanish; one that
    # overflows is finite, divided by what is as large as a factor of it.
    is_open = reader.bounds(y).low <= 0 or _grows_with(reader, y, x)
    is_open = is_open and degree(reader, y) >= 1
    return is_open and max(degree(reader, each) for each in (x, y)) >= 2


def _grows_with(reader: Reader, y: tf.Tensor, x: tf.Tensor) -> bool:
    """Returns whether a factor of a product is a term of a sum, as in `|x| + 1`."""
    sizes = [
        {reader.number(_size_of(reader, each)) for each in tensors}
        for tensors in (
            factored(reader, reader.op(x)).above,
            [each.tensor for each in terms(reader, y)],
        )
    ]
    return not sizes[0].isdisjoint(sizes[1])


def _size_of(reader: Reader, tensor: tf.Tensor) -> tf.Tensor:
    op = reader.op(tensor)
    return op.inputs[0] if op.type == "Abs" else tensor


def root_may_leave(reader: Reader, x: tf.Tensor) -> bool:
    """Returns whether `x` may leave the range, and its root not: `sqrt(a * b)`."""
    is_open = x.dtype == tf.float32 and reader.constant(x) is None
    return is_open and degree(reader, x) >= 2


def product_may_leave(reader: Reader, x: tf.Tensor, y: tf.Tensor) -> bool:
    """Returns whether a factor of `x * y` may leave the range, and the product not.

    Such as `a * b * (1 / c)` and `(a / b) * (c / d)`.
    """
    op = reader.op(y)
    if x.dtype != tf.float32 or op.type not in DIVISIONS | RECIPROCALS | {"Rsqrt"}:
        return False
    is_open = reader.bounds(op.inputs[-1]).low <= 0
    return is_open and degree(reader, op.inputs[-1]) > 0 and degree(reader, x) >= 2


def is_difference_of_products(reader: Reader, tensor: tf.Tensor) -> bool:
    """Returns whether a tensor is `a * d - b * c`, or the magnitude of it."""
    op = reader.op(tensor)
    if op.type == "Abs":
        op = reader.op(op.inputs[0])
    return op.type == "Sub" and all(reader.op(x).type == "Mul" for x in op.inputs)
