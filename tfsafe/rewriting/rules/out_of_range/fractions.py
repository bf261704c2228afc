"""Rules for quotients whose sides cancel, overflow or vanish together."""

import functools
import math
from collections.abc import Sequence

import tensorflow as tf

from tfsafe import ops
from tfsafe.graph import DIVISIONS
from tfsafe.ops.formulas import unchanged_values
from tfsafe.ops.formulas.differences import fraction_complements
from tfsafe.ops.formulas.out_of_range import fractions
from tfsafe.rewriting.analysis import wider
from tfsafe.rewriting.analysis.degrees import (
    is_difference_of_products,
    product_may_leave,
    root_may_leave,
)
from tfsafe.rewriting.engine.rule import Build, Rule, Value, first
from tfsafe.rewriting.facts.finiteness import is_regular, is_watched
from tfsafe.rewriting.facts.tensors import Reader, both_ways
from tfsafe.rewriting.log_space import probabilities
from tfsafe.rewriting.log_space.analysis import logarithms
from tfsafe.rewriting.match.arithmetic import number, square_of, terms
from tfsafe.rewriting.match.products import scaled
from tfsafe.rewriting.match.reductions import (
    Norm,
    dot_product,
    sum_of_squares,
)
from tfsafe.rewriting.match.trees import Tree, Trees

_FRACTION = ("Div", "x", ("Add", "x", "y"))


def _match_complement(op: tf.Operation, reader: Reader) -> Build | None:
    if is_watched(reader, op):
        return None
    return _COMPLEMENT(op, reader)


_COMPLEMENT = Trees(
    Tree(("Sub", 1, _FRACTION), fraction_complements.one_minus_fraction),
    Tree(("Sub", "a", ("Mul", "a", _FRACTION)), fraction_complements.less_part_of_sum),
    Tree(
        ("Sub", "a", ("Div", ("Mul", "a", "x"), ("Add", "x", "y"))),
        fraction_complements.less_product_over_sum,
    ),
    Tree(
        ("Sub", "x", ("Div", ("Square", "x"), ("Add", "x", "y"))),
        lambda x, y: fraction_complements.less_product_over_sum(x, x, y),
    ),
)


