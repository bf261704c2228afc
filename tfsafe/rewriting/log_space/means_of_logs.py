"""Finds the logarithm of `1 - exp(mean(log p))` of likely elements p of a softmax."""

import tensorflow as tf

from tfsafe.graph import DIVISIONS, OpFact, op_types
from tfsafe.ops.formulas.differences.log_complements import (
    log_of_minus_log,
    log_one_minus_exp_of_exp,
    log_one_minus_softmax,
)
from tfsafe.rewriting.engine.rule import Value
from tfsafe.rewriting.log_space import probabilities
from tfsafe.rewriting.log_space.form import Factored, LogForms, applied, once

_MOVES = op_types(OpFact.MOVES)
# Longer formulas are left alone.
_DEPTH = 8


def complement(x: tf.Tensor, logs: LogForms) -> Factored | None:
    """Factors `1 - exp(x)` of a mean or a weighted sum x of a log-softmax.

    Terms of x that are nearly 0 round to it; their logarithms do not.

    Args:
      x: The mean.
      logs: What is known about logarithms.

    Returns:
      The factors; None for other tensors.
    """
    source = _source(x, logs, _DEPTH)
    if source is None:
        return None
    softmax = probabilities.softmax_of_log(source.op, logs.reader)
    if softmax is None:
        return None

    def log_of_minus(value: Value) -> tf.Tensor:
        left = log_one_minus_softmax(softmax.logits(value), softmax.axis, None)
        return log_of_minus_log(value(source), left)

    # What x is made by is linear: of the negative it makes minus x.
    minus = Factored("log-of-softplus", once(log_of_minus))
    size = logs.inside(logs.reader, {source.name: minus}).of(x)
    if size is None or size.is_partial:
        return None
    log = applied(log_one_minus_exp_of_exp, size.whole_log)
    return Factored("log-of-complement", log, is_nonnegative=size.is_nonnegative)


def _source(x: tf.Tensor, logs: LogForms, depth: int) -> tf.Tensor | None:
    """Returns the log-softmax that a tensor is linear in, if there is one."""
    op = logs.reader.op(x)
    if not depth:
        return None
    if probabilities.softmax_of_log(op, logs.reader) is not None:
        return op.outputs[0]
    if op.type in _MOVES | DIVISIONS | {"Mean", "Sum"}:
        return _source(op.inputs[0], logs, depth - 1)
    if op.type != "Mul":
        return None
    found = [_source(each, logs, depth - 1) for each in op.inputs]
    known = [each for each in found if each is not None]
    return known[0] if len(known) == 1 else None
