"""Finds the logarithm of 1 minus a part of a probability, also within a sum."""

from collections.abc import Iterator

import tensorflow as tf

from tfsafe.ops.formulas.differences.log_complements import log_one_minus_part
from tfsafe.rewriting.engine.rule import Value
from tfsafe.rewriting.facts.bounds import axes_of_factor
from tfsafe.rewriting.facts.tensors import both_ways
from tfsafe.rewriting.log_space import probabilities
from tfsafe.rewriting.log_space.form import Factored, LogForms, once, scaled
from tfsafe.rewriting.log_space.pairs import either, total
from tfsafe.rewriting.match.arithmetic import is_sum, number, terms

_LARGEST = 1 - 1e-3


def of_part(op: tf.Operation, logs: LogForms) -> Factored | None:
    """Factors 1 minus `op`, which multiplies a probability by any tensor."""
    for weight, p in both_ways(op, "Mul"):
        found = _factored(weight, logs.of(p), logs.complement(p), logs)
        if found is not None:
            return found
    return None


def of_rest(op: tf.Operation, logs: LogForms) -> Factored | None:
    """Factors 1 plus `op`, which multiplies `p - 1` by any tensor."""
    for weight, less in both_ways(op, "Mul"):
        inner = logs.reader.op(less)
        if inner.type != "Sub" or number(logs.reader, *inner.inputs[::-1]) != 1:
            continue
        p = inner.inputs[0]
        found = _factored(weight, logs.complement(p), logs.of(p), logs)
        if found is not None:
            return found
    return None


def beside_complement(x: tf.Tensor, y: tf.Tensor, logs: LogForms) -> Factored | None:
    """Factors `(a + 1) - p` of a probability p, which is `a + (1 - p)`."""
    op = logs.reader.op(x)
    for other, constant in both_ways(op) if is_sum(op) else ():
        if number(logs.reader, constant, other) != 1:
            continue
        a, left = logs.of(other), logs.complement(y)
        if a is None or left is None or a.is_partial or left.is_partial:
            return None
        is_pure = a.is_pure and left.is_pure
        return either(a, left) if is_pure else total(a, left, 1)
    return None


def of_scaled(c: tf.Tensor, y: tf.Tensor, logs: LogForms) -> Factored | None:
    """Factors `c - c * p` of a positive number c."""
    found, *others = terms(logs.reader, y)
    if others or not number(logs.reader, c, y) == found.factor > 0:
        return None
    left = logs.complement(found.tensor)
    return None if left is None else scaled(left, found.factor)


def _factored(
    weight: tf.Tensor, p: Factored | None, left: Factored | None, logs: LogForms
) -> Factored | None:
    # A smaller part leaves a number that is not near 0.
    if logs.reader.bounds(weight).high < _LARGEST:
        return None
    if p is None or left is None or not (p.is_nonnegative and left.is_pure):
        return None

    def log(value: Value) -> tf.Tensor:
        return log_one_minus_part(
            value(weight), p.whole_log(value), left.whole_log(value)
        )

    return Factored(
        "log-of-complement",
        once(log),
        is_nonnegative=False,
        is_partial=True,
        has_exp=p.has_exp,
    )


def weighted_softmaxes(
    product: tf.Tensor, axes: tuple[int, ...], logs: LogForms
) -> Iterator[tuple[tf.Tensor, tf.Tensor]]:
    """Yields a softmax that sums to 1 over axes, and its other factor or its mask."""
    op = logs.reader.op(product)
    is_masked = op.type == "SelectV2" and logs.reader.is_number(op.inputs[2], 0)
    for part, other in [op.inputs[1::-1]] if is_masked else both_ways(op, "Mul"):
        softmax = probabilities.softmax_of(logs.reader.op(part), logs)
        own = axes_of_factor(part, product, axes)
        if softmax is None or softmax.mask is not None or own is None:
            continue
        if {axis % part.shape.rank for axis in softmax.axis} == set(own):
            yield part, other