def _match_projection(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `sum(a * b) / sum(b * b)` and `sum(a * a) / sum(b * b)`."""
    if is_watched(reader, op):
        return None
    upper, lower = (sum_of_squares(reader, each) for each in op.inputs)
    if upper is not None and lower is not None:
        return _quotient_of_squares(upper, lower)
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


def _quotient_of_squares(above: Norm, below: Norm) -> Build:
    def length(norm: Norm, value: Value) -> tf.Tensor:
        return ops.norm(norm.base.make(value), axis=norm.axes, keepdims=norm.keepdims)

    return lambda value: fractions.square_of_quotient(
        length(above, value), length(below, value)
    )


def _projection(
    a: tf.Tensor, b: tf.Tensor, axes: tuple[int, ...] | None, keepdims: bool
) -> Build:
    return lambda value: fractions.projection(value(a), value(b), axes, keepdims)


def _match_quotient_of_powers(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches a power over another, times a number."""
    if is_watched(reader, op):
        return None
    a, b = (scaled(reader, each) for each in op.inputs)
    factor = a.factor / b.factor if b.factor else math.inf
    above, below = _power(reader, a.tensor), _power(reader, b.tensor)
    if above is None or below is None or not math.isfinite(factor):
        return None
    (x, power), (y, other) = above, below
    if power != other:
        return None

    def build(value: Value) -> tf.Tensor:
        made = fractions.power_of_quotient(value(x), value(y), power)
        return made if factor == 1 else factor * made

    return build


def _power(reader: Reader, tensor: tf.Tensor) -> tuple[tf.Tensor, float] | None:
    """Reads `x ** n`; returns `x` and the number n."""
    square = square_of(reader, tensor)
    if square is not None:
        return square, 2.0
    op = reader.op(tensor)
    power = number(reader, op.inputs[1], op.inputs[0]) if op.type == "Pow" else None
    if power is None or power < 2 or power != int(power):
        return None
    return op.inputs[0], power


def _match_angle(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `atan(y / x)` of a divisor that may be 0."""
    inner = reader.op(op.inputs[0])
    if inner.type not in DIVISIONS:
        return None
    y, x = inner.inputs
    is_open = reader.constant(x) is None and not is_regular(reader, inner)
    if not is_open or is_watched(reader, op):
        return None
    return lambda value: fractions.angle_of_quotient(value(y), value(x))


def _match_powers(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `x ** k / sum(x ** k)`."""
    if is_watched(reader, op):
        return None
    for part, total in probabilities.quotients(op):
        axes = probabilities.axes_of_own_total(part, total, reader)
        if axes is None or not probabilities.is_unguarded(total, reader):
            continue
        power = reader.op(part)
        if square_of(reader, part) is not None:
            return _over_sum(power.inputs[0], None, total, axes)
        if power.type != "Pow":
            continue
        x, exponent = power.inputs
        if _is_along(x, exponent, axes):
            return _over_sum(x, exponent, total, axes)
    return None


def _is_along(x: tf.Tensor, exponent: tf.Tensor, axes: tuple[int, ...]) -> bool:
    """Returns whether an exponent is the same for all elements of a row."""
    ranks = x.shape.rank, exponent.shape.rank
    if None in ranks or ranks[1] > ranks[0]:
        return False
    places = [axis - ranks[0] + ranks[1] for axis in axes]
    return all(place < 0 or exponent.shape[place] == 1 for place in places)


def _over_sum(
    x: tf.Tensor, exponent: tf.Tensor | None, total: tf.Tensor, axes: tuple[int, ...]
) -> Build:
    def build(value: Value) -> tf.Tensor:
        power = tf.constant(2, x.dtype) if exponent is None else value(exponent)
        return fractions.powers_over_sum(value(x), power, value(total), axes)

    return build


def _match_sums(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches a quotient of sums of products or powers in float32."""
    x, y = op.inputs
    if is_watched(reader, op):
        return None
    if not wider.may_leave(reader, x, y):
        if not wider.adds_up(reader, y):
            return None
        if not (wider.may_vanish(reader, x) and wider.may_vanish(reader, y)):
            return None
    return wider.quotient(reader, x, y, unchanged_values.divide)


def _match_root(
    op: tf.Operation, reader: Reader, limits: Sequence[Rule]
) -> Build | None:
    """Matches a root or a logarithm of products, sums of them or exponentials."""
    if is_watched(reader, op):
        return None
    return in_range(reader, op.type, op.inputs[0], limits)


def in_range(
    reader: Reader, op_type: str, x: tf.Tensor, limits: Sequence[Rule] = ()
) -> Build | None:
    """Returns how to build a root or logarithm of an `x` that may leave the range."""
    if not (root_may_leave(reader, x) or _may_be_lost(reader, x, op_type)):
        return None
    has_limit = first(limits, reader.op(x), reader) is not None
    return wider.function_of(reader, x, wider.SAFE[op_type], has_limit)


def _match_root_as_power(
    op: tf.Operation, reader: Reader, limits: Sequence[Rule]
) -> Build | None:
    """Matches `x ** k` of a number k between -1 and 1."""
    x, exponent = op.inputs
    power = number(reader, exponent, x)
    if power is None or not 0 < abs(power) < 1 or is_watched(reader, op):
        return None
    if not root_may_leave(reader, x):
        return None
    known = power
    return wider.function_of(
        reader,
        x,
        lambda x: unchanged_values.pow(x, tf.constant(known, x.dtype)),
        has_limit=first(limits, reader.op(x), reader) is not None,
    )


def _match_product(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `a * b * (1 / c)` and `(a / b) * (c / d)`, not `(a / b) ** 2`."""
    if is_watched(reader, op) or reader.same(*op.inputs):
        return None
    for x, inverse in both_ways(op, "Mul"):
        if not product_may_leave(reader, x, inverse):
            continue
        # A quotient of exponentials is in range by itself.
        log = logarithms(reader).of(inverse)
        if log is None or not (log.has_exp and reader.op(inverse).type in DIVISIONS):
            return wider.product(reader, x, inverse)
    return None


def _may_be_lost(reader: Reader, x: tf.Tensor, op_type: str) -> bool:
    if wider.may_leave_range(reader, x):
        return True
    is_log = op_type.startswith("Log")
    if is_log and is_difference_of_products(reader, x):
        return wider.may_vanish(reader, x)
    found = terms(reader, x)
    if not is_log and any(reader.scalar(each.tensor) for each in found):
        return False
    return reader.is_nonnegative(x) and any(
        wider.may_vanish(reader, each.tensor) and wider.adds_up(reader, each.tensor)
        for each in found
    )


RULES = (
    Rule(
        name="complement-of-fraction",
        before="1 - a / (a + b), c - c * a / (a + b), a - a * a / (a + b)",
        after="b / (a + b), c * (b / (a + b))",
        fails_when="b is much smaller than a",
        reference="identity",
        op_types=tuple(_COMPLEMENT.op_types),
        match=_match_complement,
    ),
    Rule(
        name="powers-over-sum",
        before="x ** k / sum(x ** k)",
        after="the same of x / max(abs(x)) where the sum is out of range; 0 for 0 / 0",
        fails_when="the powers underflow or overflow, and their quotients do not",
        reference="identity",
        op_types=DIVISIONS | {"Mul"},
        match=_match_powers,
    ),
    Rule(
        name="projection",
        before="sum(a * b) / sum(b * b), sum(a * a) / sum(b * b)",
        after="the same of a and b divided by powers of 2, (norm(a) / norm(b)) ** 2",
        fails_when="the products underflow or overflow, and the quotient does not",
        reference="Blue, ACM Transactions on Mathematical Software 4(1), 1978",
        op_types=DIVISIONS,
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


def last(limits: Sequence[Rule]) -> tuple[Rule, ...]:
    """Returns the rules that come after those that know the limit of such a quotient.

    Args:
      limits: Rules for quotients that have a limit; the root is that of the limit.
    """
    return (
        Rule(
            name="quotient-of-powers",
            before="a ** 2 / b ** 2, 0.5 * a ** 3 / b ** 3",
            after="(a / b) ** 2",
            fails_when="a power underflows or overflows, and the quotient does not",
            reference="identity",
            op_types=DIVISIONS,
            match=_match_quotient_of_powers,
        ),
        Rule(
            name="quotient-of-sums",
            before="sum(v / d ** 4) / sum(1 / d ** 4), segment_sum(a * a) / "
            "segment_sum(b * c), (exp(x) - a) / (b * exp(x) + c), x * x / (x * x + c), "
            "x / (x * x + c) ** 1.5, a * b / (a + b), a * b / c ** 2, a ** 2 / b",
            after="the same of sums in float64 where a sum is out of range",
            fails_when="the powers or products underflow or overflow, and the quotient "
            "does not",
            reference="identity",
            op_types=DIVISIONS,
            match=_match_sums,
        ),
        Rule(
            name="root-of-sums",
            before="sqrt(segment_sum(x * x)), log(mean(x * x)), sqrt(exp(x) - 1), "
            "log(x ** k / (1 + x ** k) ** 2), log(abs(a * d - b * c)), sqrt(a * b), "
            "log(a * a + b * b), log1p(a * b)",
            after="the same of a sum in float64 where that in float32 is out of range",
            fails_when="the squares underflow or overflow, and the root or the "
            "logarithm does not",
            reference="identity",
            op_types=("Log", "Log1p", "Rsqrt", "Sqrt"),
            match=functools.partial(_match_root, limits=limits),
        ),
        Rule(
            name="power-of-product",
            before="(a * b * c) ** (1 / 3), (a / b) ** 0.25",
            after="the same of a product in float64 where that in float32 is out of "
            "range",
            fails_when="the product underflows or overflows, and the power does not",
            reference="identity",
            op_types=("Pow",),
            match=functools.partial(_match_root_as_power, limits=limits),
        ),
        Rule(
            name="product-with-inverse",
            before="a * b * (1 / c), (a / b) * (c / d), a * b * rsqrt(c)",
            after="the same in float64 where a factor in float32 is out of range",
            fails_when="a factor underflows or overflows, and the product does not",
            reference="identity",
            op_types=("Mul",),
            match=_match_product,
        ),
    )
