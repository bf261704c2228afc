"""Rules for inverse functions: by hand, and of the function that they invert."""

import functools
import math
import operator
from collections.abc import Sequence

import tensorflow as tf

from tfsafe import ops
from tfsafe.ops.formulas.differences import angles
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.match.arithmetic import Term, number, terms
from tfsafe.rewriting.match.index import Pattern
from tfsafe.rewriting.match.products import factored, scaled
from tfsafe.rewriting.match.reductions import reduction
from tfsafe.rewriting.match.trees import Tree, Trees, argument


def _same(x: tf.Tensor) -> tf.Tensor:
    return tf.identity(x)


def _two_atanh(x: tf.Tensor) -> tf.Tensor:
    return 2 * ops.atanh(x)


def _match_by_hand(op: tf.Operation, reader: Reader) -> Build | None:
    found = _BY_HAND(op, reader)
    if found is not None or op.type != "Log":
        return found
    tangent = reader.op(op.inputs[0])
    if tangent.type != "Tan":
        return None
    summands = terms(reader, tangent.inputs[0])
    for x, constant in (summands, summands[::-1]) if len(summands) == 2 else ():
        quarter = number(reader, constant.tensor, x.tensor)
        if quarter is None or reader.constant(x.tensor) is not None:
            continue
        if abs(quarter * constant.factor - math.pi / 4) < _CLOSE:
            return _built(x)
    return None


def _built(x: Term) -> Build:
    return lambda value: angles.mercator(x.make(value))


def _match_tangents(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches the inverse of a product along axes, or of two factors or more."""
    times = 1.0
    tensor = op.inputs[0]
    if op.type == "Log":
        found = argument(reader, tensor, _ODDS)
        if found is None:
            return None
        times, tensor = 2 * found[1].factor, found[1].tensor
    product = scaled(reader, tensor)
    along = reduction(reader, product.tensor, "Prod")
    parts = factored(reader, reader.op(product.tensor))
    factors = parts.above if along is None else [along.x]
    tangents = [reader.op(each) for each in factors]
    sign = product.factor * parts.factor
    is_product = along is not None or (len(factors) > 1 and not parts.below)
    if not is_product or abs(sign) != 1:
        return None
    if not all(each.type == "Tanh" for each in tangents):
        return None

    def build(value: Value) -> tf.Tensor:
        x = [value(each.inputs[0]) for each in tangents]
        if along is not None:
            angle = angles.atanh_of_tangents(x[0], along.axes, along.keepdims)
        else:
            zeros = functools.reduce(operator.add, map(tf.zeros_like, x))
            stacked = tf.stack([each + zeros for each in x])
            angle = angles.atanh_of_tangents(stacked, (0,), keepdims=False)
        return sign * times * angle

    return build


# How far off a constant of float32 may be.
_CLOSE = 1e-6
_ODDS: Pattern = ("Div", ("Add", 1, "x"), ("Sub", 1, "x"))
_ROOT: Pattern = ("Sqrt", ("Add", ("Square", "x"), 1))


def _roots(x: Pattern) -> Sequence[Pattern]:
    """Returns the spellings of `sqrt(x * x - 1)`."""
    below, above = ("Sub", x, 1), ("Add", x, 1)
    return (
        ("Sqrt", ("Sub", ("Square", x), 1)),
        ("Sqrt", ("Mul", below, above)),
        ("Mul", ("Sqrt", below), ("Sqrt", above)),
    )


_BY_HAND = Trees(
    # Of a sum with 1, which would round.
    *(
        Tree(("Log", ("Add", 1, "x", root)), angles.acosh1p)
        for root in _roots(("Add", 1, "x"))
    ),
    Tree(("Log", ("Add", "x", _ROOT)), tf.asinh),
    *(Tree(("Log", ("Add", "x", root)), ops.acosh) for root in _roots("x")),
    Tree(("Log", ("Sub", _ROOT, "x")), lambda x: -tf.asinh(x)),
    Tree(("Log", _ODDS), _two_atanh),
    Tree(
        ("Log", ("Div", ("Sub", 1, "x"), ("Add", 1, "x"))),
        lambda x: -_two_atanh(x),
    ),
    Tree(("Sub", ("Log", ("Add", 1, "x")), ("Log", ("Sub", 1, "x"))), _two_atanh),
    Tree(("Sub", ("Log1p", "x"), ("Log1p", ("Neg", "x"))), _two_atanh),
)
RULES = (
    Rule(
        name="inverse-of-function",
        before="atanh(tanh(x)), asinh(sinh(x))",
        after="x",
        fails_when="the function rounds to 1, or overflows",
        reference="identity",
        match=Trees(
            Tree(("Atanh", ("Tanh", "x")), _same),
            Tree(("Asinh", ("Sinh", "x")), _same),
        ),
    ),
    Rule(
        name="atanh-of-tangents",
        before="atanh(tanh(x) * tanh(y)), atanh(prod(tanh(x)))",
        after="-log(tanh(sum(atanh(exp(-2 * |x|))))) / 2 where the product is near 1",
        fails_when="each x is large: each tangent rounds to 1",
        reference="identity",
        op_types=("Atanh", "Log"),
        match=_match_tangents,
    ),
    Rule(
        name="atanh-of-one-minus",
        before="atanh(1 - x), atanh(1 - 2 * p)",
        after="log((2 - x) / x) / 2 where x is near 0 or 2",
        fails_when="x is near 0: 1 - x rounds to 1",
        reference="identity",
        match=Trees(
            Tree(("Atanh", ("Sub", 1, "x")), angles.atanh_of_one_minus),
            Tree(("Atanh", ("Sub", "x", 1)), lambda x: -angles.atanh_of_one_minus(x)),
        ),
    ),
    Rule(
        name="inverse-by-hand",
        before="log(x + sqrt(x * x + 1)), log(x + sqrt(x * x - 1)), also as "
        "sqrt((x - 1) * (x + 1)), "
        "log((1 + x) / (1 - x)), log(tan(pi / 4 + x / 2))",
        after="asinh(x), acosh(x), 2 * asinh(sqrt(d / 2)) for x = 1 + d, 2 * atanh(x), "
        "asinh(tan(x))",
        fails_when="x is negative, large, or near 0: the sum cancels, or is near 1",
        reference="identity",
        op_types=tuple(_BY_HAND.op_types),
        match=_match_by_hand,
    ),
)
