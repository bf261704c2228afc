"""Rules for differences that cancel."""

import numpy as np
import tensorflow as tf

from tfsafe import ops
from tfsafe.ops.kernels import uncancelled, unchanged_values
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.match.parts import (
    Reduction,
    Term,
    both_ways,
    is_float,
    mean_of,
    number,
    root_of,
    single_mean,
    squared,
    terms,
)

_SUMS = ("Sub", "Add", "AddV2")


def _pair(
    reader: Reader, op: tf.Operation
) -> tuple[float, float, tf.Tensor, tf.Tensor] | None:
    """Reads a sum of two terms, either of which may be a number times a tensor."""
    found = terms(reader, op.outputs[0]) if is_float(op.outputs[0]) else []
    if len(found) != 2:
        return None
    (a, x), (b, y) = found
    return a, b, x, y


def _with_one(reader: Reader, op: tf.Operation) -> tuple[Term, float] | None:
    """Reads `c * x + 1` and `c * x - 1`; returns the term and the sign of the 1."""
    found = terms(reader, op.outputs[0]) if is_float(op.outputs[0]) else []
    if len(found) != 2:
        return None
    for term, one in (found, found[::-1]):
        if reader.constant(term.tensor) is None:
            constant = number(reader, one.tensor, term.tensor)
            if constant is not None and one.factor * constant in {1.0, -1.0}:
                return term, one.factor * constant
    return None


def _match_variance(op: tf.Operation, reader: Reader) -> Build | None:
    found = difference_form(reader, op.outputs[0])
    if found is None:
        return None
    x, axes, keepdims = found
    return lambda value: ops.variance(value(x), axis=axes, keepdims=keepdims)


def difference_form(reader: Reader, tensor: tf.Tensor) -> Reduction | None:
    """Reads `mean(x^2) - mean(x)^2`."""
    op = reader.op(tensor)
    pair = _pair(reader, op) if op.type in _SUMS else None
    if pair is None:
        return None
    a, b, x, y = pair
    first, second = Term(a, x), Term(b, y)
    if squared(reader, second.tensor) is None:
        first, second = second, first
    whole, base = mean_of(reader, first), squared(reader, second.tensor)
    if whole is None or base is None or base.minus is not None:
        return None
    factor, of_squares = whole
    inner, mean = squared(reader, of_squares.x), _plain_mean(reader, base.x)
    if inner is None or inner.minus is not None or mean is None:
        return None
    is_alike = mean.axes == of_squares.axes and mean.keepdims == of_squares.keepdims
    is_difference = abs(factor - 1) < 1e-6 and second.factor == -1
    if is_alike and is_difference and reader.same(inner.x, mean.x):
        return Reduction(mean.x, mean.axes, mean.keepdims)
    return None


def _plain_mean(reader: Reader, tensor: tf.Tensor) -> Reduction | None:
    # A mean behind `tf.stop_gradient` has another gradient.
    if reader.op(tensor).type == "StopGradient":
        return None
    return single_mean(reader, tensor)


def _match_expm1(op: tf.Operation, reader: Reader) -> Build | None:
    found = _with_one(reader, op)
    if found is None:
        return None
    term, sign = found
    exp = reader.op(term.tensor)
    if exp.type != "Exp" or term.factor != -sign:
        return None
    x = exp.inputs[0]
    if sign < 0:
        return lambda value: ops.expm1(value(x))
    return lambda value: -ops.expm1(value(x))


def _match_log1p(op: tf.Operation, reader: Reader) -> Build | None:
    inside = reader.op(op.inputs[0])
    found = _with_one(reader, inside) if inside.type in _SUMS else None
    if found is None or found[1] != 1 or not is_float(op.outputs[0]):
        return None
    term = found[0]
    return lambda value: ops.log1p(term.make(value))


def _match_one_minus(op: tf.Operation, reader: Reader) -> Build | None:
    found = _with_one(reader, op)
    if found is None:
        return None
    term, sign = found
    if term.factor != -sign:
        return None
    build = _complement(reader, term.tensor)
    if build is None or sign > 0:
        return build
    return lambda value: -build(value)


def _complement(reader: Reader, tensor: tf.Tensor) -> Build | None:
    """Builds `1 - tensor`, where a form without cancellation is known."""
    inner = reader.op(tensor)
    if inner.type == "Cos":
        return lambda value: uncancelled.one_minus_cos(value(inner.inputs[0]))
    if inner.type == "Sigmoid":
        return lambda value: ops.sigmoid(-value(inner.inputs[0]))
    base = squared(reader, tensor)
    if base is None or base.minus is not None:
        return None
    tanh = reader.op(base.x)
    if tanh.type == "Tanh":
        return lambda value: uncancelled.sech_squared(value(tanh.inputs[0]))

    def build(value: Value) -> tf.Tensor:
        x = value(base.x)
        return uncancelled.difference_of_squares(tf.ones([], x.dtype), x)

    return build


