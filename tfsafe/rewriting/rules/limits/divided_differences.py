"""Matches a difference of one function at two points over the distance of the points.

Either side of a quotient may be such a difference, and the other the distance, times a
factor: `(exp(-a * t) - exp(-b * t)) / (b - a)`, `(1 - q) / (1 - q ** n)`,
`tanh(g * x) / tanh(g)`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import tensorflow as tf

from tfsafe.graph import DIVISIONS, SUMS
from tfsafe.ops.formulas.differences import divided_differences as kernel
from tfsafe.ops.formulas.differences.divided_differences import (
    DIVIDED_DIFFERENCES,
    DividedDifference,
)
from tfsafe.ops.kernels import precision
from tfsafe.rewriting.analysis.ratios import ratio_of
from tfsafe.rewriting.engine.rule import Build, Value
from tfsafe.rewriting.facts.tensors import Reader, is_float
from tfsafe.rewriting.match.arithmetic import Term, number, square_of, terms
from tfsafe.rewriting.match.linear import Part, merged, minus, parts, total
from tfsafe.rewriting.match.products import inverted, scaled
from tfsafe.rewriting.rules.limits.vanishing_functions import Limit

# Points at which the functions are 0, and where others are 1.
_ZEROS = {
    **dict.fromkeys(
        ("Atan", "Erf", "Expm1", "Log1p", "Sin", "Sinh", "Tan", "Tanh"), 0.0
    ),
    "Log": 1.0,
}
_ONES = {"Cos": 0.0, "Cosh": 0.0, "Exp": 0.0, "Pow": 1.0, "Reciprocal": 1.0}
_ONES |= {"Sqrt": 1.0}
_EVEN = {"Cos", "Cosh"}
_CLOSE = 1e-6


class _Function(NamedTuple):
    """A multiple of one function of a tensor.

    Attributes:
      name: The key of its divided difference; `"Pow"` for powers of any order.
      x: The argument.
      order: Of a power.
      factor: What it is multiplied by.
    """

    name: str
    x: tf.Tensor
    order: tf.Tensor | None = None
    factor: float = 1.0


class _Side(NamedTuple):
    """A multiple of `f(b + d) - f(b)`, or of `d` itself.

    Attributes:
      factor: What it is multiplied by.
      step: The terms of `d`, before they are scaled.
      function: The divided difference; None for `d` itself.
      start: Builds b.
      scale: Builds what the terms of `d` are multiplied by.
      order: The order of a power.
    """

    factor: float
    step: Sequence[Part]
    function: DividedDifference | None = None
    start: Build | None = None
    scale: Build | None = None
    order: tf.Tensor | None = None


def limits(reader: Reader, top: tf.Tensor, bottom: tf.Tensor) -> Iterator[Limit]:
    """Yields the quotient of two such differences, or of one and its distance."""
    if not is_float(top) or not is_float(bottom):
        return
    for above, below in _pairs(_sides(reader, top), _sides(reader, bottom)):
        first = above or _distance(reader, top)
        second = below or _distance(reader, bottom)
        ratio = ratio_of(reader, first.step, second.step)
        if ratio is not None:
            yield Limit(
                _built(first, second, ratio, top, bottom, None), (top,), (bottom,)
            )
            return


def match_common_divisor(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `1 / r - exp(-r) / r`, two terms that are infinite together."""
    if op.type not in SUMS:
        return None
    found = terms(reader, op.outputs[0])
    if len(found) != 2 or not all(
        reader.op(each.tensor).type in DIVISIONS for each in found
    ):
        return None
    (one, other), bottom = (reader.op(each.tensor) for each in found), None
    if reader.same(one.inputs[1], other.inputs[1]):
        bottom = one.inputs[1]
    if bottom is None or reader.constant(bottom) is not None:
        return None
    above = [
        Term(each.factor * inner.factor, inner.tensor)
        for each, divided in zip(found, (one, other), strict=True)
        for inner in terms(reader, divided.inputs[0])
    ]
    for side in _of_terms(reader, above):
        second = _distance(reader, bottom)
        ratio = ratio_of(reader, side.step, second.step)
        if ratio is not None:
            return _built(side, second, ratio, op.outputs[0], bottom, _sum_of(found))
    return None


