"""Rules for softmax, sigmoid, tanh and quotients made of exponentials by hand."""

import tensorflow as tf

from tfsafe import ops
from tfsafe.ops.kernels import fractions
from tfsafe.ops.kernels.weighted_exponentials import exp_of_sum
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.log_space import probabilities
from tfsafe.rewriting.log_space.analysis import Logarithms, logarithms
from tfsafe.rewriting.log_space.form import Factored
from tfsafe.rewriting.log_space.sums import both, for_value
from tfsafe.rewriting.match.arithmetic import both_ways, is_sum, number
from tfsafe.rewriting.match.trees import Tree, Trees
from tfsafe.rewriting.rules import references

_DIVISIONS = ("RealDiv", "Div")


def _match_softmax(op: tf.Operation, reader: Reader) -> Build | None:
    found = probabilities.softmax_of(op, logarithms(reader))
    if found is None:
        return None
    if not found.has_exp:
        return _renormalised(op, reader, found)

    def build(value: Value) -> tf.Tensor:
        mask = None if found.mask is None else found.mask(value)
        return ops.softmax(found.logits(value), found.axis, mask=mask)

    return build


def _renormalised(
    op: tf.Operation, reader: Reader, found: probabilities.Softmax
) -> Build | None:
    """Matches `p / sum(p)` of probabilities that may all underflow."""
    for part, total in probabilities.quotients(op, reader):
        whole = probabilities.total_of(total, reader)
        if whole is None or not reader.same(whole.op.inputs[0], part):
            continue
        is_whole = op.type in _DIVISIONS and probabilities.is_normalised(op, reader)
        if is_whole or not probabilities.is_unguarded(total, reader):
            return None

        def build(
            value: Value, part: tf.Tensor = part, total: tf.Tensor = total
        ) -> tf.Tensor:
            mask = None if found.mask is None else found.mask(value)
            log = found.logits(value)
            return fractions.renormalised(
                value(part), value(total), log, found.axis, mask
            )

        return build
    return None


