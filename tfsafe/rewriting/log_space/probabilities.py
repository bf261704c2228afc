"""Recognises softmax, sigmoid and softplus, however they are written."""

from typing import NamedTuple

import tensorflow as tf

from tfsafe.graph import DIVISIONS, OpFact, op_types
from tfsafe.ops.formulas.differences.log_complements import log_softplus
from tfsafe.rewriting.engine.rule import Build
from tfsafe.rewriting.facts.bounds import row_axis
from tfsafe.rewriting.facts.layouts import reshapes
from tfsafe.rewriting.facts.sums import axes_of_einsum
from tfsafe.rewriting.facts.tensors import Reader, both_ways
from tfsafe.rewriting.log_space.form import Factored, LogForms, applied, once
from tfsafe.rewriting.log_space.logsumexp_by_hand import log_softmax_of, unshifted
from tfsafe.rewriting.match.arithmetic import (
    LOST_EPSILON,
    adds_lost_epsilon,
    beside_number,
    is_sum,
    negated,
    number,
)
from tfsafe.rewriting.match.products import inverted
from tfsafe.rewriting.match.reductions import lines_up

_MOVED = op_types(OpFact.MOVES)
# An added constant up to here, or a bound this close to 0 or 1, only keeps a logarithm
# finite; a larger one is part of the formula.
_GUARD = 1.02e-5


class Softmax(NamedTuple):
    """A softmax, however it is written.

    Attributes:
      logits: Builds its argument.
      axis: Axes along which it sums to 1.
      mask: Builds numbers, 0 where a class is impossible; None where all are possible.
      has_exp: Whether it is made of exponentials by hand.
    """

    logits: Build
    axis: tuple[int, ...]
    mask: Build | None = None
    has_exp: bool = False


class Guarded(NamedTuple):
    """What is kept off 0 or off 1, if it is a probability.

    Attributes:
      probs: The probability, or its complement.
      is_complement: Whether it is the complement.
      floor: What takes the place of 0; None where 0 stays.
      gap: How far below 1 it stays; None where that is not so.
      is_shifted: Whether the floor is added, wherever the probability is.
    """

    probs: tf.Tensor
    is_complement: bool = False
    floor: float | None = None
    gap: float | None = None
    is_shifted: bool = False


def guarded(op: tf.Operation, reader: Reader) -> Guarded | None:
    """Recognises `p + 1e-7`, `max(p, 1e-7)`, `min(p, 1 - 1e-7)`, `1 + 1e-7 - p`."""
    if op.type == "Relu":
        return Guarded(op.inputs[0])
    if adds_lost_epsilon(reader, op):
        return Guarded(op.inputs[0], floor=LOST_EPSILON, is_shifted=True)
    if op.type == "ClipByValue":
        low, high = (reader.scalar(each) for each in op.inputs[1:])
        if low is None or high is None or low > _GUARD or high < 1 - _GUARD:
            return None
        return Guarded(op.inputs[0], floor=_above(low), gap=_above(1 - high))
    if op.type == "Sub":
        one = number(reader, *op.inputs)
        if one is not None and 1 < one <= 1 + _GUARD:
            return Guarded(op.inputs[1], True, floor=one - 1, is_shifted=True)
    for p, constant in both_ways(op):
        limit = number(reader, constant, p)
        if limit is None:
            continue
        if is_sum(op) and 0 < limit <= _GUARD:
            return Guarded(p, floor=limit, is_shifted=True)
        if op.type == "Maximum" and limit <= _GUARD:
            return Guarded(p, floor=_above(limit))
        if op.type == "Minimum" and limit >= 1 - _GUARD:
            return Guarded(p, gap=_above(1 - limit))
    return None


def _above(number: float) -> float | None:
    return number if number > 0 else None


