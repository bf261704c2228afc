"""Rules for sums in float64: divergences and likelihoods with gamma functions."""

import functools
import itertools
import math
from collections.abc import Iterator, Sequence

import tensorflow as tf

from tfsafe.graph import DIVISIONS, SUMS, OpFact, op_types
from tfsafe.rewriting.analysis.elementwise import FUNCTIONS
from tfsafe.rewriting.analysis.near_one import numbered
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.finiteness import is_watched
from tfsafe.rewriting.facts.tensors import NARROW, Reader, both_ways
from tfsafe.rewriting.match.arithmetic import walk
from tfsafe.rewriting.match.linear import Part, parts, total
from tfsafe.rewriting.match.products import factored
from tfsafe.rewriting.rules.in_float64 import INSIDE, LOGARITHMS, Wide
from tfsafe.rewriting.rules.probability import likelihoods

_FACTORS = DIVISIONS | {"Mul", "Neg"}
_LAYOUTS = op_types(OpFact.RESHAPES) | {"BroadcastTo", "StridedSlice", "Transpose"}
_LOGARITHMS = frozenset({"Log", "Log1p", "Xlog1py", "Xlogy"})
# What is between a sum and the gamma functions in it.
_OUTSIDE = SUMS | _FACTORS | _LAYOUTS | {"Sum"}
# Longer sums and formulas are left alone.
_MOST, _DEPTH = 20, 12


def _anchors(
    reader: Reader, formula: Sequence[tf.Operation]
) -> Iterator[likelihoods.Anchor]:
    """Yields the products with a digamma function, or a sum of them."""
    for op in formula:
        for factor, x in both_ways(op, "Mul"):
            for each in (x, *reader.op(x).inputs):
                inner = reader.op(each)
                if inner.type == "Digamma":
                    yield likelihoods.Anchor(factor, inner.inputs[0])


def _match(
    op: tf.Operation, reader: Reader, others: Sequence[Rule] = ()
) -> Build | None:
    whole = op.outputs[0]
    if whole.dtype not in NARROW or is_watched(reader, op):
        return None
    found = parts(reader, whole)
    if not 2 <= len(found) <= _MOST:
        return None
    formula = [reader.op(each) for each, _ in walk(reader, whole, _OUTSIDE, _DEPTH)]
    types = {each.type for each in formula}
    if "Lgamma" not in types and not types >= {"Digamma", "Log"}:
        return None
    anchors = list(_anchors(reader, formula))
    groups, rest = likelihoods.groups(reader, found, anchors)
    if len(groups) == 1 and not rest:
        return None
    in_float64 = Wide(reader, others, rules=LOGARITHMS)

    def build(value: Value) -> tf.Tensor:
        wide = in_float64.of(value)
        made = [each.make(wide) for each in groups]
        if rest:
            like = tf.zeros([], tf.float64)
            made.append(total(rest, wide, like))
        return tf.cast(functools.reduce(tf.add, made), whole.dtype)

    return build


def _match_divergence(
    op: tf.Operation, reader: Reader, others: Sequence[Rule] = ()
) -> Build | None:
    """Matches a logarithm, a number, and terms that cancel it where it is least."""
    whole = op.outputs[0]
    found = parts(reader, whole) if whole.dtype in NARROW else []
    number = sum(each.factor for each in found if each.tensor is None)
    if not number or len(found) > _MOST or is_watched(reader, op):
        return None
    sizes: list[float] = []
    has_log = False
    for part in found:
        if part.tensor is None:
            continue
        if reader.op(part.tensor).type in _LOGARITHMS:
            has_log = True
            continue
        size = _size(reader, part, part.tensor)
        if size is None:
            return None
        sizes.append(size)
    if not has_log or _has_other_function(reader, found):
        return None
    if not (_adds_up(sizes, -number) or _touches_zero(reader, found, number)):
        return None
    formula = Wide(reader, others)

    def build(value: Value) -> tf.Tensor:
        like = tf.zeros([], tf.float64)
        return tf.cast(total(found, formula.of(value), like), whole.dtype)

    return build


