"""Finds pairs of a numerator and a divisor that vanish together at single points."""

import itertools
import math
from collections.abc import Iterator, Sequence

import tensorflow as tf

from tfsafe.graph import DIVISIONS
from tfsafe.ops.formulas.limits import quotients, removable
from tfsafe.ops.formulas.limits.removable import Removable
from tfsafe.rewriting.analysis.near_one import are_alike, numbered
from tfsafe.rewriting.engine.rule import Build, Value
from tfsafe.rewriting.facts.layouts import same_shape
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.match.arithmetic import Term, beside_number, number
from tfsafe.rewriting.match.linear import Part, parts
from tfsafe.rewriting.match.products import Product, scaled
from tfsafe.rewriting.match.reductions import is_length, is_square_of
from tfsafe.rewriting.match.trees import scaled_argument
from tfsafe.rewriting.rules.limits.vanishing_functions import Limit, Zero, zero_of

# How far a number in float32 may be from pi / 2.
_ROUNDED = 1e-6


def power_over_order(
    reader: Reader, top: tf.Tensor, bottom: tf.Tensor
) -> Iterator[Limit]:
    """Yields `(x ** k - 1) / k`."""
    op = reader.op(top)
    for place, sign in ((0, 1), (1, -1)) if op.type == "Sub" else ():
        power, one = reader.op(op.inputs[place]), op.inputs[1 - place]
        if power.type != "Pow" or number(reader, one, op.inputs[place]) != 1:
            continue
        x, k = power.inputs
        order, other = scaled(reader, k), scaled(reader, bottom)
        if reader.constant(k) is None and reader.same(order.tensor, other.tensor):
            factor = sign * order.factor / other.factor
            yield Limit(_of_power(x, k, factor), (top,), (bottom,))


_ONE_MINUS = (
    ("Sub", 1, ("Square", "x")),
    ("Sub", 1, ("Mul", "#k", ("Square", "x"))),
)


def cancelled(reader: Reader, product: Product) -> Iterator[Limit]:
    """Yields a factor that is divided by itself, as in `exp(-r) / r * r`."""
    pairs = [
        (top, bottom)
        for top, bottom in itertools.product(product.above, product.below)
        if reader.same(top, bottom) and reader.constant(top) is None
    ]
    # A quotient of two equal products is another rule's.
    if len(pairs) < len(product.above):
        for top, bottom in pairs:
            yield Limit(_one(bottom), (top,), (bottom,))


