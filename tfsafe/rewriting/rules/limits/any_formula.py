"""Rules for formulas of a few tensors that lose their digits at some point.

They know no formula: they try each on numbers. Where float32 loses the digits and
float64 does not, a formula is computed in float64; where it has a limit, as
`(exp(x) - 1 - x - x ** 2 / 2) / x ** 3` at 0, it is continued to there.
"""

import functools
import itertools
from collections.abc import Collection, Hashable, Sequence

import numpy as np
import tensorflow as tf

from tfsafe._limits import LIMITS
from tfsafe.graph import DIVISIONS, SUMS
from tfsafe.ops.formulas.limits import interpolation
from tfsafe.rewriting.analysis import candidates, holes, wider
from tfsafe.rewriting.analysis.elementwise import FUNCTIONS, Elementwise, elementwise
from tfsafe.rewriting.engine.rule import Build, Rule, Value, first
from tfsafe.rewriting.facts.finiteness import is_watched
from tfsafe.rewriting.facts.tensors import NARROW, Reader
from tfsafe.rewriting.match.arithmetic import square_of, terms
from tfsafe.rewriting.rules.in_float64 import Wide, is_made_wide

_REFERENCE = "Trefethen, Approximation Theory and Approximation Practice, 2013"
# What they make of 0 / 0 is settled, and no limit.
_SETTLED = frozenset({"fraction-of-zero"})
# What they make of a logarithm is right where its argument is far from 1.
_OUT_OF_RANGE = frozenset({"log-out-of-range", "root-of-sums"})
# How far from a point a formula is tried. Near a zero of a higher order float64 has
# digits further from it only.
_NEAR = 1e-3, 0.1
# Formulas that keep their digits, by their form: the layers of a model have the same
# ones, and so has the model when it is traced again.
_SOUND: set[Hashable] = set()
_MOST_SOUND = 4096
# Numbers below it are added to what a logarithm is taken of to keep that off 0.
_EPSILON = 1e-4
# It loses digits where it is off by more than this, and none where by less than that,
# in units of the last digit.
_LOSS, _KEPT = 168.0, 4.0


def _match(op: tf.Operation, reader: Reader, others: Sequence[Rule]) -> Build | None:
    whole = op.outputs[0]
    if whole.dtype not in NARROW or is_watched(reader, op):
        return None
    formula = elementwise(reader, whole)
    if formula is None:
        return None
    may_lose = _may_lose(formula, others)
    points = (tuple(candidates.points(reader, each)) for each in formula.leaves)
    form = may_lose, formula.form(), *points
    if form in _SOUND:
        return None
    loses = may_lose and _loses(formula)
    hole = holes.of(formula)
    if not loses and (hole is None or hole.is_lost):
        if len(_SOUND) == _MOST_SOUND:
            _SOUND.clear()
        _SOUND.add(form)
        return None
    # What other rules make of its parts counts as it will be.
    found = [(each, first(others, each.op, reader)) for each in formula.parts()[1:]]
    made = [(each, pair[0]) for each, pair in found if pair is not None]
    rounded = {each.name for each, _ in made}
    narrow = [each for each, rule in made if not is_made_wide(rule)]
    settled = {each.name for each, rule in made if rule.name in _SETTLED}
    is_open = hole is not None and not hole.is_lost
    if hole is None or not is_open or not holes.is_needed(formula, hole, rounded):
        if not loses or not _loses(formula, rounded):
            return None
        is_open = not _loses(formula, rounded, {each.name for each in narrow})
    if hole is None:
        return None if is_open else _built(formula.cut(narrow), None, others)
    # Around a hole, the parts are computed at other values of its variable.
    opened = [each for each in narrow if holes.depends(formula, each, hole)]
    if not is_open and (opened or not hole.is_lost):
        return _built(formula.cut(narrow), None, others)
    if any(
        (x.name in settled and holes.may_vanish_at(formula, x.op.inputs[0], hole))
        or holes.has_other(formula, x, hole)
        for x in opened
    ):
        return None
    names = {each.name for each in opened}
    narrow = [each for each in narrow if each.name not in names]
    return _built(formula.cut(narrow), hole, others)