def _has_other_function(reader: Reader, found: Sequence[Part]) -> bool:
    """Returns whether a part is as `x / tanh(x)`: another rule tries it on numbers."""
    inside: set[int] = set()
    functions: list[tf.Tensor] = []
    for part in found:
        if part.tensor is None:
            continue
        walked = list(walk(reader, part.tensor, INSIDE, _DEPTH))
        numbers = {reader.number(each) for each, _ in walked}
        if reader.op(part.tensor).type in _LOGARITHMS:
            inside |= numbers
            continue
        functions += [
            each
            for each, is_inside in walked
            if not is_inside
            and reader.op(each).type in FUNCTIONS
            and reader.number(reader.op(each).inputs[0]) in numbers
        ]
    return not inside.issuperset(map(reader.number, functions))


def _size(reader: Reader, part: Part, tensor: tf.Tensor) -> float | None:
    """Returns what a part is where all tensors that it multiplies are 1."""
    product = factored(reader, reader.op(tensor))
    above, below = (
        math.prod(filter(None, map(reader.scalar, side)))
        for side in (product.above, product.below)
    )
    number = product.factor * above / below
    axes = part.axes or ()
    terms = tf.TensorShape([tensor.shape[axis] for axis in axes]).num_elements()
    return None if terms is None else part.factor * number * terms


def _adds_up(sizes: Sequence[float], wanted: float) -> bool:
    """Returns whether some of the numbers add up to another."""
    return any(
        abs(sum(some) - wanted) <= 1e-6 * abs(wanted)
        for count in (1, 2, 3)
        for some in itertools.combinations(sizes, count)
    )


def _touches_zero(reader: Reader, found: Sequence[Part], number: float) -> bool:
    """Returns whether a term `a * x ** k`, a logarithm of `x` and a number vanish.

    They do at their extremum, as `log(c / x) + x ** 2 / (2 * c ** 2) - 0.5` at c.
    """
    logs: list[tuple[float, tf.Tensor]] = []
    powers: list[tuple[float, int, tf.Tensor]] = []
    for part in found:
        if part.tensor is None or part.axes is not None:
            continue
        op = reader.op(part.tensor)
        is_log = op.type == "Log"
        power = _power(reader, op.inputs[0] if is_log else part.tensor)
        if power is None:
            continue
        factor, order, x = power
        if not is_log:
            powers.append((part.factor * factor, order, x))
        elif factor > 0:
            logs.append((part.factor * order, x))
            number += part.factor * math.log(factor)
    return len(logs) == 1 and any(
        reader.same(x, logs[0][1]) and _extremum(a, k, logs[0][0], number)
        for a, k, x in powers
    )


def _power(reader: Reader, tensor: tf.Tensor) -> tuple[float, int, tf.Tensor] | None:
    """Reads `c * x ** k`; returns the numbers c and k, and x."""
    product = numbered(reader, reader.op(tensor))
    factors = product.above or product.below
    if not factors:
        return product.factor, 1, tensor
    is_one = all(reader.same(each, factors[0]) for each in factors)
    if not is_one or (product.above and product.below):
        return None
    return product.factor, len(product.above) - len(product.below), factors[0]


def _extremum(a: float, k: int, b: float, number: float) -> bool:
    """Returns whether `a * x ** k + b * log(x) + number` is 0 where it is least."""
    power = -b / (a * k)
    if power <= 0:
        return False
    terms = a * power, b / k * math.log(power), number
    return abs(sum(terms)) <= 1e-6 * max(map(abs, terms))


def divergence(others: Sequence[Rule]) -> Rule:
    """Returns the rule for divergences that vanish where two parameters are equal.

    Args:
      others: Rules for parts of the formula.
    """
    return Rule(
        name="divergence",
        before="log(a) - log(b) + b / a - 1, "
        "log(t / s) + (s ** 2 + (m - n) ** 2) / (2 * t ** 2) - 0.5",
        after="the same, computed in float64 and rounded once",
        fails_when="a is near b: no digit is left",
        reference="Kullback and Leibler, On Information and Sufficiency, 1951",
        op_types=SUMS,
        match=functools.partial(_match_divergence, others=others),
    )


def rule(others: Sequence[Rule]) -> Rule:
    """Returns the rule.

    Args:
      others: Rules for parts of the formula.
    """
    return Rule(
        name="gamma-functions",
        before="lgamma(b) - lgamma(a) - (b - a) * digamma(a), log(a) - digamma(a), "
        "y * log(r) - r - lgamma(y + 1)",
        after="the same, computed in float64 and rounded once",
        fails_when="the parameters are large: the terms are far larger than the sum",
        reference="Penny, KL-Divergences of Normal, Gamma, Dirichlet and Wishart "
        "densities, 2001",
        op_types=SUMS,
        match=functools.partial(_match, others=others),
    )
