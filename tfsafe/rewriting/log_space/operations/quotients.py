"""Finds logarithms of quotients whose two sides are 0 at the same point or large."""

import math
from collections.abc import Callable

import tensorflow as tf

from tfsafe.ops.formulas.limits import quotients
from tfsafe.rewriting.log_space.form import Factored, LogForms, once
from tfsafe.rewriting.match.arithmetic import Term
from tfsafe.rewriting.match.index import Pattern
from tfsafe.rewriting.match.products import scaled
from tfsafe.rewriting.match.trees import argument

# How far above a divisor an exponential is looked for, and through how many tensors.
_DEPTH, _MOST = 8, 64
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


def divides_by_own_size(a: Factored, divisor: tf.Tensor, logs: LogForms) -> bool:
    """Returns whether a weighted exponential is divided by a number made of such.

    As where a state is divided by its median after each step: the exponents would add
    up, and the weights would be divided by all of these numbers.
    """
    if a.is_pure or not a.has_exp or logs.parts(divisor).log is not None:
        return False
    level, seen = [divisor], set[str]()
    for _ in range(_DEPTH):
        inputs = [x for each in level for x in logs.reader.op(each).inputs]
        level = list({x.name: x for x in inputs if x.name not in seen}.values())
        seen.update(x.name for x in level)
        found = map(logs.of, level)
        if any(each is not None and each.has_exp for each in found):
            return True
        if len(seen) > _MOST:
            break
    return False


def _factored(
    function: Callable[[tf.Tensor], tf.Tensor], x: Term, direction: int, offset: float
) -> Factored:
    return Factored(
        "log-of-ratio",
        once(lambda value: direction * function(x.make(value))),
        offset=direction * offset,
        has_exp=True,
    )
