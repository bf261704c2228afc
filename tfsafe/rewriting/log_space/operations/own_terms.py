"""Finds logarithms of sums of exponentials less one of their own terms."""

import tensorflow as tf

from tfsafe import ops
from tfsafe.graph import DIVISIONS, OpFact, op_types
from tfsafe.ops.formulas.differences.log_complements import log_one_minus_softmax
from tfsafe.rewriting.engine.rule import Build, Value
from tfsafe.rewriting.facts.layouts import reshapes, same_shape, taken
from tfsafe.rewriting.facts.tensors import Reader, both_ways
from tfsafe.rewriting.log_space.form import Factored, LogForms, multiplied, once
from tfsafe.rewriting.match.reductions import Reduction, reduction

_KEEP_SHAPE = op_types(OpFact.KEEPS_SHAPE) | DIVISIONS | {"Mul", "Sub", "AddV2"}
_DIAGONALS = {"MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3"}
# Longer chains of operations are not followed.
_DEPTH = 6


def without_own(
    op: tf.Operation, logs: LogForms
) -> tuple[Factored, tuple[int, ...], bool] | None:
    """Factors `sum(exp(x), 1) - exp(diag(x))` and `sum(exp(x), 1) - exp(x[:, 0])`.

    Or `sum(exp(x), 1) - sum(mask * exp(x), 1)`.

    Args:
      op: The difference.
      logs: What is known of the logarithms of the graph.

    Returns:
      The other terms, the axes along which they are summed and whether these are
      kept; None for another difference.
    """
    total = reduction(logs.reader, op.inputs[0], "Sum")
    axes = None if total is None else total.axes
    if total is None or axes is None:
        return None
    x, keepdims = total.x, total.keepdims
    found = logs.of(x)
    if found is None or found.is_partial or not found.has_exp:
        return None
    others = _unmasked(logs.reader, op.inputs[1], total)
    if others is None and x.shape.rank == 2 and len(axes) == 1:
        own = _column(logs.reader, *op.inputs) if keepdims else op.inputs[1]
        if own is not None:
            others = _others(logs.reader, own, x, axes[0], _DEPTH)
    if others is None:
        return None

    def weight(value: Value) -> tf.Tensor:
        mask = others(value)
        return tf.cast(mask, found.exponent(value).dtype)

    kept: Factored = found._replace(
        weight=multiplied(found.weight, weight),
        is_masked=found.is_pure or found.is_masked,
    )
    return kept, axes, keepdims


def _column(reader: Reader, total: tf.Tensor, own: tf.Tensor) -> tf.Tensor | None:
    """Returns y where `own` is `y[:, None]`, of the shape of `total`."""
    op = reader.op(own)
    is_column = reshapes(reader, op) and same_shape(own, total)
    return op.inputs[0] if is_column and op.inputs[0].shape.rank == 1 else None


def less_each(op: tf.Operation, logs: LogForms) -> Factored | None:
    """Factors `sum(exp(x), 1, keepdims=True) - exp(x)`: of each term, the others.

    Returns:
      The factors; None for another difference.
    """
    x = op.inputs[1]
    total = reduction(logs.reader, op.inputs[0], "Sum")
    found = logs.of(x)
    if total is None or not total.axes or found is None or x.shape.rank is None:
        return None
    is_each = total.keepdims or len(total.axes) == x.shape.rank
    if not is_each or not logs.reader.same(total.x, x):
        return None
    if not found.is_pure or found.is_partial or not found.has_exp:
        return None
    axes = total.axes

    def log(value: Value) -> tf.Tensor:
        exponent = found.exponent(value)
        whole = ops.logsumexp(exponent, axes, keepdims=True)
        return whole + log_one_minus_softmax(exponent, axes, None)

    return Factored("log-of-sum", once(log), has_exp=True)


def _unmasked(reader: Reader, own: tf.Tensor, total: Reduction) -> Build | None:
    """Returns what builds a mask without the elements that `sum(mask * x)` has."""
    part = reduction(reader, own, "Sum")
    if part is None or part[1:] != total[1:] or not same_shape(part.x, total.x):
        return None
    for x, mask in both_ways(reader.op(part.x), "Mul"):
        if reader.same(x, total.x) and reader.is_mask(mask):
            kept = mask
            return lambda value: tf.equal(value(kept), 0)
    return None


def _others(
    reader: Reader, own: tf.Tensor, x: tf.Tensor, axis: int, depth: int
) -> Build | None:
    """Returns what builds a mask without the elements of x that `own` is made of."""
    op = reader.op(own)
    if op.type in _DIAGONALS:
        is_main = op.type == "MatrixDiagPart" or reader.scalar(op.inputs[1]) == 0
        if is_main and reader.same(op.inputs[0], x):
            return lambda value: _off_diagonal(value(x))
    found = taken(reader, op)
    if found is not None and found[0] == axis and reader.same(op.inputs[0], x):
        return lambda value: _without_place(value(x), *found)
    whole = reader.op(x)
    if not depth or op.type != whole.type or op.type not in _KEEP_SHAPE:
        return None
    return _of_inputs(reader, op, whole, axis, depth)


def _of_inputs(
    reader: Reader, op: tf.Operation, whole: tf.Operation, axis: int, depth: int
) -> Build | None:
    """Compares the inputs of two operations of the same type."""
    found = None
    for own, x in zip(op.inputs, whole.inputs, strict=True):
        number = reader.scalar(x)
        if number is not None:
            if reader.scalar(own) != number:
                return None
            continue
        if found is not None or x.shape.rank != 2:
            return None
        found = _others(reader, own, x, axis, depth - 1)
        if found is None:
            return None
    return found


def _off_diagonal(x: tf.Tensor) -> tf.Tensor:
    rows, columns = (tf.range(tf.shape(x)[axis]) for axis in (0, 1))
    return tf.not_equal(rows[:, None], columns[None])


def _without_place(x: tf.Tensor, axis: int, place: int) -> tf.Tensor:
    size = tf.shape(x)[axis]
    kept = tf.not_equal(tf.range(size), place % size)
    shape = [-1, 1] if axis == 0 else [1, -1]
    return tf.reshape(kept, shape) & tf.ones_like(x, tf.bool)
