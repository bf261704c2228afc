"""Matches means of normal distributions that are cut off on both sides."""

from typing import NamedTuple

import tensorflow as tf

from tfsafe.ops.formulas.normal_hazards import mean_between
from tfsafe.rewriting.engine.rule import Build
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.match.arithmetic import Term
from tfsafe.rewriting.match.linear import Part, parts
from tfsafe.rewriting.match.near_one import numbered
from tfsafe.rewriting.match.products import scaled
from tfsafe.rewriting.rules.differences.hazards import ROUNDED, is_density


class _Limit(NamedTuple):
    """A number times the error function of a limit."""

    factor: float
    x: Term


def match(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `(pdf(a) - pdf(b)) / (cdf(b) - cdf(a))`."""
    quotient = numbered(reader, op)
    if len(quotient.above) != 1 or len(quotient.below) != 1:
        return None
    above, below = (parts(reader, each) for each in (*quotient.above, *quotient.below))
    limits = [_limit(reader, each) for each in below]
    if len(above) != 2 or len(limits) != 2 or not _are_opposite(above):
        return None
    first, second = limits
    if first is None or second is None or not _are_opposite(below):
        return None
    for a, b in ((first, second), (second, first)):
        if is_density(reader, above[0].tensor, a.x) and is_density(
            reader, above[1].tensor, b.x
        ):
            factor = quotient.factor * above[0].factor / b.factor
            return lambda value: factor * mean_between(a.x.make(value), b.x.make(value))
    return None


def _are_opposite(found: list[Part]) -> bool:
    a, b = (each.factor for each in found)
    return abs(a + b) <= ROUNDED * abs(a) and all(e.axes is None for e in found)


def _limit(reader: Reader, part: Part) -> _Limit | None:
    op = None if part.tensor is None else reader.op(part.tensor)
    if op is None or op.type not in {"Erf", "Erfc"}:
        return None
    # The 1 in `erfc(x) = 1 - erf(x)` cancels with that of the other limit.
    sign = 1 if op.type == "Erf" else -1
    return _Limit(sign * part.factor, scaled(reader, op.inputs[0]))
