"""Finds what a sum with exponentials is less 1, for its logarithm near 1."""

import tensorflow as tf

from tfsafe import ops
from tfsafe.ops.formulas.out_of_range.weighted_exponentials import (
    log_near_one,
    log_one_plus,
)
from tfsafe.ops.kernels.precision import HALF
from tfsafe.rewriting.engine.rule import Build, Value
from tfsafe.rewriting.facts.tensors import both_ways
from tfsafe.rewriting.log_space.form import (
    Factored,
    LogForms,
    dtype_for,
    multiplied,
    once,
)
from tfsafe.rewriting.log_space.sums import signed
from tfsafe.rewriting.log_space.weighted_sums import weighted_sum
from tfsafe.rewriting.match.arithmetic import is_sum, number
from tfsafe.rewriting.match.linear import mixture_of


def whole_log(tensor: tf.Tensor, found: Factored, logs: LogForms) -> Build:
    """Returns how to build the logarithm of a factored tensor, with digits near 1.

    Args:
      tensor: The tensor.
      found: Its factors.
      logs: What is known about logarithms.
    """
    if found.is_pure:
        return found.whole_log
    rest = _less_one(tensor, logs)
    if rest is None:
        if not found.has_exp or tensor.dtype in HALF:
            return found.whole_log
        return lambda value: log_near_one(value(tensor), found.whole_log(value))
    less_one = rest
    return lambda value: log_one_plus(*less_one.pair(value), found.whole_log(value))


def _less_one(tensor: tf.Tensor, logs: LogForms) -> Factored | None:
    """Factors a tensor less 1: the rest of `1 + rest`, of `(1 - w) + w * p` all."""
    reader, op = logs.reader, logs.reader.op(tensor)
    for x, constant in both_ways(op) if is_sum(op) else ():
        if number(reader, constant, x) == 1:
            rest = _beside_one(x, logs)
            return rest if rest is not None and rest.log is not None else None
    mixture = mixture_of(reader, op)
    if mixture is None or mixture.below or len(mixture.above) != 1:
        return None
    p = logs.of(mixture.above[0])
    if p is None or not p.is_pure or p.is_partial:
        return None
    return _scaled_change(mixture.rest, p)


def _beside_one(x: tf.Tensor, logs: LogForms) -> Factored | None:
    """Factors what is added to 1: no exponent below 0 is taken out of a sum.

    A weight of 0, which has no part in the largest exponent, keeps its slope so.

    Returns:
      The factors; None where they are not known.
    """

    def zero(value: Value) -> tf.Tensor:
        return tf.zeros([], dtype_for(value, x.dtype))

    return weighted_sum(logs.reader.op(x), logs, zero) or signed(x, logs)


def _scaled_change(scale: tf.Tensor, p: Factored) -> Factored:
    """Factors `scale * (p - 1)` of an exponential p."""

    def weight(value: Value) -> tf.Tensor:
        x = p.exponent(value)
        zero = tf.zeros([], x.dtype)
        above, below = (ops.expm1(tf.minimum(each, zero)) for each in (-x, x))
        return tf.where(x > 0, -above, below)

    return Factored(
        "log-of-product",
        once(lambda value: tf.maximum(p.exponent(value), 0.0)),
        multiplied(lambda value: value(scale), once(weight)),
        is_nonnegative=False,
        has_exp=True,
    )
