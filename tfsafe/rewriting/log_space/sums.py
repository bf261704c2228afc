"""Finds logarithms of sums, differences, means and extrema of exponentials."""

import functools
import math
from collections.abc import Callable

import tensorflow as tf

from tfsafe import ops
from tfsafe.ops.formulas.differences import log_complements
from tfsafe.ops.formulas.out_of_range import weighted_exponentials as weighted
from tfsafe.rewriting.engine.rule import Build, Value
from tfsafe.rewriting.facts.tensors import both_ways
from tfsafe.rewriting.log_space import weighted_complements
from tfsafe.rewriting.log_space.form import (
    Factored,
    LogForms,
    added,
    at_least,
    multiplied,
    once,
    together,
)
from tfsafe.rewriting.log_space.moved_sigmoids import (
    log_of_sigmoid_difference,
    moved_sigmoid_of,
)
from tfsafe.rewriting.log_space.operations import normal, own_terms, segments
from tfsafe.rewriting.log_space.pairs import both, either, total
from tfsafe.rewriting.match import arithmetic
from tfsafe.rewriting.match.arithmetic import is_sum, number
from tfsafe.rewriting.match.linear import mixture_of
from tfsafe.rewriting.match.reductions import REDUCTIONS

_LOG_2 = math.log(2)
_Reduction = Callable[..., tf.Tensor]


def add(op: tf.Operation, logs: LogForms) -> Factored | None:
    """Factors a sum of tensors."""
    if len(op.inputs) != 2:
        return _sum_of_many(op, logs)
    return _one_plus(op, logs) or _plus(op, logs)


def _sum_of_many(op: tf.Operation, logs: LogForms) -> Factored | None:
    """Factors `tf.add_n` of exponentials."""
    parts = [logs.parts(each) for each in op.inputs]
    if not any(each.has_exp for each in parts) or any(p.is_partial for p in parts):
        return None
    return functools.reduce(lambda a, b: total(a, b, 1), parts)


def _one_plus(op: tf.Operation, logs: LogForms) -> Factored | None:
    reader = logs.reader
    u = arithmetic.one_plus(reader, op, "Tanh")
    if u is not None:
        log = once(lambda value: log_complements.log_one_minus_tanh(-value(u)))
        return Factored("log-of-complement", log)
    u = arithmetic.one_plus(reader, op, "Erf")
    if u is not None:
        return Factored("log-of-erfc", once(lambda value: ops.log_erfc(-value(u))))
    for x, constant in both_ways(op):
        if number(reader, constant, x) != 1:
            continue
        inner = reader.op(x)
        if inner.type == "Elu":
            return _elu_plus_one(inner.inputs[0])
        rest = weighted_complements.of_rest(inner, logs)
        if rest is not None:
            return rest
        a = logs.of(x)
        if a is not None:
            return one_plus(a)
    return None


def _elu_plus_one(x: tf.Tensor) -> Factored:
    return Factored(
        "log-of-sum", once(lambda value: log_complements.log_elu_plus_one(value(x)))
    )


def one_plus(a: Factored) -> Factored | None:
    """Factors `1 + a` of an exponential a."""
    if not _grows(a):
        return None
    log = once(lambda value: -ops.log_sigmoid(-a.exponent(value)))
    return Factored("log-of-sum", log, has_exp=True)


def _grows(a: Factored) -> bool:
    """Returns whether `a` is an exponential alone, which may overflow."""
    return a.is_pure and not a.is_partial and a.has_exp


def _plus(op: tf.Operation, logs: LogForms) -> Factored | None:
    x, y = op.inputs
    a, b = logs.parts(x), logs.parts(y)
    if not a.name and not b.name:
        return None
    if a.is_partial or b.is_partial:
        return _plus_number(op, logs) or _plus_signed(x, y, logs)
    if not (a.has_exp or b.has_exp) and _is_harmless(op, logs):
        return None
    if not (a.is_pure and b.is_pure):
        is_at_risk = (a.name and b.name) or a.has_exp or b.has_exp
        # The least probability c may be 0.
        is_mixture = mixture_of(logs.reader, op) is not None
        return total(a, b, 1) if is_at_risk or is_mixture else None
    u = arithmetic.cosh_argument(op, logs.reader)
    if u is not None:
        log = once(lambda value: ops.log_cosh(value(u)))
        return Factored("log-of-cosh", log, offset=_LOG_2, has_exp=True)
    return either(a, b)


def _plus_number(op: tf.Operation, logs: LogForms) -> Factored | None:
    """Factors `100 + (exp(x) - 1)`: a logarithm of `exp(x) - 1` has a pole at 0."""
    found = arithmetic.terms(logs.reader, op.outputs[0])
    scalars = [(each, logs.reader.scalar(each.tensor)) for each in found]
    numbers = sum(each.factor * n for each, n in scalars if n is not None)
    rest = [each for each, n in scalars if n is None]
    a = logs.of(rest[0].tensor) if len(rest) == 1 and rest[0].factor > 0 else None
    if a is None or not _grows(a) or numbers <= 0:
        return None
    scale, number = math.log(rest[0].factor), math.log(numbers)

    def log(value: Value) -> tf.Tensor:
        x = a.exponent(value) + scale
        return ops.log_add_exp(x, tf.constant(number, x.dtype))

    return Factored("log-of-sum", once(log), has_exp=True)


