"""Rules for log-sum-exp and other formulas in log space, written by hand."""

import tensorflow as tf

from tfsafe import ops
from tfsafe.graph import ADDITIONS
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.log_space import logsumexp_by_hand
from tfsafe.rewriting.log_space.form import with_inputs
from tfsafe.rewriting.log_space.operations import gathers
from tfsafe.rewriting.match.trees import Tree, Trees
from tfsafe.rewriting.rules import references


def _match_logsumexp(op: tf.Operation, reader: Reader) -> Build | None:
    found = logsumexp_by_hand.logsumexp_of(op, reader)
    if found is None:
        return None
    return lambda value: ops.logsumexp(value(found.x), found.axes, found.keepdims)


def _match_log_softmax(op: tf.Operation, reader: Reader) -> Build | None:
    found = logsumexp_by_hand.log_softmax_of(op, reader)
    if found is None:
        return None
    x, axes = found
    return lambda value: ops.log_softmax(value(x), axes)


def _match_gap(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `logsumexp(x) - max(x)` and `logsumexp(x) - x[..., k]`, also turned."""
    for total, part, sign in ((*op.inputs, -1), (*reversed(op.inputs), 1)):
        found = logsumexp_by_hand.any_logsumexp(total, reader)
        if found is not None:
            picked = _picked(reader.op(part), part, found, reader)
            return None if picked is None else _gap(found, picked, sign)
    return None


def _picked(
    op: tf.Operation,
    part: tf.Tensor,
    found: logsumexp_by_hand.LogSum,
    reader: Reader,
) -> tf.Operation | None:
    """Returns the operation that takes one element of each row of a logsumexp."""
    if op.type != "Max":
        mover = gathers.place_in_rows(part, found.x, found.axes, reader)
        return None if found.keepdims else mover
    is_along = reader.axes(op.inputs[1], found.x.shape.rank) == found.axes
    is_alike = is_along and op.get_attr("keep_dims") == found.keepdims
    return op if is_alike and reader.same(op.inputs[0], found.x) else None


def _gap(found: logsumexp_by_hand.LogSum, picked: tf.Operation, sign: int) -> Build:
    def build(value: Value) -> tf.Tensor:
        log = ops.log_softmax(value(found.x), found.axes)
        return sign * with_inputs(picked, value, {0: log})

    return build


_LOG_ADD_EXP = (
    "Add",
    ("Maximum", "x", "y"),
    ("Log1p", ("Exp", ("Neg", ("Abs", ("Sub", "x", "y"))))),
)

RULES = (
    Rule(
        name="logsumexp-by-hand",
        before="log(sum(exp(x - m))) + m",
        after="ops.logsumexp(x)",
        fails_when="all of x is -inf, or one element dominates",
        reference=references.LOGSUMEXP,
        op_types=ADDITIONS,
        match=_match_logsumexp,
    ),
    Rule(
        name="log-softmax-by-hand",
        before="x - log(sum(exp(x)))",
        after="ops.log_softmax(x)",
        fails_when="an exponential overflows, or one element dominates",
        reference=references.LOGSUMEXP,
        op_types=("Sub",),
        match=_match_log_softmax,
    ),
    Rule(
        name="logsumexp-minus-element",
        before="logsumexp(x) - max(x), logsumexp(x) - x[..., k]",
        after="-ops.log_softmax(x)[..., k]",
        fails_when="that element dominates: no digit is left",
        reference=references.LOGSUMEXP,
        op_types=("Sub",),
        match=_match_gap,
    ),
    Rule(
        name="log-add-exp-by-hand",
        before="max(x, y) + log1p(exp(-|x - y|)), keras.ops.logaddexp(x, y)",
        after="ops.log_add_exp(x, y)",
        fails_when="x and y are equal: the slopes are 1 and 0, or NaN",
        reference="tfsafe.ops.log_add_exp",
        match=Trees(
            Tree(_LOG_ADD_EXP, ops.log_add_exp),
            Tree(
                (
                    "SelectV2",
                    ("IsNan", ("Sub", "x", "y")),
                    ("Add", "x", "y"),
                    _LOG_ADD_EXP,
                ),
                ops.log_add_exp,
            ),
        ),
    ),
)
