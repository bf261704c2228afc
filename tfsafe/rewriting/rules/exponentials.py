"""Rules for softmax, sigmoid, tanh and quotients made of exponentials by hand."""

import tensorflow as tf

from tfsafe import ops
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.log_space import probabilities as forms
from tfsafe.rewriting.log_space.analysis import Logarithms, logarithms
from tfsafe.rewriting.log_space.form import Factored, scaled
from tfsafe.rewriting.log_space.sums import both, for_value
from tfsafe.rewriting.match import patterns as patterns

_DIVISIONS = ("RealDiv", "Div")


def _match_softmax(op: tf.Operation, reader: Reader) -> Build | None:
    found = forms.softmax_of(op, logarithms(reader))
    if found is None or not found.has_exp:
        return None

    def build(value: Value) -> tf.Tensor:
        mask = None if found.mask is None else found.mask(value)
        return ops.softmax(found.logits(value), found.axis, mask=mask)

    return build


def _match_complement(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `1 - softmax(x)`."""
    if not reader.is_number(op.inputs[0], 1):
        return None
    inner = reader.op(op.inputs[1])
    if forms.softmax_of(inner, logarithms(reader)) is None:
        return None
    log = logarithms(reader).of(op.inputs[1])
    return None if log is None else lambda value: -ops.expm1(log.whole_log(value))


def _match_sigmoid(op: tf.Operation, reader: Reader) -> Build | None:
    x = forms.sigmoid_by_hand(op, logarithms(reader))
    return None if x is None else lambda value: ops.sigmoid(x(value))


def _match_tanh(op: tf.Operation, reader: Reader) -> Build | None:
    logs = logarithms(reader)
    top, bottom = (reader.op(each) for each in op.inputs)
    if top.type != "Sub" or not patterns.is_sum(bottom):
        return None
    x, y = top.inputs
    if not any(
        (_same(reader, x, a) and _same(reader, y, b))
        for a, b in patterns.either_way(bottom)
    ):
        return None
    a, b = logs.parts(x), logs.parts(y)
    is_usable = a.is_pure and b.is_pure and not a.is_partial and not b.is_partial
    if not is_usable or not (a.has_exp or b.has_exp):
        return None

    def build(value: Value) -> tf.Tensor:
        first, second = both(a, b, value)
        return ops.tanh((first - second) / 2)

    return build


def _same(reader: Reader, a: tf.Tensor, b: tf.Tensor) -> bool:
    both_one = reader.is_number(a, 1) and reader.is_number(b, 1)
    return both_one or reader.same(a, b)


def _match_ratio(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches a quotient by an exponential, or by a sum of such."""
    logs = logarithms(reader)
    a, b = (for_value(each, logs) for each in op.inputs)
    if not b.has_exp or a.is_partial or b.is_partial:
        return None
    if not a.name and not b.is_pure:
        return _weighted_sigmoid(op, logs)

    def build(value: Value) -> tf.Tensor:
        first, second = both(a, b, value)
        return _times_exp(_quotient(a, b, value), first, second, -1)

    return build


def _weighted_sigmoid(op: tf.Operation, logs: Logarithms) -> Build | None:
    """Matches `a / (1 + exp(u))`, such as `x / (1 + exp(-x))`."""
    total = logs.reader.op(op.inputs[1])
    for one, x in patterns.either_way(total) if patterns.is_sum(total) else []:
        found = logs.of(x)
        if found is None or not logs.reader.is_number(one, 1):
            continue
        if found.is_pure and not found.is_partial:
            return _times_sigmoid(op.inputs[0], found)
    return None


def _times_sigmoid(top: tf.Tensor, u: Factored) -> Build:
    return lambda value: value(top) * ops.sigmoid(-u.exponent(value))


def _quotient(a: Factored, b: Factored, value: Value) -> tf.Tensor | None:
    top = None if a.weight is None else a.weight(value)
    if b.weight is None:
        return top
    bottom = b.weight(value)
    return 1 / bottom if top is None else top / bottom


def _match_product(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches a product of two exponentials."""
    if any(reader.op(each).type != "Exp" for each in op.inputs):
        return None
    x, y = (reader.op(each).inputs[0] for each in op.inputs)
    if reader.same(x, y):
        return None
    return lambda value: _times_exp(None, value(x), value(y), 1)


def _times_exp(
    weight: tf.Tensor | None, a: tf.Tensor, b: tf.Tensor, sign: int
) -> tf.Tensor:
    """Builds `weight * exp(a + sign * b)`, the sum not rounded."""
    b = sign * b
    total = a + b
    share = total - a
    rest = (a - (total - share)) + (b - share)
    rest = tf.where(tf.math.is_finite(rest), rest, tf.zeros_like(rest))
    factor = 1 + tf.stop_gradient(rest)
    exponent = total
    if weight is None:
        return ops.exp(exponent) * factor
    return scaled(weight * factor, exponent)


def _match_root(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches a root or a negative power of an exponential."""
    power = {"Sqrt": 0.5, "Rsqrt": -0.5, "Reciprocal": -1.0, "Inv": -1.0}.get(op.type)
    if op.type == "Pow":
        power = reader.scalar(op.inputs[1])
    exponential = reader.op(op.inputs[0])
    if power is None or power >= 1 or exponential.type != "Exp":
        return None
    x = exponential.inputs[0]
    return lambda value: ops.exp(power * value(x))


_HIGHAM = "Blanchard, Higham and Higham, IMA Journal of Numerical Analysis 41(4), 2021"


RULES = (
    Rule(
        name="softmax-by-hand",
        before="exp(x) / sum(exp(x)), also masked, shifted by max(x), with an epsilon",
        after="ops.softmax(x); the bias of the epsilon goes",
        fails="an exponential overflows, or all of them underflow",
        reference=_HIGHAM,
        op_types=(*_DIVISIONS, "DivNoNan", "Mul"),
        match=_match_softmax,
    ),
    Rule(
        name="sigmoid-by-hand",
        before="1 / (1 + exp(-x)), exp(x) / (1 + exp(x)), (tanh(x / 2) + 1) / 2",
        after="ops.sigmoid(x)",
        fails="the exponential overflows; the tanh rounds to -1",
        reference="tfsafe.ops.sigmoid",
        op_types=(*_DIVISIONS, "Reciprocal", "Inv", "Pow", "Mul", "Add", "AddV2"),
        match=_match_sigmoid,
    ),
    Rule(
        name="tanh-by-hand",
        before="(exp(x) - exp(-x)) / (exp(x) + exp(-x))",
        after="ops.tanh(x)",
        fails="an exponential overflows, or x is small",
        reference="tfsafe.ops.tanh",
        op_types=_DIVISIONS,
        match=_match_tanh,
    ),
    Rule(
        name="complement-of-softmax",
        before="1 - softmax(x)",
        after="-ops.expm1(ops.log_softmax(x))",
        fails="a class dominates its row",
        reference=_HIGHAM,
        op_types=("Sub",),
        match=_match_complement,
    ),
    Rule(
        name="ratio-of-exponentials",
        before="exp(x) / exp(y), cosh(x) / cosh(y), sum(w * exp(x)) / sum(exp(y))",
        after="exp(x - y)",
        fails="an exponential overflows or underflows, and the quotient does not",
        reference="identity; Knuth, The Art of Computer Programming 2, section 4.2.2",
        op_types=_DIVISIONS,
        match=_match_ratio,
    ),
    Rule(
        name="product-of-exponentials",
        before="exp(x) * exp(y)",
        after="exp(x + y)",
        fails="one overflows or underflows, and the product does not",
        reference="identity; Knuth, The Art of Computer Programming 2, section 4.2.2",
        op_types=("Mul",),
        match=_match_product,
    ),
    Rule(
        name="root-of-exponential",
        before="sqrt(exp(x)), exp(x) ** k for k < 1",
        after="exp(x / 2), exp(k * x)",
        fails="the exponential overflows or underflows, and the root does not",
        reference="identity",
        op_types=("Sqrt", "Rsqrt", "Pow", "Reciprocal", "Inv"),
        match=_match_root,
    ),
)