def _plus_signed(x: tf.Tensor, y: tf.Tensor, logs: LogForms) -> Factored | None:
    """Factors a sum with a difference of exponentials, such as `c + (exp(x) - 1)`."""
    a, b = signed(x, logs), signed(y, logs)
    if a is None or b is None:
        return None
    is_at_risk = (a.name and b.name) or a.has_exp or b.has_exp
    return total(a, b, 1) if is_at_risk else None


def signed(tensor: tf.Tensor, logs: LogForms) -> Factored | None:
    """Factors a tensor whose sign is to be that of its weight."""
    found = logs.parts(tensor)
    op = logs.reader.op(tensor)
    if not found.is_partial and (found.name or op.type != "Mul"):
        return found
    interval = normal.signed_interval(op, logs)
    if interval is not None:
        return interval
    if op.type == "Sub":
        a, b = (logs.parts(each) for each in op.inputs)
        is_known = not (a.is_partial or b.is_partial) and bool(a.name or b.name)
        if is_known and a.is_pure and b.is_pure:
            return _signed_difference(op, a, b, logs)
        return total(a, b, -1) if is_known else None
    if op.type in {"ConcatV2", "Pack"}:
        return _signed_each(op, logs)
    if op.type != "Mul":
        return None
    if not any(logs.parts(each).is_partial for each in op.inputs):
        return None if found.is_partial else found
    first, second = (signed(each, logs) for each in op.inputs)
    if first is None or second is None:
        return None
    return Factored(
        "log-of-product",
        added(first.log, second.log),
        multiplied(first.weight, second.weight),
        first.offset + second.offset,
        is_nonnegative=False,
        has_exp=True,
    )


def _signed_each(op: tf.Operation, logs: LogForms) -> Factored | None:
    """Factors tensors that are joined; each may be a difference."""
    places = range(len(op.inputs) - (op.type == "ConcatV2"))
    found = {i: signed(op.inputs[i], logs) for i in places}
    # A constant scalar is an offset alone, which has no shape.
    known = {i: x for i, x in found.items() if x is not None and (x.log or x.weight)}
    return together(op, known) if len(known) == len(found) else None


def _signed_difference(
    op: tf.Operation, a: Factored, b: Factored, logs: LogForms
) -> Factored:
    """Factors a difference of two exponentials or of two sigmoids, of any sign."""
    sigmoids = [moved_sigmoid_of(logs.reader.op(x), logs) for x in op.inputs]

    def ends(value: Value) -> list[tf.Tensor]:
        if None in sigmoids:
            return both(a, b, value)
        return [x(value) for x in sigmoids if x is not None]

    def log(value: Value) -> tf.Tensor:
        x, y = ends(value)
        high, low = tf.maximum(x, y), tf.minimum(x, y)
        if None in sigmoids:
            return high
        return ops.log_sigmoid(high) + ops.log_sigmoid(-low)

    def weight(value: Value) -> tf.Tensor:
        x, y = ends(value)
        is_far = tf.equal(x, y) & tf.math.is_inf(x)
        step = tf.where(is_far, tf.zeros([], x.dtype), y - x)
        zero = tf.zeros([], x.dtype)
        larger, smaller = (ops.expm1(tf.minimum(z, zero)) for z in (step, -step))
        return tf.where(step < 0, -larger, smaller)

    return Factored(
        "log-of-difference",
        once(log),
        once(weight),
        is_nonnegative=logs.reader.is_nonnegative(op.outputs[0]),
        has_exp=a.has_exp or b.has_exp,
    )


def _is_harmless(op: tf.Operation, logs: LogForms) -> bool:
    """Returns whether a sum of probabilities is kept from 0 by a constant."""
    return any(logs.reader.scalar(each) is not None for each in op.inputs)


