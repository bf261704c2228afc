"""Matches 1 minus a softmax, its elements, or a weighted sum of it."""

import tensorflow as tf

from tfsafe import ops
from tfsafe.graph import OpFact, op_types
from tfsafe.ops.formulas.differences.fraction_complements import one_minus_weighted_sum
from tfsafe.ops.formulas.limits.entropies_of_order import impurity
from tfsafe.rewriting.engine.rule import Build
from tfsafe.rewriting.facts.tensors import Reader, both_ways
from tfsafe.rewriting.log_space import probabilities
from tfsafe.rewriting.log_space.analysis import logarithms
from tfsafe.rewriting.match.arithmetic import number, square_of
from tfsafe.rewriting.match.reductions import reduction

_MOVED = op_types(OpFact.MOVES)


def match(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `1 - softmax(x)`, also of one class, or of a sigmoid by hand."""
    if number(reader, *op.inputs) != 1:
        return None
    inner = reader.op(op.inputs[1])
    x = probabilities.sigmoid_by_hand(inner, logarithms(reader))
    if x is not None:
        return lambda value: ops.sigmoid(-x(value))
    concentration = _concentration(op.inputs[1], reader)
    if concentration is not None:
        return concentration
    weighted = _weighted_sum(op.inputs[1], reader)
    if weighted is not None or not _is_of_softmax(reader, op.inputs[1]):
        return weighted
    log = logarithms(reader).of(op.inputs[1])
    if log is None or log.is_partial:
        return None
    return lambda value: -ops.expm1(log.whole_log(value))


def _concentration(tensor: tf.Tensor, reader: Reader) -> Build | None:
    """Returns how to build `1 - sum(p ** 2)` of a softmax p, as `sum(p * (1 - p))`."""
    total = reduction(reader, tensor, "Sum")
    p = None if total is None else square_of(reader, total.x)
    if total is None or p is None or p.shape.rank is None:
        return None
    logs = logarithms(reader)
    softmax = probabilities.softmax_of(reader.op(p), logs)
    log = logs.of(p)
    if softmax is None or log is None or total.axes is None:
        return None
    if {axis % p.shape.rank for axis in softmax.axis} != set(total.axes):
        return None

    axes, keepdims = total.axes, total.keepdims
    return lambda value: impurity(value(p), log.whole_log(value), axes, keepdims)


def _weighted_sum(tensor: tf.Tensor, reader: Reader) -> Build | None:
    """Returns how to build `1 - sum(y * p)` of a softmax p, as `sum((1 - y) * p)`."""
    total = reduction(reader, tensor, "Sum")
    if total is None or total.axes is None:
        return None
    axes, keepdims = tuple(total.axes), total.keepdims
    logs = logarithms(reader)
    for p, y in probabilities.weighted_softmaxes(total.x, axes, logs):
        return lambda value: one_minus_weighted_sum(
            tf.cast(value(y), p.dtype), value(p), value(tensor), axes, keepdims
        )
    return None


def _is_of_softmax(reader: Reader, tensor: tf.Tensor, depth: int = 6) -> bool:
    """Returns whether a tensor is made of elements of a softmax, or of their sums."""
    op = reader.op(tensor)
    if probabilities.softmax_of(op, logarithms(reader)) is not None:
        return True
    if not depth:
        return False
    if op.type == "Sum":
        product = reader.op(op.inputs[0])
        return any(
            reader.is_mask(mask) and _is_of_softmax(reader, part, depth - 1)
            for part, mask in both_ways(product, "Mul")
        )
    is_element = op.type in _MOVED or op.type == "Max"
    return is_element and _is_of_softmax(reader, op.inputs[0], depth - 1)
