"""Rules for softmax, sigmoid, tanh and quotients made of exponentials by hand."""

from collections.abc import Callable

import tensorflow as tf

from tfsafe import ops
from tfsafe.graph import DIVISIONS, RECIPROCALS, SUMS, OpFact, op_types
from tfsafe.ops.formulas.out_of_range import fractions
from tfsafe.ops.formulas.out_of_range.weighted_exponentials import (
    exp_of_sum,
    product_or_exp,
    quotient_of_weights,
)
from tfsafe.ops.kernels import precision
from tfsafe.rewriting.analysis import holes, wider
from tfsafe.rewriting.analysis.empty_data import is_sparse_mean
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.finiteness import is_watched, may_overflow
from tfsafe.rewriting.facts.tensors import Reader, both_ways
from tfsafe.rewriting.log_space import probabilities
from tfsafe.rewriting.log_space.analysis import MOVERS, Logarithms, logarithms
from tfsafe.rewriting.log_space.form import Factored, in_float32
from tfsafe.rewriting.log_space.pairs import both
from tfsafe.rewriting.log_space.sums import for_value
from tfsafe.rewriting.match.arithmetic import is_sum, number
from tfsafe.rewriting.match.trees import Tree, Trees
from tfsafe.rewriting.rules import references
from tfsafe.rewriting.rules.probability import by_hand, softmax_complements

_LOOPS = op_types(OpFact.LOOP)
_LINEAR = op_types(OpFact.MOVES) | {"BatchMatMulV2", "Einsum", "MatMul", "Mul", "Sum"}


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
    for part, total in probabilities.quotients(op):
        whole = probabilities.total_of(total, reader)
        if whole is None or not reader.same(whole.op.inputs[0], part):
            continue
        is_whole = op.type in DIVISIONS and probabilities.is_normalised(op, reader)
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


