"""Rules for what is written in log space already, but by hand."""

import tensorflow as tf

from tfsafe import ops
from tfsafe.rewriting.engine.rule import Build, Rule
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.log_space import logsumexp_by_hand as totals
from tfsafe.rewriting.match.patterns import either_way, is_sum


def _match_logsumexp(op: tf.Operation, reader: Reader) -> Build | None:
    found = totals.logsumexp_of(op, reader)
    if found is None:
        return None
    return lambda value: ops.logsumexp(value(found.x), found.axes, found.keepdims)


def _match_log_softmax(op: tf.Operation, reader: Reader) -> Build | None:
    found = totals.log_softmax_of(op, reader)
    if found is None:
        return None
    x, axes = found
    return lambda value: ops.log_softmax(value(x), axes)


def _match_log_add_exp(op: tf.Operation, reader: Reader) -> Build | None:
    if op.type == "SelectV2":
        return _match_selected(op, reader)
    pair = _pair(op, reader)
    if pair is None:
        return None
    x, y = pair
    return lambda value: ops.log_add_exp(value(x), value(y))


def _match_selected(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches Keras' form, which takes care of two equal infinities."""
    test, equal, usual = (reader.op(each) for each in op.inputs)
    pair = _pair(usual, reader)
    if test.type != "IsNan" or not is_sum(equal) or pair is None:
        return None
    x, y = pair
    difference = reader.op(test.inputs[0])
    is_theirs = difference.type == "Sub" and _are(difference.inputs, x, y, reader)
    if not is_theirs or not _are(equal.inputs, x, y, reader):
        return None
    return lambda value: ops.log_add_exp(value(x), value(y))


def _pair(op: tf.Operation, reader: Reader) -> tuple[tf.Tensor, tf.Tensor] | None:
    """Recognises `max(x, y) + log1p(exp(-|x - y|))`."""
    for largest, rest in either_way(op) if is_sum(op) else []:
        maximum, tensor = reader.op(largest), rest
        for type_ in ("Log1p", "Exp", "Neg", "Abs", "Sub"):
            inner = reader.op(tensor)
            if inner.type != type_:
                break
            tensor = inner.inputs[0]
        else:
            x, y = inner.inputs
            if maximum.type == "Maximum" and _are(maximum.inputs, x, y, reader):
                return x, y
    return None


def _are(
    pair: tuple[tf.Tensor, tf.Tensor], x: tf.Tensor, y: tf.Tensor, reader: Reader
) -> bool:
    a, b = pair
    return (reader.same(a, x) and reader.same(b, y)) or (
        reader.same(a, y) and reader.same(b, x)
    )


def _match_lgammas(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `lgamma(x + y) - lgamma(x)`."""
    a, b = (reader.op(each) for each in op.inputs)
    if a.type != "Lgamma" or b.type != "Lgamma":
        return None
    x = b.inputs[0]
    total = reader.op(a.inputs[0])
    for first, y in either_way(total) if is_sum(total) else []:
        if reader.same(first, x):
            return _pochhammer(x, y, a.inputs[0])
    return None


def _pochhammer(x: tf.Tensor, y: tf.Tensor, total: tf.Tensor) -> Build:
    return lambda value: _lgammas(value(x), value(y), value(total))


def _lgammas(x: tf.Tensor, y: tf.Tensor, total: tf.Tensor) -> tf.Tensor:
    """Builds the difference; as it stands where an argument is not positive."""
    is_usual = (x > 0) & (total > 0)
    one = tf.ones_like(total)
    usual = ops.log_pochhammer(tf.where(is_usual, x, one), tf.where(is_usual, y, one))
    unusual = tf.math.lgamma(tf.where(is_usual, one, total)) - tf.math.lgamma(
        tf.where(is_usual, one, x)
    )
    return tf.where(is_usual, usual, unusual)


_HIGHAM = "Blanchard, Higham and Higham, IMA Journal of Numerical Analysis 41(4), 2021"

RULES = (
    Rule(
        name="logsumexp-by-hand",
        before="log(sum(exp(x - m))) + m",
        after="ops.logsumexp(x)",
        fails="all of x is -inf, or one element dominates",
        reference=_HIGHAM,
        op_types=("Add", "AddV2"),
        match=_match_logsumexp,
    ),
    Rule(
        name="log-softmax-by-hand",
        before="x - log(sum(exp(x)))",
        after="ops.log_softmax(x)",
        fails="an exponential overflows, or one element dominates",
        reference=_HIGHAM,
        op_types=("Sub",),
        match=_match_log_softmax,
    ),
    Rule(
        name="log-add-exp-by-hand",
        before="max(x, y) + log1p(exp(-|x - y|)), keras.ops.logaddexp(x, y)",
        after="ops.log_add_exp(x, y)",
        fails="x and y are equal: the slopes are 1 and 0, or NaN",
        reference="tfsafe.ops.log_add_exp",
        op_types=("Add", "AddV2", "SelectV2"),
        match=_match_log_add_exp,
    ),
    Rule(
        name="log-pochhammer",
        before="lgamma(x + y) - lgamma(x)",
        after="ops.log_pochhammer(x, y)",
        fails="x is large beside y",
        reference="Abramowitz and Stegun, Handbook of Mathematical Functions, 6.1.40",
        op_types=("Sub",),
        match=_match_lgammas,
    ),
)