def softmax_of(op: tf.Operation, logs: LogForms) -> Softmax | None:
    """Recognises a softmax: TensorFlow's, or `a / sum(a)` of exponentials."""
    if op.type == "Softmax":
        logits = op.inputs[0]
        return Softmax(lambda value: value(logits), (-1,))
    if op.type == "Exp":
        return softmax_of_log(logs.reader.op(op.inputs[0]), logs.reader)
    if op.type == "Transpose":
        inner = softmax_of(logs.reader.op(op.inputs[0]), logs)
        return _transposed(op, logs.reader, inner)
    for part, total in quotients(op):
        found = _quotient_of(part, total, logs)
        if found is not None:
            return found
    return None


def softmax_of_log(log: tf.Operation, reader: Reader) -> Softmax | None:
    """Recognises the logarithm of a softmax: TensorFlow's, or one by hand."""
    if log.type == "LogSoftmax":
        logits = log.inputs[0]
        return Softmax(lambda value: value(logits), (-1,))
    if log.type == "Transpose":
        inner = softmax_of_log(reader.op(log.inputs[0]), reader)
        return _transposed(log, reader, inner)
    found = log_softmax_of(log, reader) if log.type == "Sub" else None
    if found is None:
        return None
    x, axes = found
    return Softmax(lambda value: value(x), axes)


def _transposed(
    op: tf.Operation, reader: Reader, found: Softmax | None
) -> Softmax | None:
    """Returns what a softmax is when transposed, as one along another axis is."""
    order = reader.constant(op.inputs[1])
    if found is None or found.mask is not None or order is None:
        return None
    logits, places = found.logits, list(order)
    return found._replace(
        logits=lambda value: tf.transpose(logits(value), order),
        axis=tuple(places.index(axis % len(places)) for axis in found.axis),
    )


def quotients(op: tf.Operation) -> list[tuple[tf.Tensor, tf.Tensor]]:
    """Recognises `a / b`; returns both sides."""
    return [tuple(op.inputs)] if op.type in DIVISIONS | {"DivNoNan"} else []


def is_part(tensor: tf.Tensor, logs: LogForms) -> bool:
    """Returns whether a tensor is a probability by its own structure."""
    op = logs.reader.op(tensor)
    while op.type in _MOVED or (op.type == "Cast" and op.inputs[0].dtype.is_floating):
        op = logs.reader.op(op.inputs[0])
    return (
        logs.reader.is_probability(tensor)
        or softmax_of(op, logs) is not None
        or sigmoid_of(op, logs) is not None
    )


def _quotient_of(part: tf.Tensor, divisor: tf.Tensor, logs: LogForms) -> Softmax | None:
    axes = axes_of_own_total(part, divisor, logs.reader)
    return None if axes is None else whole_softmax(part, axes, logs)


def axes_of_own_total(
    part: tf.Tensor, divisor: tf.Tensor, reader: Reader
) -> tuple[int, ...] | None:
    """Returns the axes over which a divisor is the sum of the dividend."""
    total = total_of(divisor, reader)
    if total is None or not reader.same(total.op.inputs[0], part):
        return None
    return total.axes if _lines_up(part, total) else None


class Total(NamedTuple):
    """A sum over axes in a denominator.

    Attributes:
      op: The sum.
      axes: The axes.
      keepdims: Whether it keeps them with size 1.
      shape: The shape after what reshapes the sum.
      is_plain: Whether nothing does.
    """

    op: tf.Operation
    axes: tuple[int, ...]
    keepdims: bool
    shape: tf.TensorShape
    is_plain: bool


def total_of(tensor: tf.Tensor, reader: Reader) -> Total | None:
    """Recognises a sum over axes behind a guard and what puts the axes back."""
    op = reader.op(_unguarded(tensor, reader))
    shape, is_plain = op.outputs[0].shape, True
    while reshapes(reader, op):
        op, is_plain = reader.op(_unguarded(op.inputs[0], reader)), False
    if op.type == "Einsum" and len(op.inputs) == 1:
        axes = axes_of_einsum(op)
        return Total(op, axes, False, shape, is_plain) if axes else None
    if op.type != "Sum":
        return None
    axes = reader.axes(op.inputs[1], op.inputs[0].shape.rank)
    keepdims = op.get_attr("keep_dims")
    return Total(op, axes, keepdims, shape, is_plain) if axes else None


