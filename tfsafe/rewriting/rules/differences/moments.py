"""The rule for covariances and variances that are differences of raw moments."""

from collections.abc import Iterable

import tensorflow as tf

from tfsafe import ops
from tfsafe.graph import SUMS
from tfsafe.ops.kernels.statistics.moments import covariance, mean_beside
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.match.arithmetic import Term, square_of, terms
from tfsafe.rewriting.match.reductions import Reduction, mean_of
from tfsafe.rewriting.rules import references

# Larger sums are not searched.
_MOST_TERMS = 6
_ROUNDED = 1e-6


def _match_moments(op: tf.Operation, reader: Reader) -> Build | None:
    found = terms(reader, op.outputs[0])
    if not 2 <= len(found) <= _MOST_TERMS:
        return None
    build = _difference(reader, found)
    # What is a difference by itself is replaced by itself.
    is_inside = build is not None and len(found) > 2 and _is_inside(reader, op)
    return None if is_inside else build


def _difference(reader: Reader, found: list[Term]) -> Build | None:
    for each in found:
        mean = mean_of(reader, each)
        others = [term for term in found if term is not each and mean is not None]
        for minus in others:
            rest = [term for term in others if term is not minus]
            build = None if mean is None else _moments(reader, mean, minus, rest)
            if build is not None:
                return build
    return None


def _is_inside(reader: Reader, op: tf.Operation) -> bool:
    return any(
        inner.type in SUMS and _match_moments(inner, reader) is not None
        for inner in map(reader.op, op.inputs)
    )


def _moments(
    reader: Reader, mean: tuple[float, Reduction], minus: Term, rest: list[Term]
) -> Build | None:
    """Reads `mean(x * y + ...) - mean(x) * mean(y)`, with any common factor."""
    pair = _factors(reader, minus.tensor)
    if pair is None:
        return None
    first, second = (_mean(reader, each) for each in pair)
    if first is None or second is None:
        return None
    factor, of_products = mean
    off = factor + minus.factor * first[0] * second[0]
    if abs(off) > _ROUNDED * abs(factor):
        return None
    x, y = first[1], second[1]
    if any(
        each.axes != of_products.axes or each.keepdims != of_products.keepdims
        for each in (x, y)
    ):
        return None
    inside = terms(reader, of_products.x)
    product = _product(reader, inside, x.x, y.x)
    if product is None:
        return None
    others = [term for term in inside if term is not product]
    return _built(reader, factor, (x, y), others, rest)


def _mean(reader: Reader, tensor: tf.Tensor) -> tuple[float, Reduction] | None:
    found = terms(reader, tensor)
    return mean_of(reader, found[0]) if len(found) == 1 else None


def _factors(reader: Reader, tensor: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor] | None:
    base = square_of(reader, tensor)
    if base is not None:
        return base, base
    op = reader.op(tensor)
    return (op.inputs[0], op.inputs[1]) if op.type == "Mul" else None


def _product(
    reader: Reader, inside: Iterable[Term], x: tf.Tensor, y: tf.Tensor
) -> Term | None:
    """Returns the term `x * y`, which broadcasts neither."""
    for term in inside:
        pair = _factors(reader, term.tensor)
        if pair is None or term.factor != 1:
            continue
        a, b = pair
        if a.shape.rank is None or a.shape.rank != b.shape.rank:
            continue
        if (reader.same(a, x) and reader.same(b, y)) or (
            reader.same(a, y) and reader.same(b, x)
        ):
            return term
    return None


def _built(
    reader: Reader,
    factor: float,
    means: tuple[Reduction, Reduction],
    others: list[Term],
    rest: list[Term],
) -> Build:
    x, y = means
    _, axes, keepdims = x
    is_variance = reader.same(x.x, y.x)

    # The rest of a sum of variances has their moments.
    more = _difference(reader, rest)

    def build(value: Value) -> tf.Tensor:
        if is_variance:
            total = ops.variance(value(x.x), axis=axes, keepdims=keepdims)
        else:
            total = covariance(value(x.x), value(y.x), axes, keepdims)
        for term in others:
            part = mean_beside(term.make(value), value(x.x), axes, keepdims)
            total = total + part
        total = total if factor == 1 else factor * total
        if more is not None:
            return total + more(value)
        for term in rest:
            total = total + term.make(value)
        return total

    return build


RULES = (
    Rule(
        name="covariance",
        before="mean(x * y) - mean(x) * mean(y), sum(x * x) - sum(x) ** 2 / n, "
        "mean(s + m * m) - mean(m) ** 2",
        after="mean((x - mean(x)) * (y - mean(y))), n * ops.variance(x), ...",
        fails_when="the means are much larger than the spread: no digit is left",
        reference=references.VARIANCE,
        op_types=SUMS,
        match=_match_moments,
    ),
)
