"""Finds where an elementwise formula has no value or no digits, but a limit."""

from collections.abc import Collection, Iterator
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfsafe.graph import DIVISIONS, SUMS
from tfsafe.ops.formulas.limits import interpolation
from tfsafe.rewriting.analysis import candidates
from tfsafe.rewriting.analysis.elementwise import Elementwise, elementwise
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.match.arithmetic import root_of, terms
from tfsafe.rewriting.match.products import factored
from tfsafe.rewriting.match.reductions import norm

# What tensors are tried with: each column is one trial.
_DRAWS = np.array([
    [0.7310, 1.6180, 0.4142, 0.2113, -0.6180],
    [1.2720, 0.3679, 2.2361, 0.4714, 0.9015],
    [0.5671, 2.7183, 1.3247, 0.6306, -1.3028],
    [1.9021, 0.8346, 0.2895, 0.3489, 0.4427],
])
_WIDTHS = 10.0 ** -np.arange(0.0, 6.1, 0.25)
_MOST_ZEROS = 8
# A series that is smooth by as much, has an exact value.
_SMOOTH, _NONZERO = 1e-8, 1e-3
# Where a formula has lost more of its digits in float64, it is continued.
_NEAR, _LOSS = 1e-6, 1e-6
_FLAT = 1e-8
_PRODUCTS = DIVISIONS | {"Mul"}


class Hole(NamedTuple):
    """A point to which a formula is continued.

    Attributes:
      variable: The tensor that is at the point, a leaf or a product.
      point: The point, a number or another leaf.
      width: How far it is continued from there, relative to the leaf.
      order: Order of the zero there.
      one_sided: Whether the formula has values only above the point.
      is_lost: Whether it has a value there, and few digits near it.
    """

    variable: tf.Tensor
    point: float | tf.Tensor
    width: float
    order: int
    one_sided: bool
    is_lost: bool = False


def draws(formula: Elementwise) -> list[np.ndarray]:
    """Returns numbers to try the leaves with, within their bounds."""
    made = []
    for count, leaf in enumerate(formula.leaves):
        turn, row = divmod(count, len(_DRAWS))
        made.append(_within(formula.reader, leaf, np.roll(_DRAWS[row], turn)))
    return made


def _within(reader: Reader, tensor: tf.Tensor, row: np.ndarray) -> np.ndarray:
    low, high = reader.bounds(tensor)
    if np.isfinite(low) and np.isfinite(high):
        return low + (high - low) * np.abs(row) / (1 + np.abs(row))
    if np.isfinite(low):
        return low + np.abs(row)
    return high - np.abs(row) if np.isfinite(high) else row


def of(formula: Elementwise) -> Hole | None:
    """Returns where a formula is to be continued, or None."""
    if formula.whole.shape.rank is None:
        return None
    for variable, point in candidates.of(formula):
        found = _continued(formula, variable, point)
        if found is not None:
            return found
    return None


def _numbers(
    formula: Elementwise,
    variable: tf.Tensor,
    point: float | tf.Tensor,
    offsets: np.ndarray,
) -> dict[int, np.ndarray]:
    """Returns numbers for the leaves, and for the variable at some distances."""
    reader = formula.reader
    made = {
        reader.number(leaf): row
        for leaf, row in zip(formula.leaves, draws(formula), strict=True)
    }
    at, scale = point, 1.0
    if not isinstance(point, float):
        at = made[reader.number(point)]
        scale = np.abs(at)
    whole = at + np.asarray(offsets, float)[..., np.newaxis] * scale
    whole = np.broadcast_to(whole, (*np.shape(offsets), _DRAWS.shape[1]))
    factors = candidates.multiples(formula, variable)
    return made | {number: k * whole for number, k in factors.items()}


def vanishes(reader: Reader, tensor: tf.Tensor, order: int) -> bool:
    """Returns whether a formula has a zero of an order, or of a higher one."""
    formula = elementwise(reader, tensor)
    return formula is not None and any(
        _smooth(formula, *each, order) is not None for each in candidates.of(formula)
    )


