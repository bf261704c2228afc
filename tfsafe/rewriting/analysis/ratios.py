"""Divides one sum by another by the factors that they have in common.

Nothing is divided by the other sum itself, which may be 0.
"""

from collections.abc import Callable, Sequence

import tensorflow as tf

from tfsafe.rewriting.analysis.near_one import numbered
from tfsafe.rewriting.engine.rule import Build, Value
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.match.linear import Part, alike
from tfsafe.rewriting.match.products import Product, made

_CLOSE = 1e-6


def ratio_of(
    reader: Reader, first: Sequence[Part], second: Sequence[Part]
) -> Callable[[Value], tf.Tensor | float] | None:
    """Returns how to build one sum over another without a division by it."""
    if not first or not second:
        return None
    factor = _proportion(reader, first, second)
    if factor is not None:
        return lambda _: factor
    if any(each.tensor is None or each.axes is not None for each in first):
        return None
    products = [_product(reader, each) for each in first]
    if len(second) == 1:
        return _over_product(reader, products, second[0])
    common, rest = _common(reader, products)
    if not common.above and not common.below:
        return None
    left = [_part(each) for each in rest]
    reduced = [each for each in left if each is not None]
    factor = _proportion(reader, reduced, second) if len(reduced) == len(left) else None
    return None if factor is None else _times(factor, common)


def _times(factor: float, product: Product) -> Build:
    return lambda value: factor * made(product, value)


def _proportion(
    reader: Reader, first: Sequence[Part], second: Sequence[Part]
) -> float | None:
    if len(first) != len(second):
        return None
    factor = None
    for each in second:
        same = next((other for other in first if alike(reader, each, other)), None)
        if same is None:
            return None
        ratio = same.factor / each.factor
        if factor is not None and abs(ratio - factor) > _CLOSE * abs(factor):
            return None
        factor = ratio
    return factor


def _product(reader: Reader, part: Part) -> Product:
    if part.tensor is None:
        raise ValueError("A number is not a product.")
    found = numbered(reader, reader.op(part.tensor))
    if not found.above and not found.below:
        found = found._replace(above=[part.tensor])
    return found._replace(factor=found.factor * part.factor)


def _part(product: Product) -> Part | None:
    if product.below or len(product.above) > 1:
        return None
    return Part(product.factor, product.above[0] if product.above else None)


def _over_product(
    reader: Reader, products: Sequence[Product], part: Part
) -> Build | None:
    """Returns a sum of products over a product that has a factor of each."""
    if part.tensor is None or part.axes is not None:
        return None
    below = _product(reader, part)
    quotients = []
    for product in products:
        (common, (one, other)) = _common(reader, [product, below])
        if not common.above:
            return None
        quotients.append(
            Product(
                one.factor / other.factor,
                [*one.above, *other.below],
                [*one.below, *other.above],
                [],
                {},
            )
        )

    def build(value: Value) -> tf.Tensor:
        found = [
            made(each, value) if each.above or each.below else each.factor
            for each in quotients
        ]
        return sum(found[1:], found[0])

    return build


def _common(
    reader: Reader, products: Sequence[Product]
) -> tuple[Product, list[Product]]:
    """Takes the factors that all products have out of them."""
    above, left = _shared(reader, [each.above for each in products])
    below, right = _shared(reader, [each.below for each in products])
    rest = [
        each._replace(above=one, below=other)
        for each, one, other in zip(products, left, right, strict=True)
    ]
    return Product(1.0, above, below, [], {}), rest


def _shared(
    reader: Reader, tensors: Sequence[Sequence[tf.Tensor]]
) -> tuple[list[tf.Tensor], list[list[tf.Tensor]]]:
    """Returns the tensors that all lists have, and the lists without them."""
    shared, left = [], [list(each) for each in tensors]
    for tensor in tensors[0]:
        places = [
            next((i for i, x in enumerate(each) if reader.same(x, tensor)), None)
            for each in left
        ]
        if None not in places:
            shared.append(tensor)
            left = [
                [x for i, x in enumerate(each) if i != place]
                for each, place in zip(left, places, strict=True)
            ]
    return shared, left