def _may_lose(formula: Elementwise, others: Sequence[Rule]) -> bool:
    """Returns whether a formula may lose its digits by the form that it has.

    A sum may, and a logarithm that no other rule knows where its argument is near 1.
    """
    reader, whole = formula.reader, formula.whole.op
    if whole.type in SUMS:
        squares = [square_of(reader, x.tensor) for x in terms(reader, formula.whole)]
        # Those of tensors have a rule of their own.
        is_of_tensors = all(x is not None and formula.is_leaf(x) for x in squares)
        return not (is_of_tensors or _cancels_by_chance(formula, formula.whole))
    if whole.type != "Log" or _cancels_by_chance(formula, whole.inputs[0]):
        return False
    # One with an epsilon is as far off as that is.
    numbers = (reader.scalar(x.tensor) for x in terms(reader, whole.inputs[0]))
    if any(each is not None and abs(each) < _EPSILON for each in numbers):
        return False
    found = first(others, whole, reader)
    return found is None or found[0].name in _OUT_OF_RANGE


def _cancels_by_chance(formula: Elementwise, total: tf.Tensor) -> bool:
    """Returns whether a term of a sum is a tensor that the others do not depend on.

    Such as the offset of a batch normalisation: the sum is 0 wherever that tensor
    happens to be the rest, and has the digits that the tensor has.
    """
    found = [each.tensor for each in terms(formula.reader, total)]
    inside = [formula.leaves_of(each) for each in found]
    return any(
        formula.is_leaf(each)
        and own.isdisjoint(set().union(*inside[:i], *inside[i + 1 :]))
        for i, (each, own) in enumerate(zip(found, inside, strict=True))
    )


def _built(
    formula: Elementwise, hole: holes.Hole | None, others: Sequence[Rule]
) -> Build:
    known = [each for each in others if is_made_wide(each)]
    wide = Wide(formula.reader, known, more=FUNCTIONS, leaves=formula.leaves)

    def build(value: Value) -> tf.Tensor:
        if hole is not None:
            made = _continued(formula, hole, value, wide)
        else:
            made = wide.of(value)(formula.whole)
        return tf.cast(made, formula.whole.dtype)

    return build


def _loses(
    formula: Elementwise, rounded: Collection[str] = (), narrow: Collection[str] = ()
) -> bool:
    """Returns whether a formula loses digits near one of its zeros, float64 fewer."""
    return any(_loses_at(each, formula, rounded, narrow) for each in _NEAR)


@np.errstate(all="ignore")
def _loses_at(
    far_from: float,
    formula: Elementwise,
    rounded: Collection[str],
    narrow: Collection[str],
) -> bool:
    whole = formula.whole
    dtype = np.float32 if whole.dtype == tf.float32 else np.float16
    far, near = (
        {
            key: each.astype(dtype).astype(np.float64)
            for key, each in _trials(formula, distance).items()
        }
        for distance in (far_from, far_from / 64)
    )
    right, nearer = formula.at(far), formula.at(near)
    eps = LIMITS[whole.dtype.name].eps

    def is_lost(numbers: dict[int, np.ndarray], right: np.ndarray) -> np.ndarray:
        plain = formula.at(numbers, dtype, dict.fromkeys(rounded, dtype))
        better = formula.at(numbers, rounded=dict.fromkeys(narrow, dtype))
        off = np.abs(plain - right) / np.abs(right)
        still = np.abs(better - right) / np.abs(right)
        off = np.where(np.isfinite(off), off, np.inf)
        return (off > _LOSS * eps) & (still < _KEPT * eps)

    loses = (np.abs(nearer) < np.abs(right) / 32) & is_lost(far, right)
    if whole.op.type in SUMS:
        # Its terms outgrow it, as those of `(x + 1) * log(x + 1) - x * log(x)`.
        largest, larger = (_largest_term(formula, each) for each in (far, near))
        growth = larger / largest
        outgrown = (growth > 32) & (growth * np.abs(right) > 32 * np.abs(nearer))
        if outgrown.any():
            loses |= outgrown & is_lost(near, nearer)
    finite = np.isfinite(right)
    counts = finite.sum(-1)
    return bool(((2 * (loses & finite).sum(-1) > counts) & (counts > 0)).any())


def _largest_term(formula: Elementwise, numbers: dict[int, np.ndarray]) -> np.ndarray:
    """Returns the magnitude of the largest term of a sum."""
    reader = formula.reader
    found = terms(reader, formula.whole)
    made = [Elementwise(reader, each.tensor, formula.leaves) for each in found]
    return functools.reduce(
        np.maximum,
        [
            np.abs(each.factor * part.at(numbers))
            for each, part in zip(found, made, strict=True)
        ],
    )


