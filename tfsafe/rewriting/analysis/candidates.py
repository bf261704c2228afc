"""Chooses the points at which a formula is looked at for a limit."""

from collections.abc import Iterator

import tensorflow as tf

from tfsafe.rewriting.analysis.elementwise import Elementwise
from tfsafe.rewriting.analysis.near_one import numbered
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.match.arithmetic import beside_number

_POINTS = (0.0, 1.0)
_PARTS = frozenset({"Div", "Mul", "Neg", "RealDiv", "Square"})


def points(reader: Reader, tensor: tf.Tensor) -> list[float]:
    """Returns the numbers that a tensor may be near: none of a mask or of counts."""
    op = reader.op(tensor)
    if reader.is_mask(tensor) or (op.type == "Cast" and op.inputs[0].dtype.is_integer):
        return []
    low, high = reader.bounds(tensor)
    return [each for each in _POINTS if low <= each <= high]


def of(formula: Elementwise) -> Iterator[tuple[tf.Tensor, float | tf.Tensor]]:
    """Yields leaves or products of them, with a number or another leaf to be at."""
    for part in formula.parts()[1:]:
        if _is_product(formula, part):
            alike = multiples(formula, part)
            rest = formula.leaves_of(formula.whole, alike)
            if formula.leaves_of(part).isdisjoint(rest):
                yield part, 0.0
    yield from at_leaves(formula)
    yield from _at_roots(formula)


def multiples(formula: Elementwise, variable: tf.Tensor) -> dict[int, float]:
    """Returns which parts are a variable times a number, by number, and that number."""
    reader = formula.reader
    if formula.is_leaf(variable):
        return {reader.number(variable): 1.0}
    factor, kind = _kind(reader, variable)
    products = (each for each in formula.parts() if _is_product(formula, each))
    found = ((each, *_kind(reader, each)) for each in products)
    return {reader.number(x): k / factor for x, k, same in found if same == kind}


def _kind(reader: Reader, tensor: tf.Tensor) -> tuple[float, tuple[list[int], ...]]:
    """Returns the number in a product, and the rest of it."""
    product = numbered(reader, reader.op(tensor))
    above, below = (
        sorted(map(reader.number, side)) for side in (product.above, product.below)
    )
    return product.factor, (above, below)


def at_leaves(
    formula: Elementwise,
) -> Iterator[tuple[tf.Tensor, float | tf.Tensor]]:
    """Yields leaves, with a number or another leaf to be at."""
    reader = formula.reader
    for leaf in formula.leaves:
        for point in points(reader, leaf):
            yield leaf, point
    for leaf in formula.leaves:
        for other in formula.leaves:
            if leaf is not other and points(reader, leaf) and points(reader, other):
                yield leaf, other


def _at_roots(formula: Elementwise) -> Iterator[tuple[tf.Tensor, float]]:
    """Yields leaves with the number c at which a part such as `2 * x - 1` is 0."""
    reader, seen = formula.reader, set()
    leaves = {reader.number(leaf): leaf for leaf in formula.leaves}
    for part in formula.parts():
        for x, number in beside_number(reader, part):
            leaf = leaves.get(reader.number(x.tensor))
            root = -number / x.factor if x.factor else 0.0
            if leaf is None or (leaf.name, root) in seen or root in _POINTS:
                continue
            low, high = reader.bounds(leaf)
            if low < root < high and points(reader, leaf):
                seen.add((leaf.name, root))
                yield leaf, root


def _is_product(formula: Elementwise, tensor: tf.Tensor) -> bool:
    """Returns whether a tensor is a product or a quotient of leaves."""
    reader = formula.reader
    if formula.is_leaf(tensor) or reader.constant(tensor) is not None:
        return True
    op = reader.op(tensor)
    return op.type in _PARTS and all(_is_product(formula, each) for each in op.inputs)
