"""Finds the logarithm of `1 - p`, by the operation that computes p."""

import functools
import itertools
import math
from collections.abc import Iterator, Sequence

import tensorflow as tf

from tfsafe import ops
from tfsafe.graph import OpFact, op_types
from tfsafe.ops.formulas.differences.log_complements import (
    log_one_minus_softmax,
    log_one_minus_tanh,
)
from tfsafe.rewriting.engine.rule import Build, Value
from tfsafe.rewriting.facts.tensors import Reader, both_ways, is_float
from tfsafe.rewriting.log_space import (
    means_of_logs,
    probabilities,
    weighted_complements,
)
from tfsafe.rewriting.log_space.form import (
    Factored,
    LogForms,
    LogRule,
    added,
    applied,
    kept_off_zero,
    multiplied,
    once,
    one_minus_exp,
    with_inputs,
)
from tfsafe.rewriting.log_space.pairs import total
from tfsafe.rewriting.log_space.sums import sum_over
from tfsafe.rewriting.match.arithmetic import is_sum, number, square_of, terms
from tfsafe.rewriting.match.linear import Part, merged, mixture_of, parts

_NAME: LogRule = "log-of-complement"
_MOVES = op_types(OpFact.MOVES)
# How far the sum of weights may be off 1, which are rounded to float32.
_ROUNDING = 2e-7


def complement(op: tf.Operation, logs: LogForms) -> Factored | None:
    """Factors 1 minus the output of `op`, if that is a probability or the like."""
    reader = logs.reader
    if op.type == "Sub" and number(reader, *op.inputs) == 1:
        return logs.of(op.inputs[1])
    guard = probabilities.guarded(op, reader)
    if guard is not None:
        return _of_guarded(guard, logs)
    x = probabilities.sigmoid_of(op, logs)
    if x is not None:
        return Factored(_NAME, once(lambda value: ops.log_sigmoid(-x(value))))
    softmax = probabilities.softmax_of(op, logs)
    if softmax is not None:
        return _of_softmax(softmax)
    return (
        _of_known(op, logs)
        or _of_mixture(op, logs)
        or _of_weighted_mean(op, logs)
        or _of_mean(op, logs)
        or _of_product(op, logs)
        or _of_any(op, logs)
        or weighted_complements.of_part(op, logs)
    )


def _of_mixture(op: tf.Operation, logs: LogForms) -> Factored | None:
    """Factors `1 - (c + (1 - c) * p)`, which is `(1 - c) * (1 - p)`."""
    found = mixture_of(logs.reader, op)
    if found is None:
        return None
    left = _of_quotient(found.above, found.below, logs)
    if left is None:
        return None
    return _part(logs.parts(found.rest), left)


def _part(weight: Factored, left: Factored) -> Factored:
    """Factors a weight times a complement."""
    return Factored(
        _NAME,
        added(weight.log, left.log),
        multiplied(weight.weight, left.weight),
        weight.offset + left.offset,
        is_nonnegative=weight.is_nonnegative and left.is_nonnegative,
        is_partial=weight.is_partial or left.is_partial,
        has_exp=weight.has_exp or left.has_exp,
    )


def _of_weighted_mean(op: tf.Operation, logs: LogForms) -> Factored | None:
    """Factors `1 - (w * p + (1 - w) * q)`, also with numbers for the weights."""
    for shares in _shares(op, logs) if is_sum(op) or op.type == "Mul" else ():
        left = [logs.complement(p) for _, p in shares]
        found = [
            _part(weight, each)
            for (weight, _), each in zip(shares, left, strict=True)
            if each is not None
        ]
        if len(found) == len(shares) and not any(each.is_partial for each in found):
            whole = functools.reduce(lambda a, b: total(a, b, 1), found)
            return _where_likely(logs.of(op.outputs[0]), whole.whole_log)
    return None


def _shares(
    op: tf.Operation, logs: LogForms
) -> Iterator[list[tuple[Factored, tf.Tensor]]]:
    """Yields weights whose sum is 1, each with the tensor that it is multiplied by."""
    reader = logs.reader
    found = terms(reader, op.outputs[0])
    factors = [each.factor for each in found]
    is_whole = min(factors) > 0 and abs(sum(factors) - 1) < _ROUNDING
    if is_whole and len(factors) > 1:
        numbers = (Factored("", None, offset=math.log(each)) for each in factors)
        yield list(zip(numbers, (each.tensor for each in found), strict=True))
    if not is_sum(op) or len(op.inputs) != 2:
        return
    first, second = map(reader.op, op.inputs)
    for (w, p), (v, q) in itertools.product(
        both_ways(first, "Mul"), both_ways(second, "Mul")
    ):
        if not merged(reader, [*parts(reader, w), *parts(reader, v), Part(-1.0, None)]):
            yield [(logs.parts(w), p), (logs.parts(v), q)]