def whole_softmax(
    part: tf.Tensor, axes: tuple[int, ...], logs: LogForms
) -> Softmax | None:
    """Returns `part / sum(part)` as a softmax, if `part` is an exponential."""
    x = unshifted(logs.reader.op(part), axes, logs.reader)
    if x is not None:
        return Softmax(lambda value: value(x), axes, has_exp=True)
    found = logs.of(part)
    if found is None or found.is_partial or not (found.is_pure or found.is_masked):
        return None
    return Softmax(once(found.exponent), axes, found.weight, found.has_exp)


def _unguarded(tensor: tf.Tensor, reader: Reader) -> tf.Tensor:
    """Returns `x` of `x + 1e-7` and of `max(x, 1e-7)`."""
    op = reader.op(tensor)
    if op.type in {"Add", "AddV2", "Maximum"}:
        for x, constant in both_ways(op):
            guard = number(reader, constant, x)
            if guard is not None and 0 <= guard <= _GUARD:
                return x
    return tensor


def is_unguarded(total: tf.Tensor, reader: Reader) -> bool:
    """Returns whether nothing keeps a denominator off 0."""
    tensor = total
    while _unguarded(tensor, reader) is tensor:
        op = reader.op(tensor)
        if not reshapes(reader, op):
            return True
        tensor = op.inputs[0]
    return False


def _lines_up(part: tf.Tensor, total: Total) -> bool:
    """Returns whether a sum lines up with the rows it was taken of."""
    if total.is_plain and total.keepdims:
        return True
    rank = part.shape.rank
    is_whole = rank is not None and len(total.axes) == rank
    if is_whole and (total.shape.rank == 0 or total.shape.num_elements() == 1):
        return True
    return lines_up(total.shape, part.shape, total.axes)


def is_normalised(op: tf.Operation, reader: Reader) -> bool:
    """Returns whether `a / sum(a)` divides by 1, because `a` is a softmax itself."""
    part = op.inputs[0]
    total = reader.op(op.inputs[1])
    if total.type != "Sum" or reader.op(part).type not in {"Softmax", "Transpose"}:
        return False
    axes = reader.axes(total.inputs[1], part.shape.rank)
    is_along = axes is not None and axes == row_axis(part, reader)
    return is_along and reader.same(total.inputs[0], part)


def sigmoid_of(op: tf.Operation, logs: LogForms) -> Build | None:
    """Recognises a sigmoid, TensorFlow's or by hand; returns what builds its input."""
    # By hand it is n / (n + m), such as 1 / (1 + exp(-x)) and exp(x) / (exp(x) + 1),
    # or (tanh(x / 2) + 1) / 2.
    if op.type == "Sigmoid":
        x = op.inputs[0]
        return lambda value: value(x)
    if op.type == "Exp":
        return _exp_of_log_sigmoid(op, logs.reader)
    by_hand = _chances_of(op, logs)
    if by_hand is not None:
        return by_hand[0]
    return _half_tanh_of(op, logs.reader)


def _exp_of_log_sigmoid(op: tf.Operation, reader: Reader) -> Build | None:
    softplus = negated(reader, op.inputs[0])
    if softplus is None or reader.op(softplus).type != "Softplus":
        return None
    x = reader.op(softplus).inputs[0]
    return lambda value: -value(x)


def _chances_of(op: tf.Operation, logs: LogForms) -> tuple[Build, bool] | None:
    inverse = inverted(logs.reader, op) if op.inputs else None
    if inverse is not None and inverse.factor == 1:
        return chances(None, logs.reader.op(inverse.tensor), logs)
    if op.type not in DIVISIONS:
        return None
    part, total = op.inputs
    return chances(part, logs.reader.op(total), logs)


