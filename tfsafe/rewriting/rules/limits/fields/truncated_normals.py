"""Matches means of normal distributions that are cut off on both sides."""

from collections.abc import Iterator
from typing import NamedTuple

import tensorflow as tf

from tfsafe.graph import SUMS
from tfsafe.ops.formulas.limits.normal_hazards import mean_between
from tfsafe.rewriting.engine.rule import Build
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.match.arithmetic import Term
from tfsafe.rewriting.match.linear import Part, parts
from tfsafe.rewriting.match.products import scaled
from tfsafe.rewriting.rules.differences.hazards import ROUNDED, is_density
from tfsafe.rewriting.rules.limits.vanishing_functions import Limit


class _Limit(NamedTuple):
    """A number times the error function of a limit."""

    factor: float
    x: Term


def limits(reader: Reader, top: tf.Tensor, bottom: tf.Tensor) -> Iterator[Limit]:
    """Yields `(pdf(a) - pdf(b)) / (cdf(b) - cdf(a))`."""
    if reader.op(top).type not in SUMS or reader.op(bottom).type not in SUMS:
        return
    above, below = parts(reader, top), parts(reader, bottom)
    if not (_are_opposite(above) and _are_opposite(below)):
        return
    first, second = (_limit(reader, each) for each in below)
    if first is None or second is None:
        return
    for a, b in ((first, second), (second, first)):
        sides = zip(above, (a.x, b.x), strict=True)
        if all(is_density(reader, each.tensor, x) for each, x in sides):
            build = _between(a.x, b.x, above[0].factor / b.factor)
            yield Limit(build, (top,), (bottom,))


def _between(a: Term, b: Term, factor: float) -> Build:
    return lambda value: factor * mean_between(a.make(value), b.make(value))


def _are_opposite(found: list[Part]) -> bool:
    """Returns whether the parts of a sum are two whose factors cancel."""
    if len(found) != 2 or any(each.axes is not None for each in found):
        return False
    a, b = (each.factor for each in found)
    return abs(a + b) <= ROUNDED * abs(a)


def _limit(reader: Reader, part: Part) -> _Limit | None:
    op = None if part.tensor is None else reader.op(part.tensor)
    if op is None or op.type not in {"Erf", "Erfc"}:
        return None
    # The 1 in `erfc(x) = 1 - erf(x)` cancels with that of the other limit.
    sign = 1 if op.type == "Erf" else -1
    return _Limit(sign * part.factor, scaled(reader, op.inputs[0]))