def _of_mean(op: tf.Operation, logs: LogForms) -> Factored | None:
    """Factors `1 - sum(softmax(x) * p)`, which is `sum(softmax(x) * (1 - p))`."""
    x, reader = op.inputs[0] if op.inputs else None, logs.reader
    rank = None if x is None else x.shape.rank
    axes = reader.axes(op.inputs[1], rank) if op.type == "Sum" else None
    if not axes or x is None or rank is None:
        return None
    for weights, p in weighted_complements.weighted_softmaxes(x, axes, logs):
        chance = logs.of(weights)
        if chance is None:
            continue
        known = logs.complement(p) if is_float(p) else None
        left = known or _rest(p, weights.dtype, reader)
        terms = left._replace(
            name=_NAME,
            log=added(chance.log, left.log),
            offset=chance.offset + left.offset,
        )
        whole = sum_over(terms, axes, op.get_attr("keep_dims"))
        if known or whole is None or not whole.is_nonnegative:
            return whole
        return _where_likely(logs.of(op.outputs[0]), whole.whole_log)
    return None


def _rest(p: tf.Tensor, dtype: tf.DType, reader: Reader) -> Factored:
    """Factors 1 minus a tensor without an exponential, or a mask."""
    is_mask = p.dtype == tf.bool
    return Factored(
        _NAME,
        None,
        lambda value: 1 - tf.cast(value(p), dtype),
        is_nonnegative=is_mask or reader.is_probability(p),
        is_masked=is_mask or reader.is_mask(p),
    )


def _of_quotient(
    above: Sequence[tf.Tensor], below: Sequence[tf.Tensor], logs: LogForms
) -> Factored | None:
    """Factors 1 minus a tensor, `1 - a / (a + b)` or `1 - 1 / (1 + b)`."""
    if len(above) == 1 and not below:
        return logs.complement(above[0])
    if len(above) > 1 or len(below) != 1:
        return None
    part = above[0] if above else None
    found = probabilities.chances(part, logs.reader.op(below[0]), logs)
    if found is None:
        return None
    return Factored(_NAME, applied(lambda log: ops.log_sigmoid(-log), found[0]))


def _of_guarded(guard: probabilities.Guarded, logs: LogForms) -> Factored | None:
    # A floor that is added makes `1 - p` negative at 1: that is not a guard.
    if guard.is_shifted or not probabilities.is_part(guard.probs, logs):
        return None
    return kept_off_zero(logs.complement(guard.probs), guard.gap)


def _of_softmax(softmax: probabilities.Softmax) -> Factored:
    return Factored(_NAME, once(_log_of_rest(softmax)))


def _log_of_rest(softmax: probabilities.Softmax) -> Build:
    def build(value: Value) -> tf.Tensor:
        mask = None if softmax.mask is None else softmax.mask(value)
        return log_one_minus_softmax(softmax.logits(value), softmax.axis, mask)

    return build


def _of_known(op: tf.Operation, logs: LogForms) -> Factored | None:
    """Factors `1 - tanh(x)^2`, `1 - sqrt(p)^2`, `1 - erf(x)` and the like."""
    reader = logs.reader
    root = square_of(reader, op.outputs[0])
    if root is not None and reader.op(root).type == "Tanh":
        x = reader.op(root).inputs[0]
        return Factored(_NAME, once(lambda value: -2 * ops.log_cosh(value(x))))
    if root is not None and reader.op(root).type == "Sqrt":
        return logs.complement(reader.op(root).inputs[0])
    x = op.inputs[0] if op.inputs else None
    if op.type == "Tanh":
        return Factored(_NAME, once(lambda value: log_one_minus_tanh(value(x))))
    if op.type == "Erf":
        return Factored("log-of-erfc", once(lambda value: ops.log_erfc(value(x))))
    if op.type == "Exp":
        rest = _rest_of_softmax(x, logs)
        if rest is not None:
            return Factored(_NAME, once(rest))
        return means_of_logs.complement(x, logs) or one_minus_exp(x, logs)
    return None


