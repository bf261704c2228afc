"""Finds logarithms of tails and intervals of the normal distribution, made of erf."""

import tensorflow as tf

from tfsafe import ops
from tfsafe.ops.formulas.differences.log_complements import (
    log_erf_difference,
    log_half_erfc,
)
from tfsafe.rewriting.engine.rule import Value
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.log_space.form import Factored, LogForms, log_number, once
from tfsafe.rewriting.match.linear import parts

_TYPES = frozenset({
    "Sub",
    "Add",
    "AddV2",
    "AddN",
    "Mul",
    "RealDiv",
    "Div",
    "Neg",
    "Erfc",
})


def tail(op: tf.Operation, logs: LogForms) -> Factored | None:
    """Factors a number times `erfc(x)`, or times `erf(x) - erf(y)`."""
    one_sided = tail_of(op, logs.reader)
    if one_sided is not None and one_sided[0] > 0:
        scale, sign, x = one_sided
        if abs(scale - 0.5) < 1e-6:
            log = once(lambda value: log_half_erfc(sign * value(x)))
            return Factored("log-of-erfc", log)
        return Factored(
            "log-of-erfc",
            once(lambda value: ops.log_erfc(sign * value(x))),
            offset=log_number(scale),
        )
    interval = _interval(op, logs.reader)
    if interval is None:
        return None
    scale, x, y = interval
    return Factored(
        "log-of-erfc",
        once(lambda value: log_erf_difference(value(x), value(y))),
        offset=log_number(scale),
        is_nonnegative=False,
        is_partial=True,
    )


def signed_interval(op: tf.Operation, logs: LogForms) -> Factored | None:
    """Factors a number times `erf(x) - erf(y)`, of any sign."""
    interval = _interval(op, logs.reader)
    if interval is None:
        return None
    scale, x, y = interval

    def log(value: Value) -> tf.Tensor:
        a, b = value(x), value(y)
        high, low = tf.maximum(a, b), tf.minimum(a, b)
        # An empty interval has a weight of 0.
        return log_erf_difference(tf.where(high > low, high, low + 1), low)

    return Factored(
        "log-of-erfc",
        once(log),
        once(lambda value: tf.stop_gradient(tf.sign(value(x) - value(y)))),
        offset=log_number(scale),
        is_nonnegative=False,
    )


def tail_of(op: tf.Operation, reader: Reader) -> tuple[float, int, tf.Tensor] | None:
    """Reads `scale * erfc(sign * x)`, such as `1 - 0.5 * (1 + erf(x))`."""
    found = _signed(op, reader)
    if found is None:
        return None
    number, errors = found
    if len(errors) != 1:
        return None
    ((factor, x),) = errors
    if not number or abs(abs(factor) - abs(number)) > 1e-6 * abs(number):
        return None
    return number, -1 if factor * number > 0 else 1, x


def _interval(
    op: tf.Operation, reader: Reader
) -> tuple[float, tf.Tensor, tf.Tensor] | None:
    found = _signed(op, reader)
    if found is None or len(found[1]) != 2 or abs(found[0]) > 1e-6:
        return None
    (a, x), (b, y) = sorted(found[1], key=lambda each: -each[0])
    if a <= 0 or abs(a + b) > 1e-6 * a:
        return None
    return a, x, y


def _signed(
    op: tf.Operation, reader: Reader
) -> tuple[float, list[tuple[float, tf.Tensor]]] | None:
    """Reads a sum of a number and of numbers times erf; erfc is 1 - erf."""
    if op.type not in _TYPES or reader.constant(op.outputs[0]) is not None:
        return None
    number = 0.0
    errors: list[tuple[float, tf.Tensor]] = []
    for part in parts(reader, op.outputs[0]):
        if part.tensor is None:
            number += part.factor
            continue
        inner = reader.op(part.tensor)
        if inner.type not in {"Erf", "Erfc"} or part.axes is not None:
            return None
        if inner.type == "Erfc":
            number += part.factor
        sign = 1 if inner.type == "Erf" else -1
        errors.append((sign * part.factor, inner.inputs[0]))
    return number, errors
