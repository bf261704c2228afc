"""Rules for log-sum-exp and other formulas in log space, written by hand."""

from collections.abc import Callable

import tensorflow as tf

from tfsafe import ops
from tfsafe.graph import ADDITIONS, DIVISIONS
from tfsafe.ops.formulas.out_of_range.weighted_exponentials import (
    log_sum_at_temperature,
)
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.finiteness import is_watched
from tfsafe.rewriting.facts.tensors import Reader, both_ways
from tfsafe.rewriting.log_space import logsumexp_by_hand
from tfsafe.rewriting.log_space.form import with_inputs
from tfsafe.rewriting.log_space.operations import gathers
from tfsafe.rewriting.match.arithmetic import Term
from tfsafe.rewriting.match.products import scaled
from tfsafe.rewriting.match.reductions import reduction
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


def _match_temperature(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `t * logsumexp(x / t)`, also of a mean."""
    if is_watched(reader, op):
        return None
    for t, log in both_ways(op, "Mul"):
        found, reduce = _log_of_total(reader, log)
        if found is None:
            continue
        quotient = scaled(reader, found.x)
        division = reader.op(quotient.tensor)
        if division.type not in DIVISIONS:
            continue
        x, divisor = division.inputs
        above, below = scaled(reader, t), scaled(reader, divisor)
        is_one = _is_one_to_a_row(divisor, found)
        if is_one and reader.same(above.tensor, below.tensor):
            factor = quotient.factor / below.factor
            return _at_temperature(x, factor, above, found, reduce)
    return None


def _log_of_total(
    reader: Reader, tensor: tf.Tensor
) -> tuple[logsumexp_by_hand.LogSum | None, Callable[..., tf.Tensor]]:
    """Reads the logarithm of a sum or a mean of exponentials, and which it is."""
    log = reader.op(tensor)
    mean = reduction(reader, log.inputs[0], "Mean") if log.type == "Log" else None
    exp = None if mean is None else reader.op(mean.x)
    if mean is None or mean.axes is None or exp is None or exp.type != "Exp":
        return logsumexp_by_hand.any_logsumexp(tensor, reader), tf.reduce_sum
    found = logsumexp_by_hand.LogSum(exp.inputs[0], mean.axes, mean.keepdims)
    return found, tf.reduce_mean


def _is_one_to_a_row(t: tf.Tensor, found: logsumexp_by_hand.LogSum) -> bool:
    if t.shape.rank == 0:
        return True
    is_kept = found.keepdims and t.shape.rank == found.x.shape.rank
    return is_kept and all(t.shape[axis] == 1 for axis in found.axes)


def _at_temperature(
    x: tf.Tensor,
    factor: float,
    temperature: Term,
    found: logsumexp_by_hand.LogSum,
    reduce: Callable[..., tf.Tensor],
) -> Build:
    def build(value: Value) -> tf.Tensor:
        logits = value(x) if factor == 1 else factor * value(x)
        made = log_sum_at_temperature(
            logits, value(temperature.tensor), found.axes, found.keepdims, reduce
        )
        return made if temperature.factor == 1 else temperature.factor * made

    return build


_LOG_ADD_EXP = (
    "Add",
    ("Maximum", "x", "y"),
    ("Log1p", ("Exp", ("Neg", ("Abs", ("Sub", "x", "y"))))),
)

RULES = (
    Rule(
        name="logsumexp-at-temperature",
        before="t * log(sum(exp(x / t))), t * log(mean(exp(x / t)))",
        after="max(x) + t * log(sum(exp((x - max(x)) / t))), max(x) for t = 0",
        fails_when="t is 0, or so small that x / t overflows",
        reference="the limit for t -> 0",
        op_types=("Mul",),
        match=_match_temperature,
    ),
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
