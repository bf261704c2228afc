"""Finds the logarithm of an operation's output: one case for each operation type."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfsafe import ops
from tfsafe.graph import DIVISIONS, RECIPROCALS
from tfsafe.ops.formulas.differences.log_complements import log_softplus
from tfsafe.ops.formulas.out_of_range import bessel
from tfsafe.ops.formulas.out_of_range.weighted_exponentials import (
    floored_log,
    weighted_log,
)
from tfsafe.rewriting.engine.rule import Build, Value
from tfsafe.rewriting.log_space import form, probabilities, sums, weighted_sums
from tfsafe.rewriting.log_space.form import (
    Factored,
    LogForms,
    LogRule,
    added,
    applied,
    divided,
    multiplied,
    once,
    subtracted,
)
from tfsafe.rewriting.log_space.operations import (
    extrema,
    gathers,
    lists,
    normal,
    quotients,
    segments,
    sparse,
)
from tfsafe.rewriting.match.arithmetic import number, square_of

_Case = Callable[[tf.Operation, LogForms], Factored | None]

# `log(1 + exp(x))` is a scale: what is added to it is a part of the formula.
_SCALES = {"Log", "Log1p", "Softplus"}


def factored(op: tf.Operation, logs: LogForms) -> Factored | None:
    """Factors the output of `op`, if there is an exponential or a probability in it."""
    for whole in (_guarded, _softmax, _sigmoid, normal.tail):
        found = whole(op, logs)
        if found is not None:
            return found
    case = _CASES.get(op.type)
    return None if case is None else case(op, logs)


def _guarded(op: tf.Operation, logs: LogForms) -> Factored | None:
    guard = probabilities.guarded(op, logs.reader)
    if guard is None or logs.reader.op(guard.probs).type in _SCALES:
        return None
    found = (logs.complement if guard.is_complement else logs.of)(guard.probs)
    if found is None:
        return None
    if guard.is_complement or _is_certain(guard.probs, found, logs):
        return form.kept_off_zero(found, guard.floor)
    return (
        None if found.has_exp or found.is_partial else _maybe_guarded(op, found, guard)
    )


def _is_certain(probs: tf.Tensor, found: Factored, logs: LogForms) -> bool:
    """Returns whether what is guarded is a probability by its own structure."""
    return probabilities.is_part(probs, logs) or found.name == form.GUARDED


def _maybe_guarded(
    op: tf.Operation, found: Factored, guard: probabilities.Guarded
) -> Factored | None:
    """Factors a guarded weighted sum of probabilities; plain beyond 0 and 1."""
    if guard.floor is None and guard.gap is None:
        return None

    def build(value: Value) -> tf.Tensor:
        log = floored_log(found.whole_log(value), guard.floor)
        plain = ops.log(value(op.outputs[0]))
        is_beyond = log > 0
        if found.weight is not None and not found.is_nonnegative:
            is_beyond |= found.weight(value) < 0
        return tf.where(is_beyond, plain, log)

    return Factored(form.GUARDED, once(build))


def _softmax(op: tf.Operation, logs: LogForms) -> Factored | None:
    if op.type in DIVISIONS and probabilities.is_normalised(op, logs.reader):
        return logs.of(op.inputs[0])
    found = probabilities.softmax_of(op, logs)
    if found is None:
        return None

    def build(value: Value) -> tf.Tensor:
        mask = None if found.mask is None else found.mask(value)
        return ops.log_softmax(found.logits(value), found.axis, mask=mask)

    return Factored("log-of-softmax", once(build))


def _sigmoid(op: tf.Operation, logs: LogForms) -> Factored | None:
    x = probabilities.sigmoid_of(op, logs)
    if x is None:
        return None
    return Factored("log-of-sigmoid", applied(ops.log_sigmoid, x))


def _of_input(
    name: LogRule,
    function: Callable[[tf.Tensor], tf.Tensor],
    weight: Callable[[tf.Tensor], tf.Tensor] | None = None,
    **facts: Any,
) -> _Case:
    """Returns the case of an operation whose logarithm is a function of its input."""

    def case(op: tf.Operation, _: LogForms) -> Factored:
        x = op.inputs[0]
        return Factored(
            name,
            once(lambda value: function(value(x))),
            None if weight is None else once(lambda value: weight(value(x))),
            **facts,
        )

    return case


def _mul(op: tf.Operation, logs: LogForms) -> Factored | None:
    if square_of(logs.reader, op.outputs[0]) is not None:
        return _square(op, logs)
    a, b = (logs.parts(each) for each in op.inputs)
    for factor, other in ((a, op.inputs[1]), (b, op.inputs[0])):
        inverse = logs.reader.op(other)
        is_inverse = inverse.type in DIVISIONS | RECIPROCALS
        if is_inverse and quotients.divides_by_own_size(factor, other, logs):
            return None
    return _times(a, b)


def _times(a: Factored, b: Factored) -> Factored | None:
    if not a.name and not b.name:
        return None
    if (a.is_partial and not b.is_nonnegative) or (
        b.is_partial and not a.is_nonnegative
    ):
        return None
    return Factored(
        "log-of-product",
        added(a.log, b.log),
        multiplied(a.weight, b.weight),
        a.offset + b.offset,
        is_nonnegative=a.is_nonnegative and b.is_nonnegative,
        is_partial=a.is_partial or b.is_partial,
        is_masked=_is_mask(a) and _is_mask(b) and a.offset + b.offset == 0,
        has_exp=a.has_exp or b.has_exp,
    )


def _is_mask(a: Factored) -> bool:
    return a.is_pure or a.is_masked


def _real_div(op: tf.Operation, logs: LogForms) -> Factored | None:
    reader = logs.reader
    special = _odds(op, logs) or gathers.picked(op, logs) or quotients.limit(op, logs)
    if special is not None:
        return special
    a, b = (logs.parts(each) for each in op.inputs)
    if not a.name and not b.name:
        return None
    if quotients.divides_by_own_size(a, op.inputs[1], logs):
        return None
    # A negative divisor of a positive number has no logarithm either.
    is_positive = a.is_pure and not a.is_partial and not b.is_nonnegative
    if a.is_partial or (b.is_partial and not is_positive):
        return None
    return Factored(
        "log-of-ratio",
        subtracted(a.log, b.log),
        divided(a.weight, b.weight),
        a.offset - b.offset,
        is_nonnegative=all(
            found.is_nonnegative or reader.is_nonnegative(each)
            for found, each in zip((a, b), op.inputs, strict=True)
        ),
        is_partial=b.is_partial,
        has_exp=a.has_exp or b.has_exp,
    )


def _odds(op: tf.Operation, logs: LogForms) -> Factored | None:
    """Factors `p / (1 - p)` or `(1 - p) / p` of a sigmoid p."""
    reader = logs.reader
    for place, sign in ((1, 1), (0, -1)):
        rest, p = reader.op(op.inputs[place]), op.inputs[1 - place]
        is_rest = rest.type == "Sub" and number(reader, *rest.inputs) == 1
        if not is_rest or not reader.same(rest.inputs[1], p):
            continue
        x = probabilities.sigmoid_of(reader.op(p), logs)
        if x is not None:
            return Factored(
                "log-of-odds",
                applied(tf.negative, x) if sign < 0 else x,
                has_exp=True,
            )
    return None


def _reciprocal(op: tf.Operation, logs: LogForms) -> Factored | None:
    a = logs.of(op.inputs[0])
    if a is None or a.is_partial:
        return None
    return a._replace(
        name="log-of-ratio",
        log=subtracted(None, a.log),
        weight=divided(None, a.weight),
        offset=-a.offset,
    )


def _powered(a: Factored | None, exponent: float) -> Factored | None:
    """Factors a constant power."""
    if a is None or not a.name:
        return None
    if a.is_partial and not a.is_nonnegative:
        return None

    def power(weight: tf.Tensor) -> tf.Tensor:
        return ops.pow(weight, exponent)

    return a._replace(
        name="log-of-power",
        log=None if a.log is None else applied(lambda log: exponent * log, a.log),
        weight=None if a.weight is None else applied(power, a.weight),
        offset=exponent * a.offset,
    )


def _square(op: tf.Operation, logs: LogForms) -> Factored | None:
    a = _powered(logs.of(op.inputs[0]), 2.0)
    return None if a is None else a._replace(is_nonnegative=True)


def _power(exponent: float) -> _Case:
    return lambda op, logs: _powered(logs.of(op.inputs[0]), exponent)


def _pow(op: tf.Operation, logs: LogForms) -> Factored | None:
    base, exponent = op.inputs
    power = number(logs.reader, exponent, base)
    if power is not None:
        a = _powered(logs.of(base), power)
        is_even = power % 2 == 0
        return (
            None
            if a is None
            else a._replace(is_nonnegative=a.is_nonnegative or is_even)
        )
    constant = number(logs.reader, base, exponent)
    if constant is not None and constant > 0:
        rate = form.log_number(constant)
        return Factored(
            "log-of-power", once(lambda value: value(exponent) * rate), has_exp=True
        )
    return _to_a_tensor(logs.of(base), exponent)


def _to_a_tensor(a: Factored | None, exponent: tf.Tensor) -> Factored | None:
    if a is None or not a.is_nonnegative:
        return None
    return Factored(
        "log-of-power",
        once(lambda value: weighted_log(value(exponent), a.whole_log(value))),
        has_exp=a.has_exp,
    )


def _abs(op: tf.Operation, logs: LogForms) -> Factored | None:
    a = logs.of(op.inputs[0])
    if a is None or (a.is_partial and not a.is_nonnegative):
        return None
    weight = None if a.weight is None else applied(tf.abs, a.weight)
    return a._replace(weight=weight, is_nonnegative=True)


def _neg(op: tf.Operation, logs: LogForms) -> Factored | None:
    inner = logs.reader.op(op.inputs[0])
    if inner.type == "Expm1":
        return form.one_minus_exp(inner.inputs[0], logs)
    minus_log = probabilities.minus_log(inner, logs)
    if minus_log is not None:
        return minus_log
    a = logs.of(op.inputs[0])
    if a is None or a.is_partial:
        return None
    minus = (
        once(lambda value: -tf.ones_like(a.exponent(value)))
        if a.weight is None
        else applied(tf.negative, a.weight)
    )
    return a._replace(weight=minus, is_nonnegative=False, is_masked=False)


def _prod(op: tf.Operation, logs: LogForms) -> Factored | None:
    reader = logs.reader
    axes = reader.axes(op.inputs[1], op.inputs[0].shape.rank)
    if axes is None or reader.constant(op.inputs[0]) is not None:
        return None
    a = logs.parts(op.inputs[0])
    if a.is_partial and not a.is_nonnegative:
        return None
    keepdims = op.get_attr("keep_dims")

    def reduced(function: Callable[..., tf.Tensor], build: Build) -> Build:
        return once(lambda value: function(build(value), axes, keepdims=keepdims))

    def logarithms(value: Value) -> tf.Tensor:
        if a.weight is None:
            return a.exponent(value)
        size = a.weight(value) if a.is_nonnegative else tf.abs(a.weight(value))
        return ops.log(size) + a.exponent(value)

    signs = None
    if a.weight is not None and not a.is_nonnegative:
        signs = reduced(tf.reduce_prod, applied(tf.sign, a.weight))
    return Factored(
        "log-of-product",
        reduced(tf.reduce_sum, logarithms),
        signs,
        is_nonnegative=a.is_nonnegative,
        has_exp=a.has_exp,
    )


_CASES: dict[str, _Case] = {
    "Abs": _abs,
    **dict.fromkeys(("Add", "AddN", "AddV2"), sums.add),
    "BesselI0": _of_input("log-of-bessel", bessel.log_bessel_i0, has_exp=True),
    "BesselI1": _of_input(
        "log-of-bessel",
        bessel.log_bessel_i1,
        is_nonnegative=False,
        is_partial=True,
        has_exp=True,
    ),
    "Cosh": _of_input("log-of-cosh", ops.log_cosh, has_exp=True),
    "Cumprod": segments.running_product,
    "Cumsum": segments.running_sum,
    **dict.fromkeys(DIVISIONS, _real_div),
    "Erfc": _of_input("log-of-erfc", ops.log_erfc),
    "Exp": _of_input("log-of-exp", lambda x: x, has_exp=True),
    "Expm1": _of_input(
        "log-of-difference",
        ops.log_expm1,
        is_nonnegative=False,
        is_partial=True,
        has_exp=True,
    ),
    **dict.fromkeys(RECIPROCALS, _reciprocal),
    **dict.fromkeys(("Log", "Log1p"), probabilities.of_one_plus),
    "MatrixDeterminant": _of_input(
        "log-of-determinant",
        lambda x: ops.slogdet(x)[1],
        lambda x: tf.stop_gradient(ops.slogdet(x)[0]),
        is_nonnegative=False,
    ),
    "Max": extrema.extremum(tf.reduce_max),
    "Maximum": extrema.larger,
    "Min": extrema.extremum(tf.reduce_min),
    "Minimum": extrema.larger,
    "Mul": _mul,
    "Neg": _neg,
    "Pow": _pow,
    "Prod": _prod,
    "Rsqrt": _power(-0.5),
    **dict.fromkeys(segments.PRODUCTS, segments.segment_product),
    "Sinh": _of_input("log-of-cosh", ops.log_cosh, ops.tanh, has_exp=True),
    "Softplus": _of_input("log-of-softplus", log_softplus),
    "SparseReduceSum": sparse.row_sum,
    "SparseTensorDenseMatMul": sparse.product,
    "Sqrt": _power(0.5),
    "Square": _square,
    "Sub": sums.subtract,
    "TopKV2": gathers.largest,
    **dict.fromkeys(lists.READS, lists.item),
    "TensorListSetItem": lists.set_item,
    **weighted_sums.CASES,
}