def has_deep_hole(reader: Reader, op: tf.Operation) -> bool:
    """Returns whether there is a hole where divisors of a term have a double zero."""
    is_known = op.type in _PRODUCTS or op.type in SUMS
    formula = elementwise(reader, op.outputs[0]) if is_known else None
    if formula is None or formula.whole.shape.rank is None:
        return False
    products = [factored(reader, op)]
    if op.type in SUMS:
        found = [each.tensor for each in terms(reader, op.outputs[0])]
        products = [factored(reader, reader.op(each)) for each in found]
    divisors = [
        [Elementwise(reader, each, formula.leaves) for each in product.below]
        for product in products
    ]
    for variable, point in candidates.of(formula):
        zeros = [
            [_smooth(each, variable, point) for each in below] for below in divisors
        ]
        orders = [sum(each.order for each in row if each is not None) for row in zeros]
        if max(orders, default=0) >= 2:
            hole = _continued(formula, variable, point)
            if hole is not None and not hole.is_lost:
                return True
    return False


def is_of_root(reader: Reader, op: tf.Operation) -> bool:
    """Returns whether a quotient by a root is smooth in what the root is taken of.

    Such as `sin(sqrt(k) * d) / sqrt(k)` in k; a norm is a variable by itself. Formulas
    in float64 have no other rule.
    """
    if op.outputs[0].dtype == tf.float64:
        return False
    below = factored(reader, op).below if op.type in _PRODUCTS else []
    roots = [root_of(reader, x) for x in below if norm(reader, x) is None]
    inside = [each for each in roots if each is not None]
    formula = elementwise(reader, op.outputs[0]) if inside else None
    if formula is None or formula.whole.shape.rank is None:
        return False
    for variable, point in candidates.of(formula):
        if (
            isinstance(point, float)
            and point == 0
            and any(reader.same(variable, each) for each in inside)
        ):
            hole = _continued(formula, variable, point)
            return hole is not None and not hole.is_lost
    return False


@np.errstate(all="ignore")
def _continued(
    formula: Elementwise, variable: tf.Tensor, point: float | tf.Tensor
) -> Hole | None:
    exact = formula.at(_numbers(formula, variable, point, np.array([0.0, _NEAR, 1.0])))
    exact = np.broadcast_to(exact, (3, _DRAWS.shape[1]))
    is_hole = not np.isfinite(exact[0]).any()
    # Above that, float64 has its digits: a zero of the first order is larger.
    if not is_hole and not (np.abs(exact[1]) < _FLAT * np.abs(exact[2])).any():
        return None
    found = _smooth(formula, variable, point, 0 if is_hole else 2)
    if found is None or is_hole:
        return found
    is_lost = _is_lost(formula, found, exact[1])
    return found._replace(is_lost=True) if is_lost else None


