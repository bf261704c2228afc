"""Takes products and quotients apart into factors."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import tensorflow as tf

from tfsafe.graph import DIVISIONS, RECIPROCALS
from tfsafe.rewriting.engine.rule import Build, Value
from tfsafe.rewriting.facts.tensors import Reader, is_float
from tfsafe.rewriting.match.arithmetic import (
    Term,
    are_opposite,
    multiplied,
    negated,
    number,
)

# Longer products are not taken apart.
_MOST_FACTORS = 12


class Product(NamedTuple):
    """A number times the tensors of `above` over those of `below`.

    Attributes:
      factor: The number.
      above: Numerator.
      below: Denominator.
      parts: The quotients and products inside it.
      builds: By name, how to build some of the tensors: a divisor was taken out.
    """

    factor: float
    above: list[tf.Tensor]
    below: list[tf.Tensor]
    parts: list[tf.Operation]
    builds: dict[str, Build]

    def make(self, tensor: tf.Tensor, value: Value) -> tf.Tensor:
        """Returns a factor in the graph that is made."""
        build = self.builds.get(tensor.name)
        return value(tensor) if build is None else build(value)


def factored(
    reader: Reader, op: tf.Operation, wholes: Sequence[tf.Tensor] = ()
) -> Product:
    """Takes a product or quotient apart, products and quotients inside it too."""
    found = Product(1.0, [], [], [], {})
    is_minus = op.type == "Neg"
    factor = -1.0 if is_minus else 1.0
    queue = [(op.inputs[0], 1)] if is_minus else list(_sides(reader, op))
    while queue:
        tensor, side = queue.pop(0)
        count = len(found.above) + len(found.below) + len(queue)
        inner = reader.op(tensor)
        is_whole = any(
            reader.same(tensor, each) or are_opposite(reader, tensor, each)
            for each in wholes
        )
        inside = [] if is_whole else _inside(reader, tensor)
        minus = None if inside else negated(reader, tensor)
        if minus is not None:
            factor = -factor
            queue.append((minus, side))
        elif inside and count < _MOST_FACTORS:
            found.parts.append(inner)
            queue += [(each, side * inner_side) for each, inner_side in inside]
        else:
            (found.above if side > 0 else found.below).append(reader.source(tensor))
    return found._replace(factor=factor)


def _inside(reader: Reader, tensor: tf.Tensor) -> list[tuple[tf.Tensor, int]]:
    return list(_sides(reader, reader.op(tensor))) if is_float(tensor) else []


def _sides(reader: Reader, op: tf.Operation) -> Iterator[tuple[tf.Tensor, int]]:
    """Yields the factors of a product or quotient, and 1 or -1 for their side."""
    if op.type in DIVISIONS:
        yield op.inputs[0], 1
        yield op.inputs[1], -1
    elif op.type in RECIPROCALS:
        yield op.inputs[0], -1
    elif op.type == "Mul":
        yield from ((each, 1) for each in op.inputs)
    elif op.type == "Square":
        yield from ((op.inputs[0], 1) for _ in range(2))
    elif op.type == "Pow":
        power = number(reader, op.inputs[1], op.inputs[0])
        if power in {-3, -2, -1, 2, 3}:
            side = 1 if power > 0 else -1
            yield from ((op.inputs[0], side) for _ in range(abs(int(power))))


def inverted(reader: Reader, op: tf.Operation) -> Term | None:
    """Reads a number that is not 0 over x, as the number and x."""
    if op.type in RECIPROCALS:
        return Term(1.0, op.inputs[0])
    above = number(reader, *op.inputs) if op.type in DIVISIONS else None
    return Term(above, op.inputs[1]) if above else None


def scaled(reader: Reader, tensor: tf.Tensor, factor: float = 1.0) -> Term:
    """Reads `factor` times a tensor as a number times another, which may be a sum."""
    tensor = reader.source(tensor)
    while reader.constant(tensor) is None:
        found = multiplied(reader, reader.op(tensor))
        if found is None or not found.factor:
            break
        factor, tensor = factor * found.factor, reader.source(found.tensor)
    return Term(factor, tensor)


def made(product: Product, value: Value) -> tf.Tensor:
    """Returns a product in the graph that is made."""
    whole = None
    for each in product.above:
        x = product.make(each, value)
        whole = x if whole is None else whole * x
    for each in product.below:
        x = product.make(each, value)
        whole = 1 / x if whole is None else whole / x
    if whole is None:
        raise ValueError("A product of numbers alone has no dtype.")
    return whole if product.factor == 1 else product.factor * whole


def joined(reader: Reader, a: Product, b: Product) -> Product:
    """Multiplies two products; what is above and below goes."""
    above, below = [*a.above, *b.above], []
    for each in (*a.below, *b.below):
        place = next((i for i, x in enumerate(above) if reader.same(x, each)), None)
        if place is None:
            below.append(each)
        else:
            del above[place]
    return a._replace(factor=a.factor * b.factor, above=above, below=below)


def without(
    tensors: Sequence[tf.Tensor], dropped: Sequence[tf.Tensor]
) -> list[tf.Tensor] | None:
    """Returns tensors without some of them; None where one of these is missing."""
    left = list(tensors)
    for each in dropped:
        place = next((i for i, t in enumerate(left) if t is each), None)
        if place is None:
            return None
        del left[place]
    return left


def outermost(reader: Reader, product: Product) -> list[tf.Operation]:
    """Returns the products inside a product that are inside no other one."""
    # What is inside another part is counted by it.
    inner = {reader.op(each).name for part in product.parts for each in part.inputs}
    return [part for part in product.parts if part.name not in inner]
