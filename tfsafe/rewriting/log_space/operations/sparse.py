"""Factors products of a sparse matrix of exponentials: sums over its rows."""

import tensorflow as tf

from tfsafe.ops.formulas.out_of_range.weighted_exponentials import (
    counted,
    finite_or_zero,
    weighted_exp,
)
from tfsafe.rewriting.engine.rule import Value
from tfsafe.rewriting.log_space.form import Factored, LogForms, once


def product(op: tf.Operation, logs: LogForms) -> Factored | None:
    """Factors a sparse matrix times a dense one that holds no exponentials."""
    dense = op.inputs[3]
    if op.get_attr("adjoint_b") or logs.of(dense) is not None:
        return None
    is_turned = bool(op.get_attr("adjoint_a"))
    return _sum(op, logs, 1 if is_turned else 0, dense, keeps_axis=True)


def row_sum(op: tf.Operation, logs: LogForms) -> Factored | None:
    """Factors the sums of the rows, or of the columns, of a sparse matrix."""
    rank = op.inputs[2].shape.num_elements()
    axes = logs.reader.axes(op.inputs[3], rank)
    if rank != 2 or axes is None or len(axes) != 1:
        return None
    return _sum(op, logs, 1 - axes[0], None, keeps_axis=op.get_attr("keep_dims"))


def _sum(
    op: tf.Operation,
    logs: LogForms,
    kept: int,
    dense: tf.Tensor | None,
    *,
    keeps_axis: bool,
) -> Factored | None:
    places, values, shape = op.inputs[:3]
    a = logs.of(values)
    if a is None or a.is_partial:
        return None

    def rows(value: Value) -> tuple[tf.Tensor, tf.Tensor]:
        return value(places)[:, kept], value(shape)[kept]

    def largest(value: Value) -> tf.Tensor:
        terms = tf.stop_gradient(counted(*a.pair(value)))
        return finite_or_zero(tf.math.unsorted_segment_max(terms, *rows(value)))

    shared = once(largest)

    def total(value: Value) -> tf.Tensor:
        weight, exponent = a.pair(value)
        ids, count = rows(value)
        terms = weighted_exp(weight, exponent - tf.gather(shared(value), ids))
        if dense is not None:
            # The gradient of a reshaped tensor is a tensor, not `tf.IndexedSlices`.
            whole = tf.reshape(value(dense), tf.shape(value(dense)))
            others = tf.gather(whole, value(places)[:, 1 - kept])
            terms = terms[:, tf.newaxis] * others
        sums = tf.math.unsorted_segment_sum(terms, ids, count)
        is_column = keeps_axis and dense is None
        return sums[:, tf.newaxis] if is_column else sums

    def log(value: Value) -> tf.Tensor:
        return shared(value)[:, tf.newaxis] if keeps_axis else shared(value)

    return Factored(
        "log-of-sum",
        once(log),
        once(total),
        is_nonnegative=a.is_nonnegative
        and (dense is None or logs.reader.is_nonnegative(dense)),
        has_exp=a.has_exp,
    )
