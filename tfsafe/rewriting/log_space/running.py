"""Finds logarithms of running sums and products."""

import tensorflow as tf

from tfsafe import ops
from tfsafe.rewriting.log_space.form import Factored, LogForms, applied


def total(op: tf.Operation, logs: LogForms) -> Factored | None:
    """Factors a running sum of exponentials."""
    a = logs.of(op.inputs[0])
    axis = logs.reader.scalar(op.inputs[1])
    if a is None or axis is None or not a.is_pure or a.is_partial:
        return None
    order = op.get_attr("exclusive"), op.get_attr("reverse")

    def summed(log: tf.Tensor) -> tf.Tensor:
        return ops.cumulative_logsumexp(log, int(axis), *order)

    log = applied(summed, a.exponent)
    return Factored("log-of-sum", log, has_exp=a.has_exp)


def product(op: tf.Operation, logs: LogForms) -> Factored | None:
    """Factors a running product."""
    a = logs.of(op.inputs[0])
    axis = logs.reader.scalar(op.inputs[1])
    if a is None or axis is None or not a.is_nonnegative:
        return None
    order = op.get_attr("exclusive"), op.get_attr("reverse")
    return Factored(
        "log-of-product",
        applied(lambda log: tf.cumsum(log, int(axis), *order), a.whole_log),
        has_exp=a.has_exp,
    )
