"""Finds pairs of a numerator and a divisor that vanish together at single points."""

import itertools
import math
from collections.abc import Iterator

import tensorflow as tf

from tfsafe.ops.formulas import quotients
from tfsafe.rewriting.engine.rule import Build, Value
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.match.arithmetic import Term, number
from tfsafe.rewriting.match.products import Product, scaled
from tfsafe.rewriting.match.trees import scaled_argument
from tfsafe.rewriting.rules.limits.vanishing_functions import Limit

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