def _match_ratio(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches a quotient by an exponential, or by a sum of such."""
    found = _quotient_of(op, reader)
    # A quotient of two sides that are 0 has its limit elsewhere.
    if found is None or holes.has_deep_hole(reader, op):
        return None
    return in_float32(found, op.outputs[0].dtype)


def _quotient_of(op: tf.Operation, reader: Reader) -> Build | None:
    logs = logarithms(reader)
    for part, total in probabilities.quotients(op):
        a, b = (for_value(each, logs) for each in (part, total))
        if not (a.is_pure or a.is_partial or b.is_partial):
            a = logs.divided_by(part, total, b) or a
        is_hazard = a.has_exp and b.name == "log-of-erfc" and b.is_pure
        # An exponential that no logarithm is known of overflows before the quotient.
        is_open = a.log is None and wider.may_leave_range(reader, part)
        is_constant = a.log is None and b.log is None
        if a.is_partial or b.is_partial or is_open or is_constant:
            continue
        if not (b.has_exp or is_hazard):
            is_one = op.type in DIVISIONS and probabilities.is_normalised(op, reader)
            if _may_vanish_together(a, b) and not is_one and op.type != "DivNoNan":
                if op.outputs[0].dtype not in precision.HALF:
                    return _underflown(part, total, a, b)
                # `half-precision` has a divisor that overflows.
                is_left = wider.adds_products(reader, total)
                return None if is_left else _ratio(a, b)
            continue
        if a.name or b.is_pure:
            if op.type == "DivNoNan":
                return _ratio(a, b, tf.math.divide_no_nan)
            is_part = _is_made_of_terms(part, total, reader)
            is_part |= is_sparse_mean(reader, part, total)
            return _ratio(a, b, ops.xdivy if is_part else tf.divide)
        if op.type in DIVISIONS:
            return _weighted_sigmoid(op, logs)
    return None


def _may_vanish_together(a: Factored, b: Factored) -> bool:
    """Returns whether two probabilities may underflow, and their quotient not."""
    if b.log is None or not b.name or not b.is_nonnegative or b.name == "log-of-erfc":
        return False
    return a.log is not None or b.name == "log-of-softplus"


def _underflown(part: tf.Tensor, total: tf.Tensor, a: Factored, b: Factored) -> Build:
    def build(value: Value) -> tf.Tensor:
        weights = [None if e.weight is None else e.weight(value) for e in (a, b)]
        first, second = both(a, b, value)
        return fractions.quotient_or_exp(
            value(part), value(total), first, second, *weights
        )

    return build


def _is_made_of_terms(part: tf.Tensor, total: tf.Tensor, reader: Reader) -> bool:
    """Returns whether `part` is 0 where all terms of the sum `total` are."""
    whole = probabilities.total_of(total, reader)
    return whole is not None and _has_factor(part, whole.op.inputs[0], reader)


def _has_factor(
    tensor: tf.Tensor, factor: tf.Tensor, reader: Reader, depth: int = 4
) -> bool:
    op = reader.op(tensor)
    return reader.same(tensor, factor) or bool(
        depth
        and op.type in _LINEAR
        and any(_has_factor(each, factor, reader, depth - 1) for each in op.inputs)
    )


def _ratio(
    a: Factored, b: Factored, divide: Callable[..., tf.Tensor] = tf.divide
) -> Build:
    def build(value: Value) -> tf.Tensor:
        first, second = both(a, b, value)
        weight = _quotient(a, b, value, divide)
        return exp_of_sum(first, -second, weight)

    return build


def _weighted_sigmoid(op: tf.Operation, logs: Logarithms) -> Build | None:
    """Matches `a / (1 + exp(u))`, such as `x / (1 + exp(-x))`."""
    total = logs.reader.op(op.inputs[1])
    for one, x in both_ways(total) if is_sum(total) else []:
        found = logs.of(x)
        is_one = number(logs.reader, one, x) == 1
        if is_one and found is not None and found.is_pure and not found.is_partial:
            return _times_sigmoid(op.inputs[0], found)
    return None


def _times_sigmoid(top: tf.Tensor, u: Factored) -> Build:
    return lambda value: value(top) * ops.sigmoid(-u.exponent(value))


def _quotient(
    a: Factored, b: Factored, value: Value, divide: Callable[..., tf.Tensor]
) -> tf.Tensor | None:
    top = None if a.weight is None else a.weight(value)
    if b.weight is None:
        return top
    bottom = b.weight(value)
    top = tf.ones_like(bottom) if top is None else top
    return quotient_of_weights(top, bottom, divide)


def _match_product(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `exp(x) * exp(y)`, `exp(x) * erfc(y)`, `exp(x) * (1 / sum(exp(y)))`."""
    if is_watched(reader, op):
        return None
    found = _PRODUCT(op, reader)
    if found is not None:
        return found
    logs = logarithms(reader)
    parts = [logs.of(each) for each in op.inputs]
    if not any(
        _is_inverse(reader, each) or _is_exp(reader, each) for each in op.inputs
    ):
        return None
    if any(each is None or each.is_partial for each in parts):
        return None
    whole = logs.of(op.outputs[0])
    if whole is None or whole.log is None or not whole.has_exp:
        return None
    by_factors = all(_is_plain(logs, each) for each in op.inputs)
    return in_float32(_product(op, whole, by_factors), op.outputs[0].dtype)


def _product(op: tf.Operation, whole: Factored, by_factors: bool) -> Build:
    def build(value: Value) -> tf.Tensor:
        a, b = map(value, op.inputs)
        weight, exponent = whole.pair(value)
        return product_or_exp(a, b, weight, exponent, by_factors=by_factors)

    return build


def _is_plain(logs: Logarithms, tensor: tf.Tensor, depth: int = 4) -> bool:
    """Returns whether a factor divides by no exponential."""
    op = logs.reader.op(tensor)
    if logs.parts(tensor).log is None or op.type in {"Erfc", "Exp"}:
        return True
    if op.type in DIVISIONS and logs.parts(op.inputs[1]).log is not None:
        return False
    is_known = op.type in {"Mul", "Sum", *SUMS, *DIVISIONS, *MOVERS}
    floats = [each for each in op.inputs if each.dtype.is_floating]
    return (
        bool(depth) and is_known and all(_is_plain(logs, x, depth - 1) for x in floats)
    )


def _is_exp(reader: Reader, tensor: tf.Tensor) -> bool:
    op = reader.op(tensor)
    while op.type in MOVERS:
        op = reader.op(op.inputs[0])
    return op.type == "Exp" and may_overflow(reader, op.inputs[0])


def _is_inverse(reader: Reader, tensor: tf.Tensor, depth: int = 4) -> bool:
    """Returns whether a factor is a number over a sum of exponentials."""
    op = reader.op(tensor)
    if op.type in _LOOPS:
        # What a loop carries may be such a number.
        state = logarithms(reader).of(tensor)
        return state is not None and state.has_exp
    if op.type in DIVISIONS | RECIPROCALS:
        below = logarithms(reader).of(op.inputs[-1])
        is_number = op.type in RECIPROCALS or reader.scalar(op.inputs[0]) is not None
        return is_number and below is not None and below.has_exp
    if not depth or op.type not in {"Mul", *MOVERS}:
        return False
    return any(_is_inverse(reader, each, depth - 1) for each in op.inputs)


_PRODUCT = Trees(Tree(("Mul", ("Exp", "x"), ("Exp", "y")), exp_of_sum))


def _match_fraction(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `(p - q) / p` of probabilities that may underflow together."""
    if is_watched(reader, op):
        return None
    top, below = reader.op(op.inputs[0]), op.inputs[1]
    if top.type != "Sub" or not reader.same(top.inputs[0], below):
        return None
    logs = logarithms(reader)
    p, q = (logs.of(each) for each in top.inputs)
    if p is None or q is None or not (p.is_pure and q.is_pure):
        return None
    if p.is_partial or q.is_partial or p.log is None or q.log is None:
        return None
    first, second = p, q

    def build(value: Value) -> tf.Tensor:
        a, b = both(first, second, value)
        return fractions.one_minus_quotient(value(top.outputs[0]), value(below), a, b)

    return build


RULES = (
    Rule(
        name="fraction-of-difference",
        before="(p - q) / p of probabilities",
        after="-expm1(log(q) - log(p)) where p underflows",
        fails_when="both underflow",
        reference="identity",
        op_types=DIVISIONS,
        match=_match_fraction,
    ),
    Rule(
        name="softmax-by-hand",
        before="exp(x) / sum(exp(x)), also masked, shifted by max(x), with an epsilon; "
        "p / sum(p) of probabilities",
        after="ops.softmax(x); the bias of the epsilon goes",
        fails_when="an exponential overflows, or all of them underflow",
        reference=references.LOGSUMEXP,
        op_types=(*DIVISIONS, "DivNoNan", "Mul"),
        match=_match_softmax,
    ),
    Rule(
        name="sigmoid-by-hand",
        before="1 / (1 + exp(-x)), exp(x) / (1 + exp(x)), (tanh(x / 2) + 1) / 2",
        after="ops.sigmoid(x)",
        fails_when="the exponential overflows; the tanh rounds to -1",
        reference="tfsafe.ops.sigmoid",
        op_types=(*DIVISIONS, *RECIPROCALS, "Add", "AddV2", "Mul", "Pow", "Sigmoid"),
        match=by_hand.match_sigmoid,
    ),
    Rule(
        name="tanh-by-hand",
        before="(exp(x) - exp(-x)) / (exp(x) + exp(-x))",
        after="ops.tanh(x)",
        fails_when="an exponential overflows, or x is small",
        reference="tfsafe.ops.tanh",
        op_types=(*DIVISIONS, "Tanh"),
        match=by_hand.match_tanh,
    ),
    Rule(
        name="complement-of-softmax",
        before="1 - softmax(x), 1 - softmax(x)[k], 1 - max(softmax(x)), "
        "1 - sum(softmax(x) ** 2), 1 - sum(y * softmax(x)), 1 - softmax(x) @ y, "
        "1 - 1 / (1 + exp(-x))",
        after="-ops.expm1(ops.log_softmax(x)), sum(p * (1 - p)), sum((1 - y) * p), "
        "ops.sigmoid(-x)",
        fails_when="a class dominates its row",
        reference=references.LOGSUMEXP,
        op_types=("Sub",),
        match=softmax_complements.match,
    ),
    Rule(
        name="ratio-of-exponentials",
        before="exp(x) / exp(y), cosh(x) / cosh(y), sum(w * exp(x)) / sum(exp(y))",
        after="exp(x - y)",
        fails_when="an exponential overflows or underflows, and the quotient does not",
        reference=references.TWO_SUM,
        op_types=DIVISIONS | {"Mul", "DivNoNan"},
        match=_match_ratio,
    ),
    Rule(
        name="product-of-exponentials",
        before="exp(x) * exp(y), exp(x) * erfc(y), exp(x) * (0.5 / sum(exp(y)))",
        after="exp(x + y), exp(x + log_erfc(y)), exp(x - logsumexp(y) + log(0.5))",
        fails_when="one overflows or underflows, and the product does not",
        reference=references.TWO_SUM,
        op_types=("Mul",),
        match=_match_product,
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