def less_limit(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches a quotient less the number that it is at 0: `1 - sin(x) / x`."""
    for part, size in beside_number(reader, op.outputs[0]):
        for zero, function, factor in _quotients(reader, reader.op(part.tensor)):
            whole = part.factor * factor
            if abs(whole * function.limit + size) <= _ROUNDED * abs(size):
                return _of_rest(zero, function, whole)
    return None


def _of_rest(zero: Zero, function: Removable, factor: float) -> Build:
    return lambda value: factor * function.less_limit(zero.term.make(value))


def _quotients(
    reader: Reader, op: tf.Operation
) -> Iterator[tuple[Zero, Removable, float]]:
    """Yields the `f(x) / x`, `f(x) / x ** 2` or `x / f(x)` that an operation is.

    Also where x is a quotient, as in `b / a * f(a / b)`.

    Yields:
      f, its quotient, and the number that this is multiplied by.
    """
    if op.type not in DIVISIONS | {"Mul"}:
        return
    product = numbered(reader, op)
    for tensor in (*product.above, *product.below):
        zero = zero_of(reader, tensor)
        if zero is None or not same_shape(zero.inside.tensor, tensor):
            continue
        x = numbered(reader, reader.op(zero.inside.tensor))
        if not x.above and not x.below:
            x = x._replace(above=[zero.inside.tensor])
        size, order = zero.inside.factor * x.factor, zero.vanishing.order
        above, below = order * x.above, order * x.below
        if are_alike(
            reader, product._replace(above=[tensor, *below], below=above), product
        ):
            factor = product.factor * zero.sign * size**order
            yield zero, zero.vanishing.over_power, factor
        under = product._replace(above=above, below=[tensor, *below])
        inverse = zero.vanishing.inverse
        if inverse is not None and are_alike(reader, under, product):
            yield zero, inverse, product.factor * zero.sign / size


def squares(
    reader: Reader, root: tf.Tensor, above: Sequence[tf.Tensor]
) -> Iterator[Limit]:
    """Yields a norm, or its square, that is divided by the norm."""
    whole = [t for t in above if is_square_of(reader, t, root)]
    same = [t for t in above if is_length(reader, t, root)]
    if whole:
        yield Limit(lambda value: value(root), (whole[0],), (root,))
    elif same and len(above) > 1:
        yield Limit(lambda value: tf.ones_like(value(root)), (same[0],), (root,))


_LESS_ONE = (("Sub", ("Exp", "x"), 1), ("Expm1", "x"))


def over_less_one(reader: Reader, product: Product) -> Iterator[Limit]:
    """Yields `x * f / (f - 1)` and `f / (f - 1)`, where f may overflow.

    It is `exp(x)`, or `(1 + x) ** n`, and the quotient `1 / (1 - 1 / f)`.
    """
    for top, bottom in itertools.product(product.above, product.below):
        op = reader.op(top)
        if op.type == "Exp":
            yield from _exp_over_less_one(reader, product, top, bottom)
        elif op.type == "Pow":
            yield from _power_over_less_one(reader, product, top, bottom)


def _exp_over_less_one(
    reader: Reader, product: Product, top: tf.Tensor, bottom: tf.Tensor
) -> Iterator[Limit]:
    u = reader.op(top).inputs[0]
    for sign, x, _ in scaled_argument(reader, bottom, _LESS_ONE):
        if x.factor != 1 or not reader.same(x.tensor, u):
            continue
        inside = scaled(reader, u)
        for other in product.above:
            found = scaled(reader, other)
            if reader.same(found.tensor, inside.tensor):
                factor = sign * found.factor / inside.factor
                yield Limit(_of_exp(u, factor), (other, top), (bottom,))
                return


def _of_exp(u: tf.Tensor, factor: float) -> Build:
    return lambda value: factor * removable.x_over_expm1(-value(u))


def _power_over_less_one(
    reader: Reader, product: Product, top: tf.Tensor, bottom: tf.Tensor
) -> Iterator[Limit]:
    base, n = reader.op(top).inputs
    found = parts(reader, bottom)
    power = [each for each in found if each.tensor is not None]
    one = [each for each in found if each.tensor is None]
    if len(power) != 1 or len(one) != 1 or not reader.same(power[0].tensor, top):
        return
    sign = power[0].factor
    if power[0].axes is not None or abs(sign) != 1 or one[0].factor != -sign:
        return
    for other in product.above:
        rest = parts(reader, base)
        if len(rest) == 2 and Part(1.0, None) in rest:
            (step,) = (each for each in rest if each.tensor is not None)
            if (
                step.factor == 1
                and step.axes is None
                and reader.same(step.tensor, other)
            ):
                yield Limit(_of_growth(other, n, sign), (other, top), (bottom,))
                return


def _of_growth(r: tf.Tensor, n: tf.Tensor, sign: float) -> Build:
    return lambda value: sign * quotients.payment(value(r), -value(n))


def _one(x: tf.Tensor) -> Build:
    def build(value: Value) -> tf.Tensor:
        kept = tf.where(tf.equal(value(x), 0), tf.ones([], x.dtype), value(x))
        # 1, and NaN where x is infinite or NaN.
        return tf.stop_gradient(kept / kept)

    return build


def raised_cosine(reader: Reader, top: tf.Tensor, bottom: tf.Tensor) -> Iterator[Limit]:
    """Yields `cos(pi * x / 2) / (1 - x * x)`, which is pi / 4 at 1 and at -1."""
    op = reader.op(top)
    if op.type != "Cos":
        return
    for sign, x, k in scaled_argument(reader, bottom, _ONE_MINUS):
        if k <= 0:
            continue
        angle = scaled(reader, op.inputs[0])
        inside = scaled(reader, x.tensor, x.factor)
        factor = abs(inside.factor) * math.sqrt(k)
        is_zero = abs(abs(angle.factor) / factor - math.pi / 2) < _ROUNDED
        if is_zero and reader.same(angle.tensor, inside.tensor):
            term = inside._replace(factor=factor)
            yield Limit(_of_raised_cosine(term, sign), (top,), (bottom,))
            return


def _of_raised_cosine(x: Term, sign: int) -> Build:
    return lambda value: sign * quotients.raised_cosine(x.make(value))


def _of_power(x: tf.Tensor, k: tf.Tensor, factor: float) -> Build:
    return lambda value: factor * quotients.power_minus_one_over(value(x), value(k))
