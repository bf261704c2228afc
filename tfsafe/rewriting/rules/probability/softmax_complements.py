"""Matches 1 minus a softmax, its elements, or a weighted sum of it."""

import tensorflow as tf

from tfsafe import ops
from tfsafe.graph import MATRIX_PRODUCTS, OpFact, op_types, raw_kernel
from tfsafe.ops.formulas.differences.fraction_complements import (
    one_minus_weighted,
    one_minus_weighted_sum,
)
from tfsafe.ops.formulas.limits.entropies_of_order import impurity
from tfsafe.rewriting.engine.rule import Build, Value
from tfsafe.rewriting.facts.layouts import reshapes
from tfsafe.rewriting.facts.sums import transposed
from tfsafe.rewriting.facts.tensors import Reader, both_ways
from tfsafe.rewriting.log_space import probabilities, weighted_complements
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
    weighted = weighted or _product_of_matrices(op.inputs[1], reader)
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
    for p, y in weighted_complements.weighted_softmaxes(total.x, axes, logs):
        return lambda value: one_minus_weighted_sum(
            tf.cast(value(y), p.dtype), value(p), value(tensor), axes, keepdims
        )
    return None


def _product_of_matrices(tensor: tf.Tensor, reader: Reader) -> Build | None:
    """Returns how to build `1 - p @ y` of rows p of a softmax, as `p @ (1 - y)`."""
    op = reader.op(tensor)
    while reshapes(reader, op):
        op = reader.op(op.inputs[0])
    if op.type not in MATRIX_PRODUCTS:
        return None
    a, b = op.inputs
    is_a_turned, is_b_turned = transposed(op)
    is_first = _sums_to_1(reader, a, -2 if is_a_turned else -1)
    if not is_first and not _sums_to_1(reader, b, -1 if is_b_turned else -2):
        return None
    p, y = (a, b) if is_first else (b, a)
    kernel = raw_kernel(op)

    def build(value: Value) -> tf.Tensor:
        total = value(tensor)

        def weigh(y: tf.Tensor) -> tf.Tensor:
            inputs = [value(p), y] if is_first else [y, value(p)]
            return tf.reshape(kernel(inputs)[0], tf.shape(total))

        return one_minus_weighted(value(y), total, weigh)

    return build


def _sums_to_1(reader: Reader, p: tf.Tensor, axis: int) -> bool:
    """Returns whether a tensor is a softmax along its last axis or last but one."""
    op = reader.op(p)
    if axis == -2 and reshapes(reader, op) and p.shape[-1:] == [1]:
        # The column of `matvec(y, p)`.
        (p, *_), axis = op.inputs, -1
    softmax = probabilities.softmax_of(reader.op(p), logarithms(reader))
    if softmax is None or softmax.mask is not None or p.shape.rank is None:
        return False
    return [each % p.shape.rank for each in softmax.axis] == [axis % p.shape.rank]


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
