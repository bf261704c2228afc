"""Rules for likelihoods whose large terms cancel."""

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import tensorflow as tf

from tfsafe.graph import DIVISIONS, SUMS
from tfsafe.ops.formulas.differences.function_differences import (
    digamma_difference,
    digamma_less_of_sum,
)
from tfsafe.ops.formulas.differences.log_complements import (
    lgamma_difference,
    lgamma_of_sum,
    log_fraction,
)
from tfsafe.ops.formulas.out_of_range import bessel
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.finiteness import is_watched
from tfsafe.rewriting.facts.layouts import reshapes
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.log_space.operations.normal import tail_of
from tfsafe.rewriting.match.linear import Part, merged, minus, parts, total
from tfsafe.rewriting.match.products import Product, factored, without
from tfsafe.rewriting.match.reductions import lines_up
from tfsafe.rewriting.match.trees import Tree, Trees

_PART = ("Div", "x", ("Add", "x", "y"))
FRACTION = Trees(
    Tree(("Log", _PART), log_fraction),
    Tree(("Log", ("Sub", 1, _PART)), lambda x, y: log_fraction(y, x)),
)
# Longer sums are left alone: pairs are looked for among all terms.
_MOST = 12


class _Gamma(NamedTuple):
    """A term `factor * lgamma(x)`, or its sum over axes, and the parts of x."""

    part: Part
    x: tf.Tensor
    inside: list[Part]


class Anchor(NamedTuple):
    """A term `factor * digamma(x)`, perhaps inside a sum."""

    factor: tf.Tensor
    x: tf.Tensor


class _Group(NamedTuple):
    """Terms that cancel: `whole`, less `rests`; `steps` are whole less each rest."""

    whole: _Gamma
    rests: Sequence[_Gamma]
    steps: Sequence[list[Part]]

    def make(self, value: Value) -> tf.Tensor:
        """Builds the terms of the group."""
        whole, x = value(self.whole.x), value(self.rests[0].x)
        step = total(self.steps[0], value, x)
        if len(self.rests) == 1:
            return self.whole.part.scaled(lgamma_difference(x, step, whole))
        # The larger of the two is the one that the whole cancels with.
        y, other = value(self.rests[1].x), total(self.steps[1], value, x)
        is_first = x >= y
        difference = lgamma_difference(
            tf.where(is_first, x, y), tf.where(is_first, step, other), whole
        )
        smaller = tf.math.lgamma(tf.where(is_first, y, x))
        return self.whole.part.scaled(difference - smaller)


class _OfSum(NamedTuple):
    """The terms `lgamma(sum(x))`, the whole, and `-sum(lgamma(x))`, the rest."""

    whole: _Gamma
    rest: _Gamma

    @property
    def rests(self) -> Sequence[_Gamma]:
        """The terms but the whole."""
        return (self.rest,)

    def make(self, value: Value) -> tf.Tensor:
        """Builds the two terms."""
        part = self.rest.part
        (axis,) = part.axes or ()
        made = lgamma_of_sum(value(self.rest.x), axis, part.keepdims)
        factor = self.whole.part.factor
        return made if factor == 1 else factor * made


def _of_sums(reader: Reader, gammas: Sequence[_Gamma]) -> Iterator[_OfSum]:
    for whole, rest in itertools.permutations(gammas, 2):
        p, q = whole.part, rest.part
        if p.axes is not None or q.axes is None or p.factor != -q.factor:
            continue
        if len(q.axes) != 1:
            continue
        total = [Part(1.0, rest.x, q.axes, q.keepdims)]
        summed = [
            each._replace(axes=q.axes, keepdims=q.keepdims) for each in rest.inside
        ]
        for wanted in (total, summed):
            if _are_alike(reader, whole.inside, wanted):
                yield _OfSum(whole, rest)
                break


def _are_alike(reader: Reader, found: Sequence[Part], wanted: Sequence[Part]) -> bool:
    return all(each.tensor is not None for each in wanted) and not merged(
        reader, [*found, *minus(wanted)]
    )


def groups(
    reader: Reader, found: Sequence[Part], anchors: Sequence[Anchor] = ()
) -> tuple[Sequence[_Group | _OfSum], Sequence[Part]]:
    """Returns the terms of a sum that cancel with others, and the rest."""
    gammas = [each for each in map(lambda p: _gamma(reader, p), found) if each]
    # Last those without a factor that says which of them cancel.
    options: list[_Group | _OfSum] = [
        *_anchored(reader, gammas, anchors, wanted=True),
        *_candidates(reader, gammas),
        *_of_sums(reader, gammas),
        *_anchored(reader, gammas, anchors, wanted=False),
    ]
    chosen: list[_Group | _OfSum] = []
    for group in options:
        taken = [each for g in chosen for each in (g.whole, *g.rests)]
        if not any(each is t for each in (group.whole, *group.rests) for t in taken):
            chosen.append(group)
    used = [each.part for g in chosen for each in (g.whole, *g.rests)]
    rest = [each for each in found if not any(each is part for part in used)]
    return chosen, rest