def chances(
    part: tf.Tensor | None, total: tf.Operation, logs: LogForms
) -> tuple[Build, bool] | None:
    """Recognises `a / (a + b)`; returns how to build `log(a) - log(b)`."""
    reader = logs.reader
    if not is_sum(total):
        return None
    for same, other in both_ways(total):
        if part is None:
            is_part = number(reader, same, other) == 1
        else:
            is_one = number(reader, same, other) == 1
            both_one = is_one and number(reader, part, other) == 1
            is_part = both_one or reader.same(part, same)
        if is_part:
            lead = _lead(logs.parts(same), logs.parts(other))
            if lead is not None:
                return lead
    return None


def _lead(a: Factored, b: Factored) -> tuple[Build, bool] | None:
    """Returns how to build `log(a) - log(b)` where one of them is an exponential."""
    if not (a.is_pure and b.is_pure and (a.name or b.name)):
        return None
    if a.is_partial or b.is_partial:
        return None
    lead = once(lambda value: a.exponent(value) - b.exponent(value))
    return lead, a.has_exp or b.has_exp


def sigmoid_by_hand(op: tf.Operation, logs: LogForms) -> Build | None:
    """Recognises a sigmoid made of exponentials or of a tanh; not TensorFlow's own."""
    by_hand = _chances_of(op, logs)
    if by_hand is not None:
        return by_hand[0] if by_hand[1] else None
    return _half_tanh_of(op, logs.reader)


def _half_tanh_of(op: tf.Operation, reader: Reader) -> Build | None:
    """Recognises `(tanh(u) + 1) / 2`, which is the sigmoid of `2 * u`."""
    u = None
    if op.type in DIVISIONS and number(reader, op.inputs[1], op.inputs[0]) == 2:
        u = _tanh_plus(reader.op(op.inputs[0]), 1.0, reader)
    elif op.type == "Mul":
        for x, constant in both_ways(op):
            if number(reader, constant, x) == 0.5:
                u = u if u is not None else _tanh_plus(reader.op(x), 1.0, reader)
    elif is_sum(op):
        u = _tanh_plus(op, 0.5, reader)
    return None if u is None else lambda value: 2 * value(u)


def _tanh_plus(op: tf.Operation, weight: float, reader: Reader) -> tf.Tensor | None:
    """Recognises `weight * tanh(u) + weight`; returns `u`."""
    for term, c in beside_number(reader, op.outputs[0]) if is_sum(op) else ():
        inner = reader.op(term.tensor)
        if inner.type == "Tanh" and term.factor == c == weight:
            return inner.inputs[0]
    return None


def of_one_plus(op: tf.Operation, logs: LogForms) -> Factored | None:
    """Factors `log(1 + exp(x))` and `-log(sigmoid(x))`."""
    inside = logs.reader.op(op.inputs[0])
    if op.type == "Log1p":
        return _softplus_of(logs.of(op.inputs[0]))
    for x, constant in both_ways(inside) if is_sum(inside) else ():
        if number(logs.reader, constant, x) == 1:
            return _softplus_of(logs.of(x))
    return None


def _softplus_of(a: Factored | None) -> Factored | None:
    if a is None or not a.is_pure or a.is_partial or not a.has_exp:
        return None
    return Factored("log-of-softplus", applied(log_softplus, a.exponent))


def minus_log(op: tf.Operation, logs: LogForms) -> Factored | None:
    """Factors `-log(sigmoid(x))` and `-log(1 - sigmoid(x))`."""
    if op.type != "Log":
        return None
    inner, sign = logs.reader.op(op.inputs[0]), -1
    if inner.type == "Sub" and number(logs.reader, *inner.inputs) == 1:
        inner, sign = logs.reader.op(inner.inputs[1]), 1
    x = sigmoid_of(inner, logs)
    if x is None:
        return None
    log = once(lambda value: log_softplus(sign * x(value)))
    return Factored("log-of-softplus", log)
