"""The rule for roots of means and of sums of powers."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import tensorflow as tf

from tfsafe import ops
from tfsafe.graph import DIVISIONS, SUMS
from tfsafe.ops.formulas.out_of_range.power_means import root_of_powers, root_of_sum
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.finiteness import is_watched
from tfsafe.rewriting.facts.tensors import Reader, both_ways
from tfsafe.rewriting.match.arithmetic import Term, number, terms
from tfsafe.rewriting.match.linear import Part, merged, parts
from tfsafe.rewriting.match.products import inverted, scaled
from tfsafe.rewriting.match.reductions import REDUCTIONS, Reduction, reduction

# Longer sums are not taken apart.
_MOST = 6
# How far the weights of float32 may be from adding up to 1.
_ROUNDED = 1e-6


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
    """Matches `(a * x ** p + b * y ** p + c) ** (1 / p)`; c is a number."""
    total, inverse = op.inputs
    found = terms(reader, total) if reader.op(total).type in SUMS else []
    if not 2 <= len(found) <= _MOST:
        return None
    read = [_weighted_power(reader, each) for each in found]
    powers = [each.power for each in read if each.power is not None]
    if not powers or any(not each.is_known() for each in read):
        return None
    order = powers[0].inputs[1]
    if not all(reader.same(order, each.inputs[1]) for each in powers):
        return None
    if number(reader, order, total) == 2:
        return None
    if not _are_inverse(reader, order, total, inverse, total):
        return None
    weights = [part for each in read for part in each.parts(reader)]
    one = merged(reader, [*weights, Part(-1.0, None)])
    is_mean = all(abs(each.factor) < _ROUNDED for each in one if each.tensor is None)
    is_mean &= all(each.tensor is None for each in one)

    def build(value: Value) -> tf.Tensor:
        bases = [1.0 if x.power is None else value(x.power.inputs[0]) for x in read]
        made = [each.make(value) for each in read]
        return root_of_sum(
            bases, made, value(total), value(order), value(inverse), is_mean
        )

    return build


class _Weighted(NamedTuple):
    """A number times a weight times a power; None for a weight or power of 1."""

    factor: float
    weight: tf.Tensor | None
    power: tf.Operation | None

    def is_known(self) -> bool:
        """Returns whether it is a power or a number."""
        return self.power is not None or self.weight is None

    def parts(self, reader: Reader) -> list[Part]:
        """Returns what the weight is the sum of."""
        if self.weight is None:
            return [Part(self.factor, None)]
        found = parts(reader, self.weight)
        return [each._replace(factor=self.factor * each.factor) for each in found]

    def make(self, value: Value) -> tf.Tensor | float:
        """Returns the weight in the graph that is made."""
        return self.factor * (1.0 if self.weight is None else value(self.weight))


def _weighted_power(reader: Reader, term: Term) -> _Weighted:
    op, known = reader.op(term.tensor), reader.scalar(term.tensor)
    if known is not None:
        return _Weighted(term.factor * known, None, None)
    if op.type == "Pow":
        return _Weighted(term.factor, None, op)
    for weight, power in both_ways(op, "Mul"):
        if reader.op(power).type == "Pow":
            return _Weighted(term.factor, weight, reader.op(power))
    return _Weighted(term.factor, term.tensor, None)


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
        "(a * x ** p + (1 - a) * y ** p) ** (1 / p), "
        "exp(log(mean(x ** p)) / p)",
        after="the same of x over its largest element, times that; near p = 0 a series",
        fails_when="the powers leave the range, and the root does not; p is near 0",
        reference="Radenovic et al., IEEE TPAMI 41(7), 2019, section 3.2: GeM pooling",
        op_types=("Exp", "Pow"),
        match=match,
    ),
)