def subtract(op: tf.Operation, logs: LogForms) -> Factored | None:
    """Factors a difference."""
    reader = logs.reader
    x, y = op.inputs
    own = own_terms.without_own(op, logs)
    if own is not None:
        return weighted_sum(*own)
    each = own_terms.less_each(op, logs)
    if each is not None:
        return each
    if number(reader, x, y) == 1:
        return logs.complement(y)
    if reader.scalar(x) is not None:
        return weighted_complements.of_scaled(x, y, logs)
    together = weighted_complements.beside_complement(x, y, logs)
    if together is not None:
        return together
    log = log_of_sigmoid_difference(reader.op(x), reader.op(y), logs)
    if log is not None:
        return _difference(log, reader.is_nonnegative(op.outputs[0]), True)
    a, b = logs.parts(x), logs.parts(y)
    if a.is_partial or b.is_partial or not a.name:
        return None
    is_nonnegative = reader.is_nonnegative(op.outputs[0])
    if number(reader, y, x) == 1:
        if not _grows(a):
            return None
        log = once(lambda value: ops.log_expm1(a.exponent(value)))
        return _difference(log, is_nonnegative, True)
    if not (a.has_exp or b.name):
        return None
    if a.is_pure and b.is_pure:
        log = once(lambda value: ops.log_sub_exp(*both(a, b, value)))
        return _difference(log, is_nonnegative, a.has_exp or b.has_exp)
    if all(each.is_pure or each.is_masked for each in (a, b)):
        return _difference(
            once(lambda value: ops.log_sub_exp(a.whole_log(value), b.whole_log(value))),
            is_nonnegative,
            a.has_exp or b.has_exp,
        )
    return total(a, b, -1) if a.has_exp and b.has_exp else None


def _difference(log: Build, is_nonnegative: bool, has_exp: bool) -> Factored:
    return Factored(
        "log-of-difference",
        log,
        is_nonnegative=is_nonnegative,
        is_partial=True,
        has_exp=has_exp,
    )


def reduced_sum(
    op: tf.Operation, logs: LogForms, least: Build | None = None
) -> Factored | None:
    """Factors a sum or a mean over axes."""
    x = op.inputs[0]
    a = signed(x, logs)
    axes = logs.reader.axes(op.inputs[1], x.shape.rank)
    if a is None or not a.name or not axes:
        return None
    a = _shared_out(a, op) if a.is_pure and op.type == "Mean" else a
    return sum_over(a, axes, op.get_attr("keep_dims"), REDUCTIONS[op.type], least)


def sum_over(
    a: Factored,
    axes: tuple[int, ...],
    keepdims: bool,
    reduce: _Reduction = tf.reduce_sum,
    least: Build | None = None,
) -> Factored | None:
    """Factors the sum of a factored tensor over axes."""
    if a.is_partial:
        return None
    if not a.is_pure:
        return weighted_sum(a, axes, keepdims, reduce, least)
    log = once(lambda value: ops.logsumexp(a.exponent(value), axes, keepdims))
    return Factored("log-of-sum", log, has_exp=a.has_exp)


def weighted_sum(
    a: Factored,
    axes: tuple[int, ...],
    keepdims: bool,
    reduce: _Reduction = tf.reduce_sum,
    least: Build | None = None,
) -> Factored:
    """Factors a sum or a mean over axes, the largest exponent taken out."""
    shared = at_least(
        lambda value: weighted.shared_exponent([a.pair(value)], axes),
        least,
        () if keepdims else axes,
    )

    def weight(value: Value) -> tf.Tensor:
        factor, exponent = a.pair(value)
        terms = weighted.weighted_exp(factor, exponent - shared(value))
        return reduce(terms, axes, keepdims=keepdims)

    def squeezed(value: Value) -> tf.Tensor:
        return shared(value) if keepdims else tf.squeeze(shared(value), axes)

    return Factored(
        "log-of-sum",
        once(squeezed),
        once(weight),
        is_nonnegative=a.is_nonnegative,
        has_exp=a.has_exp,
    )


def for_value(tensor: tf.Tensor, logs: LogForms) -> Factored:
    """Factors any tensor, a sum of exponentials by what makes its value most accurate.

    The exponential of a logarithm loses a digit for each one of the logarithm. Here a
    sum is a weight of moderate size times an exponential.

    Returns:
      The factors; for anything but a sum, those of the logarithm.
    """
    found: Factored = logs.parts(tensor)
    op = logs.reader.op(tensor)
    if found.name != "log-of-sum" or not found.is_pure:
        return found
    if op.type == "Cumsum":
        return segments.running_sum(op, logs, has_weight=True) or found
    if is_sum(op):
        parts = map(logs.parts, op.inputs)
        return functools.reduce(lambda a, b: total(a, b, 1), parts)
    a = logs.of(op.inputs[0])
    if op.type not in {"Sum", "Mean"} or a is None:
        return found
    axes = logs.reader.axes(op.inputs[1], op.inputs[0].shape.rank)
    if not axes:
        return found
    return weighted_sum(a, axes, op.get_attr("keep_dims"), REDUCTIONS[op.type])


def _shared_out(a: Factored, op: tf.Operation) -> Factored:
    """Divides what is summed by the number of terms of a mean."""
    x, mean = op.inputs[0], op.outputs[0]

    def log(value: Value) -> tf.Tensor:
        terms = tf.size(value(x)) / tf.maximum(tf.size(value(mean)), 1)
        exponent = a.exponent(value)
        return exponent - tf.math.log(tf.cast(terms, exponent.dtype))

    sizes = x.shape.num_elements(), mean.shape.num_elements()
    if None not in sizes and all(sizes):
        return a._replace(offset=a.offset - math.log(sizes[0] / sizes[1]))
    return a._replace(log=once(log), offset=0.0)