def _trials(formula: Elementwise, distance: float) -> dict[int, np.ndarray]:
    """Returns numbers for the leaves: each far from, or near each of its points."""
    reader, leaves = formula.reader, formula.leaves
    states = []
    for leaf, draws in zip(leaves, holes.draws(formula), strict=True):
        near = distance * np.abs(draws)
        ways = [draws]
        for point in candidates.points(reader, leaf):
            sign = -1.0 if reader.bounds(leaf).high <= point else 1.0
            ways.append(point + sign * near)
        if np.isinf(reader.bounds(leaf).high):
            ways.append(draws / distance)
        states.append(ways)
    rows = [list(row) for row in itertools.product(*states)]
    for i, j in itertools.permutations(range(len(leaves)), 2):
        row = [each[0] for each in states]
        row[i] = row[j] * (1 + distance * np.abs(row[i]))
        if len(states[i]) > 1 and len(states[j]) > 1:
            rows.append(row)
    return {
        reader.number(leaf): np.stack([row[place] for row in rows])
        for place, leaf in enumerate(leaves)
    }


def _continued(
    formula: Elementwise, hole: holes.Hole, value: Value, wide: Wide
) -> tf.Tensor:
    """Builds the formula in float64."""
    reader, rank = formula.reader, formula.whole.shape.rank
    alike = candidates.multiples(formula, hole.variable)
    in_float64 = wide.of(value)

    def ranked(tensor: tf.Tensor) -> tf.Tensor:
        made = in_float64(tensor)
        return tf.reshape(
            made, tf.concat([[1] * (rank - made.shape.rank), tf.shape(made)], 0)
        )

    x = ranked(hole.variable)
    point: tf.Tensor = tf.constant(0.0, tf.float64)
    width = tf.constant(hole.width, tf.float64)
    if isinstance(hole.point, float):
        point += hole.point
    else:
        point = ranked(hole.point)
        width *= tf.abs(point)
    near = interpolation.is_near(x, point, width, hole.one_sided)
    # A leaf may be where the slope of a part is infinite: 0 times that is NaN.
    kept = {
        number: tf.where(near, ranked(leaf), tf.constant(other, tf.float64))
        for leaf, number, other in holes.stand_ins(formula, hole)
    }
    if not isinstance(hole.point, float):
        point = kept[reader.number(hole.point)]
        width = hole.width * tf.abs(point)

    def multiples(x: tf.Tensor) -> dict[int, tf.Tensor]:
        return {number: x if k == 1 else k * x for number, k in alike.items()}

    def at(x: tf.Tensor) -> tf.Tensor:
        made = kept | multiples(x)

        def compute(tensor: tf.Tensor) -> tf.Tensor:
            number = reader.number(tensor)
            if number not in made:
                source = reader.source(tensor)
                is_open = reader.constant(source) is None and not formula.is_leaf(
                    source
                )
                made[number] = (
                    wider.run(source.op, [compute(each) for each in source.op.inputs])
                    if is_open
                    else in_float64(source)
                )
            return made[number]

        return compute(formula.whole)

    return interpolation.continued(
        at,
        lambda away: wide.of(value, multiples(away))(formula.whole),
        x,
        point,
        width,
        near,
        hole.order,
        hole.one_sided,
    )


def rules(others: Sequence[Rule]) -> tuple[Rule, Rule]:
    """Returns the rules for formulas with a hole, and for sums that cancel.

    Args:
      others: Rules for parts of a formula.
    """
    match = functools.partial(_match, others=others)
    return (
        Rule(
            name="hole-in-formula",
            before="(exp(x) - 1 - x - x ** 2 / 2) / x ** 3, "
            "(1 - exp(n * (c - 1))) / (1 - c * exp(n * (c - 1))), and others of up to "
            "four tensors",
            after="the same, computed in float64; near the hole a polynomial through "
            "values around it",
            fails_when="the value is 0 / 0 and has a limit, as trials on numbers show",
            reference=_REFERENCE,
            op_types=DIVISIONS | {"Mul"},
            match=match,
        ),
        Rule(
            name="sum-that-cancels",
            before="1 - exp(-x) - x * exp(-x), 1 - c * exp(u), cosh(a) - cos(b), "
            "log((a + b) / sqrt(4 * a * b)), and others of up to four tensors",
            after="the same, computed in float64 and rounded once; near a zero of a "
            "higher order or a hole a polynomial through values around it",
            fails_when="the terms cancel, or a logarithm is taken near 1, as trials on "
            "numbers show",
            reference=_REFERENCE,
            op_types=SUMS | {"Log"},
            match=match,
        ),
    )