def _sum_of(found: Sequence[Term]) -> Build:
    # The result of the operation itself is what is replaced.
    return lambda value: tf.add_n([each.factor * value(each.tensor) for each in found])


def _pairs(
    above: Sequence[_Side], below: Sequence[_Side]
) -> Iterator[tuple[_Side | None, _Side | None]]:
    yield from ((one, other) for one in above for other in below)
    yield from ((one, None) for one in above)
    yield from ((None, other) for other in below)


def _distance(reader: Reader, tensor: tf.Tensor) -> _Side:
    return _Side(1.0, parts(reader, tensor), start=lambda value: value(tensor))


def _sides(reader: Reader, tensor: tf.Tensor) -> list[_Side]:
    op = reader.op(tensor)
    if op.type in SUMS:
        return list(_of_terms(reader, terms(reader, tensor)))
    if op.type in _ZEROS:
        found = _Function(op.type, op.inputs[0])
        return _at_number(reader, found, _ZEROS[op.type])
    return []


def _of_terms(reader: Reader, found: Sequence[Term]) -> Iterator[_Side]:
    if len(found) != 2:
        return
    (s, one), (t, other) = found
    numbers = reader.scalar(one), reader.scalar(other)
    if numbers == (None, None):
        first, second = _function(reader, one, s), _function(reader, other, t)
        yield from _of_two(reader, first, second)
        return
    if numbers[0] is not None:
        s, one, t, numbers = t, other, s, numbers[::-1]
    function, whole = _function(reader, one, s), numbers[1]
    if function is None or whole is None or function.name not in _ONES:
        return
    # Over a power of their argument these have limits of their own.
    inside = reader.op(scaled(reader, function.x).tensor)
    is_single = len(parts(reader, function.x)) == 1 and inside.type != "Mul"
    if function.name in _EVEN and is_single:
        return
    number, point = t * whole, _ONES[function.name]
    if function.name == "Reciprocal" and number:
        yield from _at_number(reader, function, -function.factor / number)
    elif _cancel(number, function.factor):
        yield from _at_number(reader, function, point)


def _cancel(a: float, b: float) -> bool:
    return abs(a + b) <= _CLOSE * abs(a)


def _function(reader: Reader, tensor: tf.Tensor, factor: float) -> _Function | None:
    op = reader.op(tensor)
    if op.type == "Pow":
        return _Function("Pow", op.inputs[0], op.inputs[1], factor)
    if op.type in DIVIDED_DIFFERENCES and op.type != "Reciprocal":
        return _Function(op.type, op.inputs[0], None, factor)
    square = square_of(reader, tensor)
    if square is not None:
        return _Function("Square", square, None, factor)
    inverse = inverted(reader, op) if op.inputs else None
    if inverse is not None:
        factor *= inverse.factor
        return _Function("Reciprocal", inverse.tensor, None, factor)
    return None


def _of_two(
    reader: Reader, one: _Function | None, other: _Function | None
) -> Iterator[_Side]:
    if one is None or other is None or one.name != other.name:
        return
    if not _cancel(one.factor, other.factor):
        return
    order, factor = one.order, one.factor
    if order is not None and other.order is not None:
        if not reader.same(order, other.order):
            return
        yield _of_order(reader, one, other, order, factor)
    step = merged(reader, [*parts(reader, one.x), *minus(parts(reader, other.x))])
    if step:
        yield _Side(
            factor,
            step,
            _divided_difference(reader, one),
            lambda value: value(other.x),
            order=order,
        )


def _at_number(reader: Reader, function: _Function, point: float) -> list[_Side]:
    """Returns `f(x) - f(point)`; of a power also as one whose order is near 0."""
    x, order, factor = function.x, function.order, function.factor
    if reader.constant(x) is not None and order is None:
        return []
    whole = merged(reader, [*parts(reader, x), Part(-point, None)])
    step, scale = _over_divisor(reader, whole)
    found = [
        _Side(
            factor,
            step,
            _divided_difference(reader, function),
            lambda _: tf.constant(point, x.dtype),
            scale,
            order,
        )
    ]
    if order is not None:
        found.insert(0, _of_order(reader, function, None, order, factor))
    return [each for each in found if each.step]


