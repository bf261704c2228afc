"""Finds logarithms of products of matrices."""

import math

import tensorflow as tf

from tfsafe import ops
from tfsafe.rewriting.engine.rule import Build, Value
from tfsafe.rewriting.facts.sums import axes_of_einsum, transposed
from tfsafe.rewriting.log_space.form import Factored, LogForms, once
from tfsafe.rewriting.log_space.sums import sum_over, weighted_sum

# The sum is over terms for each row and column; larger ones would need much memory.
_MOST_TERMS = 1 << 14


def product(
    op: tf.Operation, logs: LogForms, least: Build | None = None
) -> Factored | None:
    """Factors a product of matrices of exponentials, probabilities and numbers."""
    a, b = (logs.parts(each) for each in op.inputs)
    if not (a.name or b.name) or a.is_partial or b.is_partial or not _is_small(op):
        return None
    turned = transposed(op)
    first, second = _placed(a, turned[0], -1), _placed(b, turned[1], -3)
    has_exp = a.has_exp or b.has_exp
    if a.is_pure and b.is_pure:
        log = once(
            lambda value: ops.logsumexp(
                first.exponent(value) + second.exponent(value), -2
            )
        )
        return Factored("log-of-sum", log, has_exp=has_exp)
    terms = once(lambda value: _terms(first, second, value))
    whole = Factored(
        "log-of-product",
        lambda value: terms(value)[1],
        lambda value: terms(value)[0],
        is_nonnegative=a.is_nonnegative and b.is_nonnegative,
        has_exp=has_exp,
    )
    axes = (op.outputs[0].shape.rank - 1,)
    return weighted_sum(whole, axes, False, least=least)


def einsum(
    op: tf.Operation, logs: LogForms, least: Build | None = None
) -> Factored | None:
    """Factors a sum of products of two tensors in Einstein's notation."""
    if len(op.inputs) == 1:
        return _einsum_of_one(op, logs)
    if len(op.inputs) != 2:
        return None
    a, b = (logs.parts(each) for each in op.inputs)
    if not (a.name or b.name) or a.is_partial or b.is_partial:
        return None
    equation = op.get_attr("equation").decode().replace(" ", "")
    labels, made = equation.split("->")
    first, second = labels.split(",")
    # The axes that are summed come last.
    order = made + "".join(sorted({*first, *second} - {*made}))
    if "." in equation or any(
        len({*each}) < len(each) for each in (first, second, made)
    ):
        return None
    axes = tuple(range(len(made), len(order)))
    if not _are_few(op, first, second):
        return None
    x = _spread(a, op.inputs[0], first, order)
    y = _spread(b, op.inputs[1], second, order)
    has_exp = a.has_exp or b.has_exp
    if not axes and a.is_pure and b.is_pure:
        log = once(lambda value: x.exponent(value) + y.exponent(value))
        return Factored("log-of-product", log, has_exp=has_exp)
    if a.is_pure and b.is_pure:
        log = once(
            lambda value: ops.logsumexp(x.exponent(value) + y.exponent(value), axes)
        )
        return Factored("log-of-sum", log, has_exp=has_exp)
    terms = once(lambda value: _terms(x, y, value))
    whole = Factored(
        "log-of-product",
        lambda value: terms(value)[1],
        lambda value: terms(value)[0],
        is_nonnegative=a.is_nonnegative and b.is_nonnegative,
        has_exp=has_exp,
    )
    return weighted_sum(whole, axes, False, least=least) if axes else whole


def _einsum_of_one(op: tf.Operation, logs: LogForms) -> Factored | None:
    """Factors a sum over axes that is written in Einstein's notation."""
    a, axes = logs.of(op.inputs[0]), axes_of_einsum(op)
    return None if a is None or axes is None else sum_over(a, axes, keepdims=False)


def _are_few(op: tf.Operation, first: str, second: str) -> bool:
    if any(each.shape.rank is None for each in op.inputs):
        return False
    sizes = {
        label: size
        for labels, tensor in zip((first, second), op.inputs, strict=True)
        for label, size in zip(labels, tensor.shape, strict=True)
    }
    return None not in sizes.values() and math.prod(sizes.values()) <= _MOST_TERMS


def _spread(part: Factored, tensor: tf.Tensor, labels: str, order: str) -> Factored:
    """Returns a tensor with its axes in a given order, and size 1 at others."""
    places = [labels.index(each) for each in order if each in labels]
    sizes = [tensor.shape[labels.index(e)] if e in labels else 1 for e in order]

    def spread(z: tf.Tensor) -> tf.Tensor:
        return tf.reshape(tf.transpose(z, places), sizes)

    pair = once(lambda value: [spread(each) for each in part.pair(value)])
    return part._replace(
        log=lambda value: pair(value)[1],
        weight=None if part.is_pure else lambda value: pair(value)[0],
        offset=0.0,
    )


def _is_small(op: tf.Operation) -> bool:
    """Returns whether the sizes are known and few, and no batch is repeated."""
    (x, y), made = op.inputs, op.outputs[0]
    rank = made.shape.rank
    if rank is None or x.shape.rank != rank or y.shape.rank != rank:
        return False
    sizes = [*list(x.shape)[-2:], made.shape[-1]]
    return None not in sizes and sizes[0] * sizes[1] * sizes[2] <= _MOST_TERMS


def _placed(part: Factored, is_turned: bool, axis: int) -> Factored:
    """Returns a matrix with another axis, along which it is repeated."""

    def placed(z: tf.Tensor) -> tf.Tensor:
        return tf.expand_dims(tf.linalg.matrix_transpose(z) if is_turned else z, axis)

    pair = once(lambda value: [placed(each) for each in part.pair(value)])
    return part._replace(
        log=lambda value: pair(value)[1],
        weight=None if part.is_pure else lambda value: pair(value)[0],
        offset=0.0,
    )


def _terms(a: Factored, b: Factored, value: Value) -> tuple[tf.Tensor, tf.Tensor]:
    """Builds the weights and the exponents of the terms of a product."""
    (first, x), (second, y) = a.pair(value), b.pair(value)
    return first * second, x + y
