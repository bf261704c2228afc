"""Rules for quotients whose sides cancel, overflow or vanish together."""

from collections.abc import Iterator

import tensorflow as tf

from tfsafe import ops
from tfsafe.graph import OpFact, op_types
from tfsafe.ops.kernels import fractions
from tfsafe.ops.kernels.uncancelled import sqrt1pm1
from tfsafe.rewriting.engine.rule import Build, Rule
from tfsafe.rewriting.facts.finiteness import is_regular, is_watched
from tfsafe.rewriting.facts.tensors import Reader, is_float
from tfsafe.rewriting.match.reductions import dot_product
from tfsafe.rewriting.match.trees import Pattern, Tree, Trees

_DIVISIONS = sorted(op_types(OpFact.DIVIDES))
_FRACTION = ("Div", "x", ("Add", "x", "y"))


def _match_complement(op: tf.Operation, reader: Reader) -> Build | None:
    if is_watched(reader, op):
        return None
    return _COMPLEMENT(op, reader)


_COMPLEMENT = Trees(Tree(("Sub", 1, _FRACTION), fractions.one_minus_fraction))


def _match_projection(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `sum(a * b) / sum(b * b)`."""
    if not is_float(op.outputs[0]) or is_watched(reader, op):
        return None
    above, below = (dot_product(reader, each) for each in op.inputs)
    if above is None or below is None or not reader.same(below[0], below[1]):
        return None
    (first, second, total), squares = above, below[2]
    if reader.same(first, second):
        return None
    if (total.axes, total.keepdims) != (squares.axes, squares.keepdims):
        return None
    for a, b in ((first, second), (second, first)):
        if reader.same(b, below[0]) and a.shape.rank is not None:
            return _projection(a, b, total.axes, total.keepdims)
    return None


def _projection(
    a: tf.Tensor, b: tf.Tensor, axes: tuple[int, ...] | None, keepdims: bool
) -> Build:
    return lambda value: fractions.projection(value(a), value(b), axes, keepdims)


def _match_angle(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `atan(y / x)` of a divisor that may be 0."""
    inner = reader.op(op.inputs[0])
    if inner.type not in _DIVISIONS or inner.type == "DivNoNan":
        return None
    y, x = inner.inputs
    is_open = is_float(x) and reader.constant(x) is None
    if not is_open or is_regular(reader, inner) or is_watched(reader, op):
        return None
    return lambda value: fractions.angle_of_quotient(value(y), value(x))


_SIZE = ("Abs", "x")


def _odd_functions() -> Iterator[Tree]:
    """Yields `sign(x) * f(abs(x))` of functions with `f(0) = 0`."""
    rows: tuple[tuple[Pattern, fractions.Function], ...] = (
        (("Log", ("Add", 1, _SIZE)), ops.log1p),
        (("Log1p", _SIZE), ops.log1p),
        (("Sub", ("Exp", _SIZE), 1), ops.expm1),
        (("Expm1", _SIZE), ops.expm1),
        (("Sub", ("Sqrt", ("Add", 1, _SIZE)), 1), sqrt1pm1),
    )
    for pattern, function in rows:
        yield Tree(("Mul", ("Sign", "x"), pattern), fractions.odd(function))
    scaled = ("Mul", "#k", _SIZE)
    for pattern in (("Log", ("Add", 1, scaled)), ("Log1p", scaled)):
        yield Tree(
            ("Mul", ("Sign", "x"), pattern),
            lambda x, k: fractions.odd(lambda size: ops.log1p(k * size))(x),
            where=lambda k: k > 0,
        )


# Before the rules for logarithms, which take a part of these.
FIRST = (
    Rule(
        name="odd-function",
        before="sign(x) * log(1 + abs(x)), sign(x) * (sqrt(1 + abs(x)) - 1)",
        after="the same with its slope at 0",
        fails_when="x is 0: the slope is 0 in place of 1",
        reference="chain rule on either side of 0",
        match=Trees(*_odd_functions()),
    ),
)
RULES = (
    Rule(
        name="complement-of-fraction",
        before="1 - a / (a + b)",
        after="b / (a + b)",
        fails_when="b is much smaller than a",
        reference="identity",
        op_types=tuple(_COMPLEMENT.op_types),
        match=_match_complement,
    ),
    Rule(
        name="projection",
        before="sum(a * b) / sum(b * b)",
        after="the same of a and b divided by powers of 2",
        fails_when="the products underflow or overflow, and the quotient does not",
        reference="Blue, ACM Transactions on Mathematical Software 4(1), 1978",
        op_types=tuple(_DIVISIONS),
        match=_match_projection,
    ),
    Rule(
        name="angle-of-quotient",
        before="atan(y / x)",
        after="the same with the slopes of atan2(y, x); 0 for 0 / 0",
        fails_when="x is 0: the slope is 0 times infinity",
        reference="tfsafe.ops.atan2",
        op_types=("Atan",),
        match=_match_angle,
    ),
)
