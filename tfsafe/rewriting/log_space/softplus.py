"""Finds logarithms of softplus by hand."""

import tensorflow as tf

from tfsafe.ops.kernels.log_complements import log_softplus
from tfsafe.rewriting.log_space import probabilities
from tfsafe.rewriting.log_space.form import Factored, LogForms, applied, once
from tfsafe.rewriting.match.arithmetic import both_ways, is_sum, number


def of_one_plus(op: tf.Operation, logs: LogForms) -> Factored | None:
    """Factors `log(1 + exp(x))` and `-log(sigmoid(x))`."""
    inside = logs.reader.op(op.inputs[0])
    if op.type == "Log1p":
        return _softplus_of(logs.of(op.inputs[0]))
    for x, constant in both_ways(inside) if is_sum(inside) else ():
        if number(logs.reader, constant, x) == 1:
            return _softplus_of(logs.of(x))
    return None


def _softplus_of(a: Factored | None) -> Factored | None:
    if a is None or not a.is_pure or a.is_partial or not a.has_exp:
        return None
    return Factored("log-of-softplus", applied(log_softplus, a.exponent))


def minus_log(op: tf.Operation, logs: LogForms) -> Factored | None:
    """Factors `-log(sigmoid(x))`."""
    if op.type != "Log":
        return None
    x = probabilities.sigmoid_of(logs.reader.op(op.inputs[0]), logs)
    if x is None:
        return None
    return Factored("log-of-softplus", once(lambda value: log_softplus(-x(value))))
