"""The rule for a softplus by hand, whose slopes are those of a maximum at a tie.

`max(x, y) + log1p(exp(-|x - y|))` is smooth, and its maximum is not. The values do not
change: with other terms, such as `-x * y` of a cross-entropy, the maximum cancels.
"""

import functools
import operator

import tensorflow as tf

from tfsafe.graph import SUMS, raw_kernel
from tfsafe.ops.formulas import unchanged_values
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.match.arithmetic import Term, one_plus, terms
from tfsafe.rewriting.match.products import scaled

# Each with its sign as a maximum.
_KINKS = {"Maximum": 1.0, "Minimum": -1.0, "Relu": 1.0}


def _match(op: tf.Operation, reader: Reader) -> Build | None:
    sides = [terms(reader, each) for each in op.inputs]
    if op.type == "Sub":
        sides[1] = [Term(-t.factor, t.tensor) for t in sides[1]]
    ties = [
        (reader.op(kink.tensor), kink.factor)
        for place, side in enumerate(sides)
        for kink in side
        if reader.op(kink.tensor).type in _KINKS
        # A pair within one side is a sum of its own.
        and any(
            _are_smooth(reader, kink, each)
            for other in (*sides[:place], *sides[place + 1 :])
            for each in other
        )
    ]
    if not ties:
        return None

    def build(value: Value) -> tf.Tensor:
        total = raw_kernel(op)([value(each) for each in op.inputs])[0]
        slopes = [
            factor * unchanged_values.smooth_tie(*map(value, kink.inputs))
            for kink, factor in ties
        ]
        return functools.reduce(operator.add, slopes, total)

    return build


def _are_smooth(reader: Reader, kink: Term, log: Term) -> bool:
    """Returns whether a maximum and a logarithm add up to that of two exponentials."""
    op = reader.op(kink.tensor)
    exponent = _exponent(reader, reader.op(log.tensor))
    if exponent is None or kink.factor * _KINKS[op.type] != log.factor:
        return False
    pair = [each for each in op.inputs if not reader.is_number(each, 0)]
    gap = reader.op(exponent)
    if gap.type == "Sub" and len(pair) == 2:
        low, high = map(reader.op, gap.inputs)
        if (low.type, high.type) == ("Minimum", "Maximum"):
            # At a tie both have the slopes of the same one.
            return all(all(map(reader.same, each.inputs, pair)) for each in (low, high))
    minus = scaled(reader, exponent)
    size = reader.op(minus.tensor)
    if size.type != "Abs" or minus.factor >= 0:
        return False
    inside = scaled(reader, size.inputs[0], minus.factor)
    if len(pair) == 1:
        x = scaled(reader, pair[0])
        is_same = reader.same(inside.tensor, x.tensor)
        return is_same and abs(inside.factor) == abs(x.factor)
    gap = reader.op(inside.tensor)
    is_gap = gap.type == "Sub" and abs(inside.factor) == 1
    orders = (pair, pair[::-1])
    return is_gap and any(all(map(reader.same, gap.inputs, each)) for each in orders)


def _exponent(reader: Reader, op: tf.Operation) -> tf.Tensor | None:
    """Reads `log1p(exp(u))`, `log(1 + exp(u))` and `softplus(u)`; returns u."""
    if op.type == "Softplus":
        return op.inputs[0]
    if op.type == "Log":
        return one_plus(reader, reader.op(op.inputs[0]), "Exp")
    if op.type == "Log1p" and reader.op(op.inputs[0]).type == "Exp":
        return reader.op(op.inputs[0]).inputs[0]
    return None


RULES = (
    Rule(
        name="softplus-by-hand",
        before="max(x, 0) - x * y + log1p(exp(-|x|)), min(x, 0) - log1p(exp(-|x|)), "
        "max(x, y) - z + log1p(exp(-|x - y|))",
        after="the same, with the slopes of the logarithm of the sum of exponentials",
        fails_when="x is 0 or y: the slopes are those of the maximum, 1 and 0, not 1/2",
        reference="tfsafe.ops.log_add_exp",
        op_types=SUMS,
        match=_match,
        changes="gradient",
    ),
)