def _match_complement(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `1 - softmax(x)`, and that of a sigmoid by hand."""
    if number(reader, *op.inputs) != 1:
        return None
    inner = reader.op(op.inputs[1])
    x = probabilities.sigmoid_by_hand(inner, logarithms(reader))
    if x is not None:
        return lambda value: ops.sigmoid(-x(value))
    if probabilities.softmax_of(inner, logarithms(reader)) is None:
        return None
    log = logarithms(reader).of(op.inputs[1])
    return None if log is None else lambda value: -ops.expm1(log.whole_log(value))


def _match_sigmoid(op: tf.Operation, reader: Reader) -> Build | None:
    x = probabilities.sigmoid_by_hand(op, logarithms(reader))
    return None if x is None else lambda value: ops.sigmoid(x(value))


def _match_tanh(op: tf.Operation, reader: Reader) -> Build | None:
    logs = logarithms(reader)
    top, bottom = (reader.op(each) for each in op.inputs)
    if top.type != "Sub" or not is_sum(bottom):
        return None
    x, y = top.inputs
    if not any(
        (_same(reader, x, a) and _same(reader, y, b)) for a, b in both_ways(bottom)
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
    for part, total in probabilities.quotients(op, reader):
        a, b = (for_value(each, logs) for each in (part, total))
        is_hazard = a.has_exp and b.name == "log-of-erfc" and b.is_pure
        if a.is_partial or b.is_partial:
            continue
        if not (b.has_exp or is_hazard):
            if _may_vanish_together(a, b):
                return _underflown(part, total, a, b)
            continue
        if a.name or b.is_pure:
            return _ratio(a, b)
        if op.type in _DIVISIONS:
            return _weighted_sigmoid(op, logs)
    return None


def _may_vanish_together(a: Factored, b: Factored) -> bool:
    """Returns whether two probabilities may underflow, and their quotient not."""
    is_known = bool(a.name and b.name) and a.log is not None and b.log is not None
    return is_known and b.is_pure and b.name != "log-of-erfc"


def _underflown(part: tf.Tensor, total: tf.Tensor, a: Factored, b: Factored) -> Build:
    def build(value: Value) -> tf.Tensor:
        weight = None if a.weight is None else a.weight(value)
        first, second = both(a, b, value)
        return fractions.quotient_or_exp(
            value(part), value(total), first, second, weight
        )

    return build


def _ratio(a: Factored, b: Factored) -> Build:
    def build(value: Value) -> tf.Tensor:
        first, second = both(a, b, value)
        weight = _quotient(a, b, value)
        return exp_of_sum(first, -second, weight)

    return build


def _weighted_sigmoid(op: tf.Operation, logs: Logarithms) -> Build | None:
    """Matches `a / (1 + exp(u))`, such as `x / (1 + exp(-x))`."""
    total = logs.reader.op(op.inputs[1])
    for one, x in both_ways(total) if is_sum(total) else []:
        found = logs.of(x)
        if found is None or number(logs.reader, one, x) != 1:
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


RULES = (
    Rule(
        name="softmax-by-hand",
        before="exp(x) / sum(exp(x)), also masked, shifted by max(x), with an epsilon; "
        "p / sum(p) of probabilities",
        after="ops.softmax(x); the bias of the epsilon goes",
        fails_when="an exponential overflows, or all of them underflow",
        reference=references.LOGSUMEXP,
        op_types=(*_DIVISIONS, "DivNoNan", "Mul"),
        match=_match_softmax,
    ),
    Rule(
        name="sigmoid-by-hand",
        before="1 / (1 + exp(-x)), exp(x) / (1 + exp(x)), (tanh(x / 2) + 1) / 2",
        after="ops.sigmoid(x)",
        fails_when="the exponential overflows; the tanh rounds to -1",
        reference="tfsafe.ops.sigmoid",
        op_types=(*_DIVISIONS, "Reciprocal", "Inv", "Pow", "Mul", "Add", "AddV2"),
        match=_match_sigmoid,
    ),
    Rule(
        name="tanh-by-hand",
        before="(exp(x) - exp(-x)) / (exp(x) + exp(-x))",
        after="ops.tanh(x)",
        fails_when="an exponential overflows, or x is small",
        reference="tfsafe.ops.tanh",
        op_types=_DIVISIONS,
        match=_match_tanh,
    ),
    Rule(
        name="complement-of-softmax",
        before="1 - softmax(x), 1 - 1 / (1 + exp(-x))",
        after="-ops.expm1(ops.log_softmax(x)), ops.sigmoid(-x)",
        fails_when="a class dominates its row",
        reference=references.LOGSUMEXP,
        op_types=("Sub",),
        match=_match_complement,
    ),
    Rule(
        name="ratio-of-exponentials",
        before="exp(x) / exp(y), cosh(x) / cosh(y), sum(w * exp(x)) / sum(exp(y))",
        after="exp(x - y)",
        fails_when="an exponential overflows or underflows, and the quotient does not",
        reference=references.TWO_SUM,
        op_types=(*_DIVISIONS, "Mul"),
        match=_match_ratio,
    ),
    Rule(
        name="product-of-exponentials",
        before="exp(x) * exp(y)",
        after="exp(x + y)",
        fails_when="one overflows or underflows, and the product does not",
        reference=references.TWO_SUM,
        match=Trees(Tree(("Mul", ("Exp", "x"), ("Exp", "y")), exp_of_sum)),
    ),
    Rule(
        name="root-of-exponential",
        before="sqrt(exp(x)), exp(x) ** k for k < 1",
        after="exp(x / 2), exp(k * x)",
        fails_when="the exponential overflows or underflows, and the root does not",
        reference="identity",
        match=Trees(
            Tree(("Sqrt", ("Exp", "x")), lambda x: ops.exp(0.5 * x)),
            Tree(("Rsqrt", ("Exp", "x")), lambda x: ops.exp(-0.5 * x)),
            Tree(("Reciprocal", ("Exp", "x")), lambda x: ops.exp(-x)),
            Tree(
                ("Pow", ("Exp", "x"), "#k"),
                lambda x, k: ops.exp(k * x),
                where=lambda k: k < 1,
            ),
        ),
    ),
)