def _match_squares(op: tf.Operation, reader: Reader) -> Build | None:
    pair = _pair(reader, op)
    if pair is None or (pair[0], pair[1]) not in {(1, -1), (-1, 1)}:
        return None
    bases = [squared(reader, each) for each in pair[2:]]
    first, second = bases if pair[0] > 0 else bases[::-1]
    if first is None or second is None:
        return None

    def build(value: Value) -> tf.Tensor:
        return uncancelled.difference_of_squares(first.make(value), second.make(value))

    return build


def _match_sqrt1pm1(op: tf.Operation, reader: Reader) -> Build | None:
    found = _with_one(reader, op)
    if found is None or found[1] != -1 or found[0].factor != 1:
        return None
    inside = root_of(reader, found[0].tensor)
    under = None if inside is None else reader.op(inside)
    if under is None or under.type not in _SUMS:
        return None
    inner = _with_one(reader, under)
    if inner is None or inner[1] != 1:
        return None
    term = inner[0]
    return lambda value: uncancelled.sqrt1pm1(term.make(value))


def _match_guard(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches a small number added to a difference of which 1 is a part."""
    for inner, guard in both_ways(op, *_SUMS):
        small, difference = reader.scalar(guard), reader.op(inner)
        if not small or difference.type not in _SUMS or not is_float(inner):
            continue
        constants = [reader.scalar(each) for each in difference.inputs]
        whole = next((each for each in constants if each), None)
        if whole is None or reader.constant(inner) is not None:
            continue
        if _is_lossy(whole, small, inner.dtype):
            return _held(op, inner)
    return None


def _is_lossy(a: float, b: float, dtype: tf.DType) -> bool:
    """Returns whether the sum or the difference of two numbers is rounded."""
    kind = dtype.as_numpy_dtype
    exact = [np.float64(a) + np.float64(b), np.float64(a) - np.float64(b)]
    return any(np.float64(kind(each)) != each for each in exact)


def _held(op: tf.Operation, inner: tf.Tensor) -> Build:
    raw = getattr(tf.raw_ops, op.type)

    def build(value: Value) -> tf.Tensor:
        x, y = (
            unchanged_values.held(value(each)) if each is inner else value(each)
            for each in op.inputs
        )
        return raw(x=x, y=y)

    return build


RULES = (
    Rule(
        name="variance",
        before="mean(x * x) - mean(x) ** 2",
        after="ops.variance(x)",
        fails="the mean is large beside the spread: no digit is left, or a negative",
        reference="Chan, Golub and LeVeque, The American Statistician 37(3), 1983",
        op_types=_SUMS,
        match=_match_variance,
    ),
    Rule(
        name="exp-minus-one",
        before="exp(x) - 1",
        after="ops.expm1(x)",
        fails="x is near 0",
        reference="tfsafe.ops.expm1",
        op_types=_SUMS,
        match=_match_expm1,
    ),
    Rule(
        name="complement",
        before="1 - cos(x), 1 - sigmoid(x), 1 - tanh(x)**2 or 1 - x**2",
        after="2 sin(x / 2)^2, sigmoid(-x), 1 / cosh(x)^2 or (1 - x)(1 + x)",
        fails="what is subtracted is near 1",
        reference="half-angle formula; Kahan, IEEE lecture notes, 1997",
        op_types=_SUMS,
        match=_match_one_minus,
    ),
    Rule(
        name="difference-of-squares",
        before="a * a - b * b",
        after="(a - b) * (a + b)",
        fails="a is near b; a square overflows",
        reference="Goldberg, ACM Computing Surveys 23(1), 1991, section 1.4",
        op_types=_SUMS,
        match=_match_squares,
    ),
    Rule(
        name="sqrt1pm1",
        before="sqrt(1 + x) - 1",
        after="x / (sqrt(1 + x) + 1)",
        fails="x is near 0",
        reference="multiplication by the conjugate",
        op_types=_SUMS,
        match=_match_sqrt1pm1,
    ),
    Rule(
        name="log-of-one-plus",
        before="log(1 + x)",
        after="ops.log1p(x)",
        fails="x is near 0",
        reference="tfsafe.ops.log1p",
        op_types=("Log",),
        match=_match_log1p,
    ),
    Rule(
        name="guard",
        before="(1 - x) + epsilon",
        after="the same, which no compiler merges into (1 + epsilon) - x",
        fails="compiled: 1 + epsilon is rounded before x is subtracted",
        reference="TensorFlow issues 47548 and 52045",
        op_types=_SUMS,
        match=_match_guard,
    ),
)