def _anchored(
    reader: Reader,
    gammas: Sequence[_Gamma],
    anchors: Sequence[Anchor],
    *,
    wanted: bool,
) -> Iterator[_Group]:
    """Yields `lgamma(c) - lgamma(a)` of a sum with `(c - a) * digamma(a)`."""
    at = [
        (each, parts(reader, anchor.factor))
        for each in gammas
        for anchor in anchors
        if reader.same(each.x, anchor.x)
    ]
    free = [each for each in gammas if not any(each is rest for rest, _ in at)]
    for whole, (rest, factor) in itertools.product(free, at):
        if _are_opposite(whole, rest):
            step = _step(reader, whole, rest)
            both = factor, minus(factor)
            is_told = any(_are_alike(reader, step, each) for each in both)
            if is_told is wanted:
                yield _Group(whole, (rest,), [step])


def _match_lgamma(op: tf.Operation, reader: Reader) -> Build | None:
    if is_watched(reader, op):
        return None
    found = parts(reader, op.outputs[0])
    if not 2 <= len(found) <= _MOST:
        return None
    chosen, rest = groups(reader, found)
    if not chosen:
        return None

    def build(value: Value) -> tf.Tensor:
        whole = chosen[0].make(value)
        for group in chosen[1:]:
            whole += group.make(value)
        return whole + total(rest, value, whole) if rest else whole

    return build


def _gamma(reader: Reader, part: Part) -> _Gamma | None:
    if part.tensor is None or reader.op(part.tensor).type != "Lgamma":
        return None
    x = reader.op(part.tensor).inputs[0]
    return _Gamma(part, x, parts(reader, x))


def _are_opposite(a: _Gamma, b: _Gamma) -> bool:
    p, q = a.part, b.part
    is_alike = p.axes == q.axes and p.keepdims == q.keepdims
    if p.axes is not None and (
        a.x.shape.as_list() != b.x.shape.as_list() or None in a.x.shape.as_list()
    ):
        return False
    return is_alike and p.factor == -q.factor


def _step(reader: Reader, a: _Gamma, b: _Gamma) -> list[Part]:
    return merged(reader, [*a.inside, *minus(b.inside)])


def _candidates(reader: Reader, gammas: Sequence[_Gamma]) -> list[_Group]:
    """Returns groups, the best first: short steps, but triples before their pairs."""
    triples = list(_triples(reader, gammas))
    pairs = sorted(_pairs(reader, gammas), key=lambda each: len(each.steps[0]))
    first: list[_Group] = []
    second: list[_Group] = []
    for pair in pairs:
        is_part = any(_is_within(pair, triple) for triple in triples)
        is_short = len(_tensors(pair.steps[0])) < 2
        (first if is_short and not is_part else second).append(pair)
    return [*first, *triples, *second]


def _is_within(pair: _Group, triple: _Group) -> bool:
    """Returns whether both terms of a pair are of a triple."""
    terms = (triple.whole, *triple.rests)
    return all(
        any(each is term for term in terms) for each in (pair.whole, *pair.rests)
    )


def _triples(reader: Reader, gammas: Sequence[_Gamma]) -> Iterator[_Group]:
    """Yields terms whose arguments are `x + y + number`, `x` and `y`."""
    for whole in gammas:
        others = [each for each in gammas if _are_opposite(whole, each)]
        for a, b in itertools.combinations(others, 2):
            left = merged(reader, [*_step(reader, whole, a), *minus(b.inside)])
            if all(each.tensor is None for each in left):
                steps = [_step(reader, whole, a), _step(reader, whole, b)]
                yield _Group(whole, (a, b), steps)


def _pairs(reader: Reader, gammas: Sequence[_Gamma]) -> Iterator[_Group]:
    """Yields terms whose arguments have a tensor in common."""
    for whole in gammas:
        for rest in gammas:
            if not _are_opposite(whole, rest):
                continue
            step = _step(reader, whole, rest)
            common = len(_tensors(whole.inside)) + len(_tensors(rest.inside))
            # The longer argument is the whole one.
            is_longer = len(whole.inside) >= len(rest.inside)
            if len(_tensors(step)) < common and is_longer:
                yield _Group(whole, (rest,), [step])


def _tensors(found: Sequence[Part]) -> list[Part]:
    return [each for each in found if each.tensor is not None]


