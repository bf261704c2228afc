"""Finds logarithms of quotients whose two sides are 0 at the same point."""

import math
from collections.abc import Callable

import tensorflow as tf

from tfsafe.ops.formulas import quotients
from tfsafe.rewriting.log_space.form import Factored, LogForms, once
from tfsafe.rewriting.match.arithmetic import Term
from tfsafe.rewriting.match.index import Pattern
from tfsafe.rewriting.match.products import scaled
from tfsafe.rewriting.match.trees import argument

_FUNCTIONS: tuple[tuple[Pattern, Callable[[tf.Tensor], tf.Tensor]], ...] = (
    (("Sinh", "x"), quotients.log_sinh_over_x),
    (("Sub", ("Exp", "x"), ("Exp", ("Neg", "x"))), quotients.log_two_sinh_over_x),
    (("Expm1", "x"), quotients.log_expm1_over_x),
    (("Sub", ("Exp", "x"), 1), quotients.log_expm1_over_x),
)


def limit(op: tf.Operation, logs: LogForms) -> Factored | None:
    """Factors `sinh(x) / x`, `expm1(x) / x` and their inverses."""
    for places, direction in (((0, 1), 1), ((1, 0), -1)):
        top, other = (scaled(logs.reader, op.inputs[place]) for place in places)
        if not other.factor:
            continue
        for pattern, function in _FUNCTIONS:
            found = argument(logs.reader, top.tensor, pattern)
            if found is None:
                continue
            sign, x = found
            inside = scaled(logs.reader, x.tensor, x.factor)
            if not logs.reader.same(inside.tensor, other.tensor):
                continue
            ratio = sign * top.factor * inside.factor / other.factor
            if ratio > 0:
                return _factored(function, x, direction, math.log(ratio))
    return None


def _factored(
    function: Callable[[tf.Tensor], tf.Tensor], x: Term, direction: int, offset: float
) -> Factored:
    return Factored(
        "log-of-ratio",
        once(lambda value: direction * function(x.make(value))),
        offset=direction * offset,
        has_exp=True,
    )
