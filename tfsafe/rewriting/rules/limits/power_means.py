"""The rule for roots of means and of sums of powers."""

from collections.abc import Callable, Iterator

import tensorflow as tf

from tfsafe import ops
from tfsafe.graph import DIVISIONS, SUMS
from tfsafe.ops.formulas.power_means import root_of_powers, root_of_sum
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.finiteness import is_watched
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.match.arithmetic import both_ways, number, terms
from tfsafe.rewriting.match.products import inverted, scaled
from tfsafe.rewriting.match.reductions import REDUCTIONS, Reduction, reduction

# Longer sums are not taken apart.
_MOST = 6


def match(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches a root of a mean or of a sum of powers."""
    if is_watched(reader, op):
        return None
    for total, inverse, is_divisor in _roots(op, reader):
        for name, reduce in REDUCTIONS.items():
            found = reduction(reader, total, name)
            power = None if found is None else reader.op(found.x)
            if found is None or power is None or power.type != "Pow":
                continue
            x, order = power.inputs
            # Norms have rules of their own.
            if op.type == "Pow" and _is_norm(reader, x, order):
                continue
            if is_divisor and _are_equal(reader, order, x, inverse, total):
                return _root(x, order, None, found, reduce)
            if not is_divisor and _are_inverse(reader, order, x, inverse, total):
                return _root(x, order, inverse, found, reduce)
    return _match_sum(op, reader) if op.type == "Pow" else None


def _match_sum(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `(a * x ** p + b * y ** p + c) ** (1 / p)` of numbers a, b and c."""
    total, inverse = op.inputs
    found = terms(reader, total) if reader.op(total).type in SUMS else []
    if not 2 <= len(found) <= _MOST:
        return None
    orders: list[tf.Tensor] = []
    bases: list[tf.Tensor | None] = []
    weights: list[float] = []
    for factor, tensor in found:
        power, known = reader.op(tensor), reader.scalar(tensor)
        if known is None and power.type != "Pow":
            return None
        weights.append(factor if known is None else factor * known)
        bases.append(power.inputs[0] if known is None else None)
        orders += [power.inputs[1]] if known is None else []
    if not orders or not all(reader.same(orders[0], each) for each in orders):
        return None
    order = orders[0]
    if number(reader, order, total) == 2:
        return None
    if not _are_inverse(reader, order, total, inverse, total):
        return None

    def build(value: Value) -> tf.Tensor:
        made = [1.0 if each is None else value(each) for each in bases]
        return root_of_sum(made, weights, value(total), value(order), value(inverse))

    return build


def _roots(
    op: tf.Operation, reader: Reader
) -> Iterator[tuple[tf.Tensor, tf.Tensor, bool]]:
    """Yields `t` and `q` of `t ** q`, and whether `1 / q` is meant."""
    if op.type == "Pow":
        yield op.inputs[0], op.inputs[1], False
        return
    inner = reader.op(op.inputs[0])
    pairs = [(*pair, False) for pair in both_ways(inner, "Mul")]
    if inner.type in DIVISIONS:
        pairs.append((*inner.inputs, True))
    for log, q, is_divisor in pairs:
        if reader.op(log).type == "Log":
            yield reader.op(log).inputs[0], q, is_divisor


def _is_norm(reader: Reader, x: tf.Tensor, order: tf.Tensor) -> bool:
    p = number(reader, order, x)
    return p == 2 or (p is not None and reader.op(x).type == "Abs")


def _are_equal(
    reader: Reader, p: tf.Tensor, x: tf.Tensor, q: tf.Tensor, total: tf.Tensor
) -> bool:
    first, second = number(reader, p, x), number(reader, q, total)
    return reader.same(p, q) or (first is not None and first == second)


def _are_inverse(
    reader: Reader, p: tf.Tensor, x: tf.Tensor, q: tf.Tensor, total: tf.Tensor
) -> bool:
    """Returns whether `p * q` is 1."""
    first, second = number(reader, p, x), number(reader, q, total)
    if first is not None and second is not None:
        return abs(first * second - 1) < 1e-6
    whole, inverse = scaled(reader, p), inverted(reader, reader.op(q))
    if inverse is None:
        return False
    divisor = scaled(reader, inverse.tensor)
    size = inverse.factor * whole.factor / divisor.factor
    return size == 1 and reader.same(divisor.tensor, whole.tensor)


def _root(
    x: tf.Tensor,
    order: tf.Tensor,
    inverse: tf.Tensor | None,
    found: Reduction,
    reduce: Callable[..., tf.Tensor],
) -> Build:
    is_mean = reduce is tf.reduce_mean

    def build(value: Value) -> tf.Tensor:
        p = value(order)
        q = ops.reciprocal(p) if inverse is None else value(inverse)
        return root_of_powers(
            value(x), p, q, found.axes, found.keepdims, reduce, is_mean
        )

    return build


RULES = (
    Rule(
        name="power-mean",
        before="mean(x ** p) ** (1 / p), sum(x ** p) ** (1 / p), "
        "(a * x ** p + b * y ** p + c) ** (1 / p), "
        "exp(log(mean(x ** p)) / p)",
        after="the same of x over its largest element, times that; near p = 0 a series",
        fails_when="the powers leave the range, and the root does not; p is near 0",
        reference="Radenovic et al., IEEE TPAMI 41(7), 2019, section 3.2: GeM pooling",
        op_types=("Exp", "Pow"),
        match=match,
    ),
)