@np.errstate(all="ignore")
def _smooth(
    formula: Elementwise,
    variable: tf.Tensor,
    point: float | tf.Tensor,
    least: int = 0,
) -> Hole | None:
    """Returns how a formula is continued to a point around which it is smooth.

    Args:
      formula: The formula.
      variable: What is near the point.
      point: Where the formula may have no value.
      least: Least order of its zero there.
    """
    for one_sided in (False, True):
        fits: list[tuple[float, int]] = []
        for width in _WIDTHS:
            order = _order(formula, variable, point, width, one_sided, least)
            if order is not None:
                fits.append((width, order))
        if fits:
            order = fits[0][1]
            widths = [width for width, each in fits if each == order]
            width = widths[len(widths) // 4]
            return Hole(variable, point, float(width), order, one_sided)
    return None


def _series(
    formula: Elementwise,
    variable: tf.Tensor,
    point: float | tf.Tensor,
    width: float,
    one_sided: bool,
) -> tuple[np.ndarray, np.ndarray]:
    offsets = width * interpolation.nodes(one_sided)
    values = formula.at(_numbers(formula, variable, point, offsets))
    return np.broadcast_to(values, (len(offsets), _DRAWS.shape[1])), offsets


def _order(
    formula: Elementwise,
    variable: tf.Tensor,
    point: float | tf.Tensor,
    width: float,
    one_sided: bool,
    least: int,
) -> int | None:
    """Returns the order of the zero at the point; None unless smooth around it."""
    values, offsets = _series(formula, variable, point, width, one_sided)
    values = values[:, np.isfinite(values).all(0)]
    if not values.size or not np.abs(values).max():
        return None
    for order in range(least, _MOST_ZEROS + 1):
        series = interpolation.coefficients(one_sided) @ (
            values / offsets[:, np.newaxis] ** order
        )
        sizes = np.abs(series)
        largest = sizes.max(0)
        # One with a zero of a high order is mostly that power of the offset.
        if (sizes[-1] + sizes[-2] > _SMOOTH * largest).any():
            continue
        at_point = interpolation.polynomial(series, -1.0 if one_sided else 0.0)
        if (np.abs(at_point) > _NONZERO * largest).any():
            return order
    return None


@np.errstate(all="ignore")
def _is_lost(formula: Elementwise, found: Hole, exact: np.ndarray) -> bool:
    """Returns whether float64 has few digits near the point."""
    if found.width < _NEAR:
        return False
    variable, point, width, order, one_sided, _ = found
    values, offsets = _series(formula, variable, point, width, one_sided)
    values = np.where(np.isfinite(values), values, 0)
    powers = offsets[:, np.newaxis] ** order
    series = interpolation.coefficients(one_sided) @ (values / powers)
    right = interpolation.polynomial(series, _NEAR / width - one_sided) * _NEAR**order
    off = np.abs(right - exact) > _LOSS * np.abs(right)
    known = np.isfinite(exact) & (right != 0)
    return bool(known.any() and off[known].all())


@np.errstate(all="ignore")
def stand_ins(
    formula: Elementwise, hole: Hole
) -> Iterator[tuple[tf.Tensor, int, float]]:
    """Yields leaves, their numbers, and what to try them with around a hole."""
    values, _ = _series(formula, *hole[:3], hole.one_sided)
    column = np.isfinite(values).all(0).argmax()
    for leaf, row in zip(formula.leaves, draws(formula), strict=False):
        yield leaf, formula.reader.number(leaf), float(row[column])


@np.errstate(all="ignore")
def is_needed(formula: Elementwise, hole: Hole, made: Collection[str]) -> bool:
    """Returns whether the formula has no value even where its parts have theirs.

    Args:
      formula: The formula.
      hole: Where it has no value.
      made: The names of the parts that rules make; those with a limit have it.
    """
    reader = formula.reader
    numbers, near, nearer = (
        _numbers(formula, hole.variable, hole.point, np.asarray(each))
        for each in (0.0, 1e-4, 1e-5)
    )
    for part in formula.parts()[1:]:
        if part.name in made and reader.number(part) not in numbers:
            inner = Elementwise(reader, part, formula.leaves)
            if np.isfinite(inner.at(numbers)).any():
                continue
            sides = inner.at(near), inner.at(nearer)
            if not (np.abs(sides[1]) > 2 * np.abs(sides[0])).any():
                numbers[reader.number(part)] = sides[1]
    return not np.isfinite(formula.at(numbers)).any()


def depends(formula: Elementwise, part: tf.Tensor, hole: Hole) -> bool:
    """Returns whether a part of a formula changes with the variable of a hole."""
    own = formula.leaves_of(hole.variable)
    return not own.isdisjoint(formula.leaves_of(part))


@np.errstate(all="ignore")
def may_vanish_at(formula: Elementwise, part: tf.Tensor, hole: Hole) -> bool:
    """Returns whether a part of a formula is 0 at a hole, or is another variable."""
    at = _numbers(formula, hole.variable, hole.point, np.zeros([]))
    inner = Elementwise(formula.reader, part, formula.leaves)
    return not depends(formula, part, hole) or not inner.at(at).any()


@np.errstate(all="ignore")
def has_other(formula: Elementwise, part: tf.Tensor, hole: Hole) -> bool:
    """Returns whether a part of a formula has no value at another point, either."""
    inner, own = Elementwise(formula.reader, part, formula.leaves), hole.point
    variables = formula.leaves_of(hole.variable)
    for leaf, point in candidates.at_leaves(formula):
        is_inside = formula.reader.number(leaf) in variables
        is_same = point is own or (
            isinstance(point, float) and isinstance(own, float) and point == own
        )
        if not (is_inside and is_same):
            at = _numbers(formula, leaf, point, np.zeros([]))
            if not np.isfinite(inner.at(at)).any():
                return True
    return False