def _match_digamma(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `digamma(x + y) - digamma(x)` and `digamma(x) - digamma(sum(x))`."""
    found = parts(reader, op.outputs[0])
    if len(found) != 2 or is_watched(reader, op):
        return None
    for whole, rest in itertools.permutations(found):
        build = _digammas(reader, whole, rest)
        if build is not None:
            return build
    return None


def _digammas(reader: Reader, whole: Part, rest: Part) -> Build | None:
    if whole.tensor is None or rest.tensor is None or whole.factor != -rest.factor:
        return None
    if whole.axes is not None or rest.axes is not None:
        return None
    both = reader.op(whole.tensor), reader.op(rest.tensor)
    if any(each.type != "Digamma" for each in both):
        return None
    larger, x = (each.inputs[0] for each in both)
    axis = _axis_of_sum(reader, larger, x)
    if axis is not None:
        return lambda value: rest.scaled(digamma_less_of_sum(value(x), axis))
    step = merged(reader, [*parts(reader, larger), *minus(parts(reader, x))])
    own = [each for each in step if each.tensor is not None]
    shared = _tensors(parts(reader, larger)) + _tensors(parts(reader, x))
    if len(own) >= len(shared) or len(_tensors(parts(reader, x))) == 0:
        return None

    def build(value: Value) -> tf.Tensor:
        base = value(x)
        return whole.scaled(digamma_difference(base, total(step, value, base)))

    return build


def _axis_of_sum(reader: Reader, total: tf.Tensor, x: tf.Tensor) -> int | None:
    """Returns the axis along which `total` is the sum of x, in a shape that fits."""
    op = reader.op(total)
    while reshapes(reader, op):
        op = reader.op(op.inputs[0])
    if op.type != "Sum" or not reader.same(op.inputs[0], x) or x.shape.rank is None:
        return None
    axes = reader.axes(op.inputs[1], x.shape.rank)
    if axes is None or len(axes) != 1:
        return None
    is_one = x.shape.rank == 1 and total.shape.rank in {0, 1}
    return axes[0] if is_one or lines_up(total.shape, x.shape, axes) else None


def _match_tail(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `1 - erf(x)` and `1 - cdf(x)`, and their negatives."""
    found = tail_of(op, reader)
    if found is None or found[1] < 0:
        return None
    scale, _, x = found
    return lambda value: scale * tf.math.erfc(value(x))


_BESSEL = {("BesselI1", "BesselI0"), ("BesselI1e", "BesselI0e")}


def _match_bessel(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches a product with I1(x) and a divisor I0(x)."""
    if is_watched(reader, op):
        return None
    product = factored(reader, op)
    for top, bottom in itertools.product(product.above, product.below):
        i1, i0 = reader.op(top), reader.op(bottom)
        if (i1.type, i0.type) in _BESSEL and reader.same(i1.inputs[0], i0.inputs[0]):
            above = without(product.above, [top])
            below = without(product.below, [bottom])
            if above is not None and below is not None:
                rest = product._replace(above=above, below=below)
                return _times_bessel_ratio(i1.inputs[0], rest)
    return None


def _times_bessel_ratio(x: tf.Tensor, rest: Product) -> Build:
    def build(value: Value) -> tf.Tensor:
        made = bessel.bessel_ratio(value(x))
        for each in rest.above:
            made = value(each) * made
        for each in rest.below:
            made = made / value(each)
        return made if rest.factor == 1 else rest.factor * made

    return build


# Before the rules for exponentials: I0 alone may overflow.
RATIOS = (
    Rule(
        name="bessel-ratio",
        before="bessel_i1(x) / bessel_i0(x), x * bessel_i1(x) / bessel_i0(x)",
        after="bessel_i1e(x) / bessel_i0e(x), from 30 on its asymptotic series",
        fails_when="|x| is above 91; the slope cancels from 10 on",
        reference="Abramowitz and Stegun, Handbook of Mathematical Functions, 9.7.1",
        op_types=DIVISIONS | {"Mul"},
        match=_match_bessel,
    ),
)
RULES = (
    Rule(
        name="log-pochhammer",
        before="lgamma(x + y) - lgamma(x), lgamma(x) + lgamma(y) - lgamma(x + y), "
        "lgamma(sum(x)) - sum(lgamma(x)), lbeta(x)",
        after="ops.log_pochhammer(x, y), also less lgamma(y), y being the smaller",
        fails_when="x is much larger than y",
        reference="Abramowitz and Stegun, Handbook of Mathematical Functions, 6.1.40",
        op_types=SUMS,
        match=_match_lgamma,
    ),
    Rule(
        name="digamma-difference",
        before="digamma(x + y) - digamma(x), digamma(x) - digamma(sum(x))",
        after="the recurrence and the asymptotic series of the difference",
        fails_when="x is much larger than y: the difference cancels",
        reference="Abramowitz and Stegun, Handbook of Mathematical Functions, 6.3.18",
        op_types=SUMS,
        match=_match_digamma,
    ),
    Rule(
        name="log-of-fraction",
        before="log(x / (x + y)), log(1 - y / (x + y))",
        after="-ops.log1p(y / x) where y is small compared with x",
        fails_when="y is much smaller than x",
        reference="identity",
        match=FRACTION,
    ),
    Rule(
        name="tail-of-normal",
        before="1 - erf(x), 1 - 0.5 * (1 + erf(x)), erf(x) - 1",
        after="erfc(x), 0.5 * erfc(x), -erfc(x)",
        fails_when="x is above 3: the difference cancels",
        reference="identity",
        op_types=SUMS,
        match=_match_tail,
    ),
)
