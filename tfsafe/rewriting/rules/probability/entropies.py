"""Rules for products with a logarithm: entropies, cross-entropies, divergences."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from tfsafe import ops
from tfsafe.graph import DIVISIONS, MATRIX_PRODUCTS, OpFact, op_types, raw_kernel
from tfsafe.ops.formulas.limits import entropies_of_order, field_limits
from tfsafe.ops.formulas.out_of_range.weighted_exponentials import (
    weighted_logs,
    zero_where_weightless,
)
from tfsafe.rewriting.engine.rule import Build, Rule, Value, first
from tfsafe.rewriting.facts.finiteness import is_watched
from tfsafe.rewriting.facts.sums import axes_of_einsum
from tfsafe.rewriting.facts.tensors import Reader, both_ways
from tfsafe.rewriting.log_space.analysis import MOVERS, logarithms
from tfsafe.rewriting.log_space.form import Factored, with_inputs
from tfsafe.rewriting.log_space.probabilities import quotients
from tfsafe.rewriting.match.arithmetic import (
    adds_lost_epsilon,
    is_never_0,
    is_sum,
    number,
    squared,
)
from tfsafe.rewriting.match.linear import Part, merged, minus, parts
from tfsafe.rewriting.rules.differences import (
    function_differences,
    near_one,
    tangents,
)
from tfsafe.rewriting.rules.probability import gamma_functions, inverse_functions
from tfsafe.rewriting.rules.probability.likelihoods import FRACTION

_LOGARITHMS = op_types(OpFact.LOGARITHM)
# Logarithms and sums of them that have a stable form as a whole.
_WHOLE = (
    *function_differences.RULES,
    *inverse_functions.RULES,
    *tangents.RULES,
    gamma_functions.divergence(()),
    gamma_functions.rule(()),
)
_DEPTH = 8


def _is_log(tensor: tf.Tensor, reader: Reader, depth: int = 0) -> bool:
    """Returns whether a tensor is a sum of logarithms, with any constant factors."""
    op = reader.op(tensor)
    if op.type in _LOGARITHMS:
        # `half-precision` adds the epsilon in float32.
        is_lost = adds_lost_epsilon(reader, reader.op(op.inputs[0]))
        return not is_lost or logarithms(reader).of(op.inputs[0]) is not None
    if depth > _DEPTH:
        return False
    if _is_log_sigmoid(op, reader):
        return True
    if op.type == "Neg" or (op.type in MOVERS and op.type != "StopGradient"):
        places = MOVERS.get(op.type, (0,))
        return any(_is_log(op.inputs[i], reader, depth + 1) for i in places)
    if op.type == "Mul":
        return any(
            reader.scalar(constant) is not None and _is_log(x, reader, depth + 1)
            for x, constant in both_ways(op)
        )
    if op.type == "RealDiv":
        divisor = reader.scalar(op.inputs[1])
        return divisor is not None and _is_log(op.inputs[0], reader, depth + 1)
    if is_sum(op) or op.type == "Sub":
        return any(_is_log(each, reader, depth + 1) for each in op.inputs)
    return False


def _is_whole(op: tf.Operation, reader: Reader) -> bool:
    return first(_WHOLE, op, reader) is not None


def _bounded(
    tensor: tf.Tensor, weight: tf.Tensor, value: Value, reader: Reader
) -> tf.Tensor:
    """Builds a sum of logarithms, each of them 0 where it is infinite and weighs 0."""
    op = reader.op(tensor)
    if op.type in _LOGARITHMS or op.type in MOVERS or _is_log_sigmoid(op, reader):
        return _leaf(tensor, weight, value, reader)
    if _is_whole(op, reader):
        return _without_nothing(value(tensor), weight, _arguments(op, reader), value)
    parts = [
        _bounded(each, weight, value, reader) if _is_log(each, reader) else value(each)
        for each in op.inputs
    ]
    if op.type == "Neg":
        return -parts[0]
    if op.type == "Mul":
        return parts[0] * parts[1]
    if op.type == "RealDiv":
        return parts[0] / parts[1]
    return parts[0] - parts[1] if op.type == "Sub" else functools.reduce(tf.add, parts)


def _is_log_sigmoid(op: tf.Operation, reader: Reader) -> bool:
    return op.type == "Neg" and reader.op(op.inputs[0]).type == "Softplus"


def _leaf(
    tensor: tf.Tensor, weight: tf.Tensor, value: Value, reader: Reader
) -> tf.Tensor:
    """Builds one logarithm, 0 where it is infinite and weighs 0."""
    ratio = _ratio(tensor, reader)
    if ratio is None:
        log = _silent(tensor, value, reader)
        return _without_nothing(log, weight, _sides(tensor, reader), value)
    # Both may be infinite, and their difference NaN.
    top, bottom = ratio
    return zero_where_weightless(top.whole_log(value), weight) - zero_where_weightless(
        bottom.whole_log(value), weight
    )


def _without_nothing(
    log: tf.Tensor, weight: tf.Tensor, sides: Sequence[tf.Tensor], value: Value
) -> tf.Tensor:
    """Returns a logarithm, replaced by 0 where it weighs 0 and is infinite.

    So it is where it weighs 0 and one of the sides is 0 that it is made of, which may
    make it NaN; where another of them is NaN, it stays.
    """
    log = zero_where_weightless(log, weight)
    if not sides:
        return log
    numbers = [*map(value, sides)]
    is_zero = functools.reduce(tf.logical_or, [tf.equal(x, 0) for x in numbers])
    is_nan = functools.reduce(tf.logical_or, map(tf.math.is_nan, numbers))
    is_nothing = tf.equal(weight, 0) & is_zero & ~is_nan
    return tf.where(is_nothing, tf.zeros_like(log), log)


def _arguments(op: tf.Operation, reader: Reader) -> list[tf.Tensor]:
    """Returns what the logarithms are taken of that an operation adds or subtracts."""
    logs = [each for each in map(reader.op, op.inputs) if each.type == "Log"]
    return [log.inputs[0] for log in logs]


def _sides(tensor: tf.Tensor, reader: Reader) -> list[tf.Tensor]:
    """Returns the sides of the quotient that a logarithm is taken of, if it is one."""
    op = reader.op(tensor)
    x = op.inputs[0]
    found: list[tf.Tensor] = []
    while op.type in {"Log", *DIVISIONS} and reader.op(x).type in DIVISIONS:
        op = reader.op(x)
        x, divisor = op.inputs
        if reader.constant(divisor) is None:
            found.append(divisor)
    return [x, *found] if found else []


def _silent(tensor: tf.Tensor, value: Value, reader: Reader) -> tf.Tensor:
    """Builds a logarithm, moved or not, with the gradient of `ops.log`."""
    op = reader.op(tensor)
    plain = _plain(tensor, reader)
    if plain is not None:
        return ops.log(value(plain))
    if op.type not in MOVERS:
        return value(tensor)
    logs = [i for i in MOVERS[op.type] if _is_log(op.inputs[i], reader)]
    return with_inputs(
        op, value, {i: _silent(op.inputs[i], value, reader) for i in logs}
    )


def _ratio(tensor: tf.Tensor, reader: Reader) -> tuple[Factored, Factored] | None:
    """Returns the two sides of a quotient that a logarithm is taken of."""
    logs = logarithms(reader)
    op = reader.op(tensor)
    found = logs.of(op.inputs[0]) if op.type == "Log" else None
    quotient = reader.op(op.inputs[0])
    if found is None or found.name != "log-of-ratio" or quotient.type != "RealDiv":
        return None
    if any(reader.scalar(each) is not None for each in quotient.inputs):
        return None
    top, bottom = (logs.parts(each) for each in quotient.inputs)
    return (top, bottom) if bottom.is_nonnegative else None


def _plain(tensor: tf.Tensor, reader: Reader) -> tf.Tensor | None:
    """Returns what a logarithm is taken of, if no rule says how to take it."""
    op = reader.op(tensor)
    if op.type != "Log" or logarithms(reader).of(op.inputs[0]) is not None:
        return None
    if _is_whole(op, reader):
        return None
    if FRACTION(op, reader) is not None or near_one.match_log(op, reader) is not None:
        return None
    inner = reader.op(op.inputs[0])
    is_shifted = is_sum(inner) and any(
        reader.is_number(each, 1) for each in inner.inputs
    )
    return None if is_shifted or inner.type == "Sub" else op.inputs[0]


def _match(op: tf.Operation, reader: Reader) -> Build | None:
    if op.type != "Mul":
        return _match_contraction(op, reader)
    for weight, log in both_ways(op):
        # Masks have a rule of their own.
        if reader.is_mask(weight) or is_never_0(reader, weight):
            continue
        found = _squared_or_absolute(weight, log, reader)
        if found is not None:
            return found
        if not _is_log(log, reader):
            continue
        if _is_log(weight, reader):
            return None
        plain = _plain(log, reader)
        if plain is not None and not _sides(log, reader):
            return _xlogy(weight, plain)
        return _weighed(weight, log, reader)
    return None


def _match_contraction(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches the sum of weights times logarithms, each weight with one of these."""
    made = op.outputs[0].shape
    is_single = op.type != "Einsum" and made.rank is not None and made[-2:] == [1, 1]
    if len(op.inputs) != 2 or not (is_single or axes_of_einsum(op)):
        return None
    for order in (slice(None), slice(None, None, -1)):
        weight, log = op.inputs[order]
        if _is_open_log(log, reader) and not _is_open_log(weight, reader):
            return _contracted(op, order, reader)
    return None


