"""Factors running sums and products, and those over segments."""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from tfsafe import ops
from tfsafe.ops.formulas.out_of_range.weighted_exponentials import (
    counted,
    finite_or_zero,
    running_weights,
    weighted_exp,
)
from tfsafe.rewriting.engine.rule import Build, Value
from tfsafe.rewriting.log_space.form import (
    Factored,
    LogForms,
    applied,
    at_least,
    once,
    with_inputs,
)


class _Segments(NamedTuple):
    """How a type of operation sums over segments.

    Attributes:
      terms: Which input holds the terms.
      largest: Computes the largest term of each segment.
      spread: Takes each term's element of such a tensor.
    """

    terms: int
    largest: Callable[[tf.Tensor, tf.Operation, Value], tf.Tensor]
    spread: Callable[[tf.Tensor, tf.Operation, Value], tf.Tensor]


PRODUCTS = ("SegmentProd", "SegmentProdV2", "UnsortedSegmentProd")


def segment_sum(
    op: tf.Operation, logs: LogForms, least: Build | None = None
) -> Factored | None:
    """Factors a sum or mean over segments, the largest exponent of each taken out."""
    kind = _KINDS[op.type]
    a = logs.of(op.inputs[kind.terms])
    if a is None or a.is_partial:
        return None
    if op.type == "TensorScatterAdd" and not logs.reader.is_number(op.inputs[0], 0):
        return None

    def shared(value: Value) -> tf.Tensor:
        weight, exponent = a.pair(value)
        # The gradient takes it for a constant: it is a factor in front of the sum.
        terms = tf.stop_gradient(counted(weight, exponent))
        return finite_or_zero(kind.largest(terms, op, value))

    log = at_least(shared, least)

    def weight(value: Value) -> tf.Tensor:
        factor, exponent = a.pair(value)
        terms = weighted_exp(factor, exponent - kind.spread(log(value), op, value))
        return with_inputs(op, value, {kind.terms: terms})

    return Factored(
        "log-of-sum",
        log,
        once(weight),
        is_nonnegative=a.is_nonnegative,
        has_exp=a.has_exp,
    )


def segment_product(op: tf.Operation, logs: LogForms) -> Factored | None:
    """Factors a product over segments: its logarithm is a sum."""
    a = logs.of(op.inputs[0])
    if a is None or a.is_partial or not a.is_nonnegative:
        return None

    def log(value: Value) -> tf.Tensor:
        whole, ids = a.whole_log(value), value(op.inputs[1])
        if len(op.inputs) > 2:
            return tf.math.unsorted_segment_sum(whole, ids, value(op.inputs[2]))
        return tf.math.segment_sum(whole, ids)

    return Factored("log-of-product", once(log), has_exp=a.has_exp)


def _segment_max(x: tf.Tensor, op: tf.Operation, value: Value) -> tf.Tensor:
    return tf.math.unsorted_segment_max(x, value(op.inputs[1]), value(op.inputs[2]))


def _sorted_max(x: tf.Tensor, op: tf.Operation, value: Value) -> tf.Tensor:
    ids = value(op.inputs[1])
    count = op.outputs[0].shape[:1].num_elements()
    count = tf.shape(value(op.outputs[0]))[0] if count is None else count
    return tf.math.unsorted_segment_max(x, ids, count)


def _by_id(x: tf.Tensor, op: tf.Operation, value: Value) -> tf.Tensor:
    # A negative id drops its term.
    ids = value(op.inputs[1])
    return tf.gather(x, tf.maximum(ids, tf.zeros_like(ids)))


def _scatter_max(x: tf.Tensor, op: tf.Operation, value: Value) -> tf.Tensor:
    empty = tf.fill(value(op.inputs[2]), tf.constant(-float("inf"), x.dtype))
    return tf.tensor_scatter_nd_max(empty, value(op.inputs[0]), x)


def _added_max(x: tf.Tensor, op: tf.Operation, value: Value) -> tf.Tensor:
    shape = tf.shape(value(op.inputs[0]))
    empty = tf.fill(shape, tf.constant(-float("inf"), x.dtype))
    return tf.tensor_scatter_nd_max(empty, value(op.inputs[1]), x)


def _by_second_index(x: tf.Tensor, op: tf.Operation, value: Value) -> tf.Tensor:
    return tf.gather_nd(x, value(op.inputs[1]))


def _by_index(x: tf.Tensor, op: tf.Operation, value: Value) -> tf.Tensor:
    return tf.gather_nd(x, value(op.inputs[0]))


_KINDS = {
    "ScatterNd": _Segments(1, _scatter_max, _by_index),
    "SegmentMean": _Segments(0, _sorted_max, _by_id),
    "SegmentSum": _Segments(0, _sorted_max, _by_id),
    "SegmentSumV2": _Segments(0, _segment_max, _by_id),
    "TensorScatterAdd": _Segments(2, _added_max, _by_second_index),
    "UnsortedSegmentSum": _Segments(0, _segment_max, _by_id),
}
SUMS = tuple(_KINDS)


def running_sum(
    op: tf.Operation, logs: LogForms, has_weight: bool = False
) -> Factored | None:
    """Factors a running sum of exponentials, as a logarithm or also as a weight."""
    a = logs.of(op.inputs[0])
    axis = logs.reader.scalar(op.inputs[1])
    if a is None or axis is None or a.is_partial:
        return None
    order = op.get_attr("exclusive"), op.get_attr("reverse")
    if has_weight or not a.is_pure:
        return None if order[0] else _weighted_running_sum(op, a, int(axis), order[1])

    def summed(log: tf.Tensor) -> tf.Tensor:
        return ops.cumulative_logsumexp(log, int(axis), *order)

    log = applied(summed, a.exponent)
    return Factored("log-of-sum", log, has_exp=a.has_exp)


def _weighted_running_sum(
    op: tf.Operation, a: Factored, axis: int, is_reversed: bool
) -> Factored | None:
    """Factors a running sum of weights times exponentials, of a known length."""
    shape = op.inputs[0].shape
    if not a.has_exp or shape.rank is None or shape[axis] is None:
        return None

    def build(value: Value) -> tuple[tf.Tensor, tf.Tensor]:
        weight, exponent = a.pair(value)
        if a.is_masked:
            exponent = counted(weight, exponent)
        return running_weights(weight, exponent, axis, is_reversed)

    both = once(build)
    return Factored(
        "log-of-sum",
        lambda value: both(value)[1],
        lambda value: both(value)[0],
        is_nonnegative=a.is_nonnegative,
        has_exp=True,
    )


def running_product(op: tf.Operation, logs: LogForms) -> Factored | None:
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