def _rest_of_softmax(log_probs: tf.Tensor, logs: LogForms) -> Build | None:
    """Returns how to build `log(1 - p)` from elements `log(p)` of a log-softmax."""
    op = logs.reader.op(log_probs)
    softmax = probabilities.softmax_of_log(op, logs.reader)
    if softmax is not None:
        return _log_of_rest(softmax)
    inner = _rest_of_softmax(op.inputs[0], logs) if op.type in _MOVES else None
    if inner is None:
        return None
    return lambda value: with_inputs(op, value, {0: inner(value)})


def _of_product(op: tf.Operation, logs: LogForms) -> Factored | None:
    """Factors `1 - a * b` and `1 - prod(a)` of probabilities."""
    # The sum of what each factor leaves of the product of those before it. None of
    # its terms is negative.
    if op.type == "Prod":
        return _of_prod(op, logs)
    if op.type == "Cumsum":
        return _of_cumsum(op, logs)
    if op.type != "Mul" or not all(map(logs.reader.is_probability, op.inputs)):
        return None
    a, left_a = logs.of(op.inputs[0]), logs.complement(op.inputs[0])
    left_b = logs.complement(op.inputs[1])
    if a is None or left_a is None or left_b is None:
        return None

    def build(value: Value) -> tf.Tensor:
        second = a.whole_log(value) + left_b.whole_log(value)
        return ops.log_add_exp(left_a.whole_log(value), second)

    return _where_likely(logs.of(op.outputs[0]), build)


def _of_cumsum(op: tf.Operation, logs: LogForms) -> Factored | None:
    """Factors 1 minus a running sum of a softmax: the sum of what is left."""
    x, axis = op.inputs[0], logs.reader.scalar(op.inputs[1])
    softmax = probabilities.softmax_of(logs.reader.op(x), logs)
    rank = x.shape.rank
    if softmax is None or softmax.mask is not None or axis is None or rank is None:
        return None
    if len(softmax.axis) != 1 or (softmax.axis[0] - int(axis)) % rank:
        return None
    exclusive, reverse = op.get_attr("exclusive"), op.get_attr("reverse")

    def build(value: Value) -> tf.Tensor:
        log = ops.log_softmax(softmax.logits(value), softmax.axis)
        return ops.cumulative_logsumexp(log, int(axis), not exclusive, not reverse)

    return Factored(_NAME, once(build))


def _where_likely(product: Factored | None, build: Build) -> Factored | None:
    """Factors 1 minus a product, by `build` where the product is above 1/2."""
    if product is None:
        return None

    def both(value: Value) -> tf.Tensor:
        log = product.whole_log(value)
        rare = ops.log1mexp(tf.minimum(log, -math.log(2)))
        return tf.where(log < -math.log(2), rare, build(value))

    return Factored(_NAME, once(both))


def _of_prod(op: tf.Operation, logs: LogForms) -> Factored | None:
    x = op.inputs[0]
    axes = logs.reader.axes(op.inputs[1], x.shape.rank)
    if not axes or len(axes) > 1 or not logs.reader.is_probability(x):
        return None
    a, left = logs.of(x), logs.complement(x)
    if a is None or left is None:
        return None
    keepdims = op.get_attr("keep_dims")

    def build(value: Value) -> tf.Tensor:
        before = tf.cumsum(a.whole_log(value), axes[0], exclusive=True)
        terms = left.whole_log(value) + before
        return ops.logsumexp(terms, axes, keepdims)

    return _where_likely(logs.of(op.outputs[0]), build)


def _of_any(op: tf.Operation, logs: LogForms) -> Factored | None:
    """Factors 1 minus an exponential of something known to be at most 0."""
    a = logs.of(op.outputs[0])
    if a is None or a.is_partial:
        return None
    # A weight of 0 has a slope that its logarithm has not.
    is_sum = op.type == "Sum" and a.is_nonnegative
    if not (a.is_pure or a.is_masked or is_sum):
        return None
    return Factored(
        _NAME,
        applied(ops.log1mexp, a.whole_log),
        is_nonnegative=logs.reader.is_probability(op.outputs[0]),
        is_partial=True,
        has_exp=a.has_exp,
    )