def _contracted(op: tf.Operation, order: slice, reader: Reader) -> Build:
    kernel = raw_kernel(op)

    def contract(weight: tf.Tensor, log: tf.Tensor) -> tf.Tensor:
        return kernel([weight, log][order])[0]

    weight, log = op.inputs[order]
    return lambda value: weighted_logs(
        value(weight), _silent(log, value, reader), contract
    )


def _is_open_log(tensor: tf.Tensor, reader: Reader) -> bool:
    """Returns whether a tensor is a logarithm, moved or not, that may be infinite."""
    op = reader.op(tensor)
    while op.type == "Neg" or MOVERS.get(op.type) == (0,):
        op = reader.op(op.inputs[0])
    x = op.inputs[0] if op.type == "Log" else None
    if x is None or reader.bounds(x).low > 0:
        return False
    return logarithms(reader).of(x) is None


def _xlogy(weight: tf.Tensor, probs: tf.Tensor) -> Build:
    return lambda value: ops.xlogy(value(weight), value(probs))


def _squared_or_absolute(
    weight: tf.Tensor, tensor: tf.Tensor, reader: Reader
) -> Build | None:
    """Matches `weight * log ** 2` and `weight * abs(log)`, also of a difference."""
    op, base = reader.op(tensor), squared(reader, tensor)
    if base is None and op.type != "Abs":
        return None
    function = tf.square if base is not None else tf.abs
    x, minus = (op.inputs[0], None) if base is None else base
    logs = [each for each in (x, minus) if each is not None]
    if not all(_is_log(each, reader) for each in logs):
        return None

    def build(value: Value) -> tf.Tensor:
        sides = [_bounded(each, value(weight), value, reader) for each in logs]
        return value(weight) * function(functools.reduce(tf.subtract, sides))

    return build


