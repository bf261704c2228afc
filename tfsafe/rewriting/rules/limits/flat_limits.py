"""The rule for formulas that an exponential makes 0 where a factor is infinite."""

from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from tfsafe.graph import DIVISIONS
from tfsafe.ops.formulas.limits import quotients
from tfsafe.rewriting.analysis import candidates, holes
from tfsafe.rewriting.analysis.elementwise import Elementwise, elementwise
from tfsafe.rewriting.analysis.wider import run
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.finiteness import is_watched
from tfsafe.rewriting.facts.tensors import Reader

# How near each point a formula is tried, and how much smaller it has to be there.
_DISTANCES = {0.0: (1e-16, 1e-64), 1.0: (1e-15,)}
_SMALL = 1e-3


def _match(op: tf.Operation, reader: Reader) -> Build | None:
    whole = op.outputs[0]
    if whole.dtype not in {tf.float32, tf.float64} or is_watched(reader, op):
        return None
    formula = elementwise(reader, whole)
    if formula is None or all(x.op.type != "Exp" for x in formula.parts()):
        return None
    found = list(_flat(formula))
    return _zero_at(op, found) if found else None


def _flat(formula: Elementwise) -> Iterator[tuple[tf.Tensor, float]]:
    """Yields the leaves and points at which a formula has no value and all limits 0."""
    for leaf in formula.leaves:
        for point in candidates.points(formula.reader, leaf):
            is_flat = all(
                (np.abs(_near(formula, leaf, point, each)) < _SMALL * each).all()
                for each in _DISTANCES[point]
            )
            if is_flat and np.isnan(_near(formula, leaf, point, 0.0)).all():
                yield leaf, point


def _near(
    formula: Elementwise, leaf: tf.Tensor, point: float, distance: float
) -> np.ndarray:
    """Computes a formula with numbers, one leaf being near a point."""
    reader, draws = formula.reader, holes.draws(formula)
    return formula.at({
        reader.number(each): np.full_like(row, abs(point - distance))
        if each is leaf
        else row
        for each, row in zip(formula.leaves, draws, strict=True)
    })


def _zero_at(op: tf.Operation, found: list[tuple[tf.Tensor, float]]) -> Build:
    def build(value: Value) -> tf.Tensor:
        near = [_is_near(value(leaf), point) for leaf, point in found]
        sides = [value(each) for each in op.inputs]
        return quotients.zero_where_lost(lambda *x: run(op, x), sides, near)

    return build


def _is_near(x: tf.Tensor, point: float) -> tf.Tensor:
    """Returns whether a tensor is near a point, between 0 and 1."""
    distance = tf.abs(x - point)
    return (x >= 0) & (x <= 1) & (distance < _DISTANCES[point][0])


RULES = (
    Rule(
        name="flat-limit",
        before="exp(-log(x) ** 2) / x, exp(-1 / x) * x ** -1.5",
        after="the same, 0 at x = 0",
        fails_when="x is 0: the value is 0 / 0 or 0 times infinity",
        reference="an exponential vanishes faster than any power",
        op_types=DIVISIONS | {"Mul"},
        match=_match,
    ),
)