def _over_divisor(
    reader: Reader, step: Sequence[Part]
) -> tuple[Sequence[Part], Build | None]:
    """Reads `p / q - 1` as `p - q` and what builds 1 / q."""
    numbers = [each for each in step if each.tensor is None]
    tensors = [each for each in step if each.tensor is not None]
    if len(numbers) != 1 or len(tensors) != 1:
        return step, None
    quotient, number = tensors[0], numbers[0]
    if quotient.tensor is None or quotient.axes is not None:
        return step, None
    op = reader.op(quotient.tensor)
    if op.type not in DIVISIONS:
        return step, None
    p, q = op.inputs
    above = [e._replace(factor=e.factor * quotient.factor) for e in parts(reader, p)]
    below = [e._replace(factor=e.factor * number.factor) for e in parts(reader, q)]
    return merged(reader, [*above, *below]), lambda value: 1 / value(q)


def _of_order(
    reader: Reader,
    one: _Function,
    other: _Function | None,
    order: tf.Tensor,
    factor: float,
) -> _Side:
    """Returns `x ** k - y ** k` as a difference of exponentials, for k near 0."""

    def logarithm(value: Value) -> tf.Tensor:
        x = value(one.x)
        if other is None:
            return kernel.log_of_base(x)
        return kernel.log_of_ratio(x, value(other.x))

    def start(value: Value) -> tf.Tensor:
        if other is None:
            return tf.zeros([], order.dtype)
        return value(order) * kernel.log_of_base(value(other.x))

    is_open = reader.constant(order) is None
    step, divided = _over_divisor(reader, parts(reader, order) if is_open else [])
    scales = logarithm if divided is None else _product_of(logarithm, divided)
    return _Side(factor, step, DIVIDED_DIFFERENCES["Exp"], start, scales)


def _product_of(one: Build, other: Build) -> Build:
    return lambda value: one(value) * other(value)


def _divided_difference(reader: Reader, function: _Function) -> DividedDifference:
    if function.order is None:
        return DIVIDED_DIFFERENCES[function.name]
    return kernel.of_power(number(reader, function.order, function.x))


def _built(
    first: _Side,
    second: _Side,
    ratio: Callable[[Value], tf.Tensor | float],
    top: tf.Tensor,
    bottom: tf.Tensor,
    whole: Build | None,
) -> Build:
    """Returns how to build the quotient; far from 0 a division, or `whole`."""

    def distance(side: _Side, value: Value) -> tf.Tensor:
        if side.function is None and side.start is not None:
            return precision.wide(side.start(value))
        return precision.wide(total(side.step, value, bottom))

    def build(value: Value) -> tf.Tensor:
        proportion = ratio(value)
        proportion = (
            proportion if isinstance(proportion, float) else precision.wide(proportion)
        )
        base = distance(second, value)
        scales = [
            1.0 if each.scale is None else precision.wide(each.scale(value))
            for each in (first, second)
        ]
        steps = proportion * base * scales[0], base * scales[1]
        near, inputs = tf.constant(True), []
        for side, step in zip((first, second), steps, strict=True):
            start, order = step, tf.ones_like(step)
            if side.function is not None and side.start is not None:
                start = precision.wide(side.start(value))
                if side.order is not None:
                    order = precision.wide(value(side.order))
                near &= side.function.is_near(start, step, order)
            inputs.append((start, order))
        # Where they are not used they may be infinite, and 0 times that is NaN.
        proportion, *scales = (_kept(near, each) for each in (proportion, *scales))
        base = tf.where(near, base, tf.zeros_like(base))
        steps = proportion * base * scales[0], base * scales[1]
        slopes = [
            1.0 if side.function is None else side.function.at(near, start, step, order)
            for side, step, (start, order) in zip(
                (first, second), steps, inputs, strict=True
            )
        ]
        above = first.factor * scales[0] * proportion * slopes[0]
        below = second.factor * scales[1] * slopes[1]
        far = tf.logical_not(near)
        if whole is not None:
            written = _kept(far, whole(value))
        else:
            written = _kept(far, value(top)) / _kept(far, value(bottom))
        return tf.where(near, tf.cast(above / below, written.dtype), written)

    return build


def _kept(condition: tf.Tensor, x: tf.Tensor | float) -> tf.Tensor:
    if isinstance(x, float):
        return x
    return tf.where(condition, x, tf.ones([], x.dtype))