def _weighed(weight: tf.Tensor, log: tf.Tensor, reader: Reader) -> Build:
    return lambda value: value(weight) * _bounded(log, value(weight), value, reader)


def _match_lgamma(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `weight * lgamma(x)`."""
    if is_watched(reader, op):
        return None
    for weight, log in both_ways(op):
        inner = reader.op(log)
        if inner.type == "Lgamma" and reader.constant(weight) is None:
            return _weighted_lgamma(weight, inner.inputs[0])
    return None


def _weighted_lgamma(weight: tf.Tensor, x: tf.Tensor) -> Build:
    return lambda value: field_limits.weighted_lgamma(value(weight), value(x))


class _Sum(NamedTuple):
    """The sum `sum(p ** q)` over axes."""

    p: tf.Tensor
    q: tf.Tensor
    axes: tuple[int, ...]
    keepdims: bool


def match_of_order(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `(1 - sum(p ** q)) / (q - 1)` and `log(sum(p ** q)) / (1 - q)`."""
    for top, bottom in quotients(op):
        inner = reader.op(top)
        if inner.type == "Log":
            found = _sum_of_powers(reader, inner.inputs[0])
            sign = None if found is None else _order(reader, bottom, found.q)
            if found is not None and sign is not None:
                return _shaped(_built(found, -sign, is_log=True), found)
        elif inner.type == "Sub":
            for total, one, side in ((1, 0, 1), (0, 1, -1)):
                found = _sum_of_powers(reader, inner.inputs[total])
                sign = None if found is None else _order(reader, bottom, found.q)
                is_one = number(reader, inner.inputs[one], inner.inputs[total]) == 1
                if found is not None and sign is not None and is_one:
                    built = _built(found, side * sign, is_log=False)
                    return _shaped(built, found)
    return None


def _shaped(build: Build, found: _Sum) -> Build:
    """Gives the result its axes where the order has axes of size 1."""
    if found.q.shape.rank == 0:
        return build

    def shaped(value: Value) -> tf.Tensor:
        made, order = build(value), tf.shape(value(found.q))
        return tf.reshape(made, tf.broadcast_dynamic_shape(tf.shape(made), order))

    return shaped


def _built(found: _Sum, sign: int, *, is_log: bool) -> Build:
    function = entropies_of_order.renyi if is_log else entropies_of_order.tsallis
    return lambda value: (
        sign
        * function(
            value(found.p), tf.reshape(value(found.q), []), found.axes, found.keepdims
        )
    )


def _sum_of_powers(reader: Reader, tensor: tf.Tensor) -> _Sum | None:
    op = reader.op(tensor)
    if op.type != "Sum":
        return None
    power = reader.op(op.inputs[0])
    axes = reader.axes(op.inputs[1], op.inputs[0].shape.rank)
    if power.type != "Pow" or not axes:
        return None
    p, q = power.inputs
    is_one = q.shape.num_elements() == 1 and (q.shape.rank or 0) <= (p.shape.rank or 0)
    if not is_one or reader.constant(q) is not None:
        return None
    return _Sum(p, q, axes, op.get_attr("keep_dims"))


def _order(reader: Reader, tensor: tf.Tensor, q: tf.Tensor) -> int | None:
    """Returns 1 for `q - 1`, -1 for `1 - q`."""
    found, order = parts(reader, tensor), [*parts(reader, q), Part(-1.0, None)]
    for sign, wanted in ((1, order), (-1, minus(order))):
        if not merged(reader, [*found, *minus(wanted)]):
            return sign
    return None


RULES = (
    Rule(
        name="weighted-log",
        before="y * log(p), -p * log(p), p * (log(p) - log(q)), p * log(p / q), "
        "w * log(p / q) ** 2, w * abs(log(p)), matmul(y, log(p))",
        after="ops.xlogy(y, p); 0 where y is exactly 0, however small p is",
        fails_when="y and p are both 0, or p and q: 0 times -inf, or 0 / 0",
        reference="tfsafe.ops.xlogy",
        op_types=("Mul", "Einsum", *MATRIX_PRODUCTS),
        match=_match,
    ),
    Rule(
        name="weighted-lgamma",
        before="y * lgamma(x)",
        after="the same; 0 where y is exactly 0",
        fails_when="x is 0 or a negative whole number: 0 times infinity",
        reference="tfsafe.ops.xlogy",
        op_types=("Mul",),
        match=_match_lgamma,
    ),
)
