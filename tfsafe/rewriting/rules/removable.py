"""The rules for quotients that have a limit where both sides are 0."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import tensorflow as tf

from tfsafe.graph import OpFact, op_types
from tfsafe.ops.kernels import removable
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.finiteness import is_watched
from tfsafe.rewriting.facts.tensors import Reader, is_float
from tfsafe.rewriting.match.arithmetic import Term, negated, number, terms
from tfsafe.rewriting.match.reductions import norm
from tfsafe.rewriting.match.trees import Pattern, Tree, Trees, argument

_DIVISIONS = op_types(OpFact.DIVIDES)
_INVERSIONS = op_types(OpFact.INVERTS)
# Longer products are not taken apart.
_MOST_FACTORS = 12


class _Vanishing(NamedTuple):
    """A function that is 0 at 0.

    Attributes:
      pattern: The function.
      order: Of its zero.
      over_power: The function over that power of its argument.
      inverse: 1 over that, for order 1.
    """

    pattern: Pattern
    order: int
    over_power: removable.Function
    inverse: removable.Function | None = None


_VANISHING = (
    _Vanishing(("Sin", "x"), 1, removable.sin_over_x, removable.x_over_sin),
    _Vanishing(("Tan", "x"), 1, removable.tan_over_x, removable.x_over_tan),
    _Vanishing(("Sinh", "x"), 1, removable.sinh_over_x, removable.x_over_sinh),
    _Vanishing(("Tanh", "x"), 1, removable.tanh_over_x, removable.x_over_tanh),
    _Vanishing(("Asin", "x"), 1, removable.asin_over_x, removable.x_over_asin),
    _Vanishing(("Asinh", "x"), 1, removable.asinh_over_x, removable.x_over_asinh),
    _Vanishing(("Atan", "x"), 1, removable.atan_over_x, removable.x_over_atan),
    _Vanishing(("Atanh", "x"), 1, removable.atanh_over_x, removable.x_over_atanh),
    _Vanishing(("Expm1", "x"), 1, removable.expm1_over_x, removable.x_over_expm1),
    _Vanishing(
        ("Sub", ("Exp", "x"), 1), 1, removable.expm1_over_x, removable.x_over_expm1
    ),
    _Vanishing(("Log1p", "x"), 1, removable.log1p_over_x, removable.x_over_log1p),
    _Vanishing(
        ("Log", ("Add", 1, "x")), 1, removable.log1p_over_x, removable.x_over_log1p
    ),
    _Vanishing(("Sub", 1, ("Cos", "x")), 2, removable.one_minus_cos_over_square),
    _Vanishing(("Sub", "x", ("Sin", "x")), 3, removable.x_minus_sin_over_cube),
)


class _Product(NamedTuple):
    """A number times the tensors of `above` over those of `below`.

    Attributes:
      factor: The number.
      above: Numerator.
      below: Denominator.
      parts: The quotients and products inside it.
    """

    factor: float
    above: list[tf.Tensor]
    below: list[tf.Tensor]
    parts: list[tf.Operation]


class _Limit(NamedTuple):
    """What replaces some factors of a product."""

    factor: float
    function: removable.Function
    argument: Term
    power: int
    above: tuple[tf.Tensor, ...]
    below: tuple[tf.Tensor, ...]

    def make(self, value: Value) -> tf.Tensor:
        x = self.argument.make(value)
        made = self.function(x)
        for _ in range(self.power):
            made *= x
        return made if self.factor == 1 else self.factor * made


class _Memory(dict[str, tuple[int, Build | None]]):
    """By operation: how many divisors are removed, and how to build the result."""


def _product(reader: Reader, op: tf.Operation) -> _Product:
    found = _Product(1.0, [], [], [])
    factor = 1.0
    queue = [(tensor, side) for tensor, side in _sides(reader, op)]
    while queue:
        tensor, side = queue.pop(0)
        inner = reader.op(tensor)
        inside = list(_sides(reader, inner)) if is_float(tensor) else []
        minus = None if inside else negated(reader, tensor)
        if minus is not None:
            factor = -factor
            queue.append((minus, side))
        elif inside and len(found.above) + len(found.below) < _MOST_FACTORS:
            found.parts.append(inner)
            queue += [(each, side * inner_side) for each, inner_side in inside]
        else:
            (found.above if side > 0 else found.below).append(reader.source(tensor))
    return found._replace(factor=factor)


def _sides(reader: Reader, op: tf.Operation) -> Iterator[tuple[tf.Tensor, int]]:
    """Yields the factors of a product or quotient, and 1 or -1 for their side."""
    if op.type in _DIVISIONS:
        yield op.inputs[0], 1
        yield op.inputs[1], -1
    elif op.type in _INVERSIONS:
        yield op.inputs[0], -1
    elif op.type == "Mul":
        yield from ((each, 1) for each in op.inputs)
    elif op.type == "Square":
        yield from ((op.inputs[0], 1) for _ in range(2))
    elif op.type == "Pow":
        power = number(reader, op.inputs[1], op.inputs[0])
        if power in {2, 3}:
            yield from ((op.inputs[0], 1) for _ in range(int(power)))


def _scaled(reader: Reader, tensor: tf.Tensor, factor: float = 1.0) -> Term:
    found = terms(reader, tensor)
    if len(found) == 1 and found[0].factor:
        return Term(factor * found[0].factor, found[0].tensor)
    return Term(factor, reader.source(tensor))


def _limits(reader: Reader, product: _Product) -> Iterator[_Limit]:
    """Yields the factors of a product that have a limit together."""
    for places, others in (
        (product.above, product.below),
        (product.below, product.above),
    ):
        for tensor in places:
            for each in _VANISHING:
                found = argument(reader, tensor, each.pattern)
                if found is not None:
                    is_above = places is product.above
                    limit = _limit(reader, each, tensor, found, others, is_above)
                    if limit is not None:
                        yield limit
                    break
    for root in product.below:
        if norm(reader, root) is not None:
            yield from _squares(reader, root, product.above)


def _squares(
    reader: Reader, root: tf.Tensor, above: Sequence[tf.Tensor]
) -> Iterator[_Limit]:
    """Yields the square of a norm that is divided by the norm."""
    op, one = reader.op(root), Term(1.0, root)
    whole = [t for t in above if op.type == "Sqrt" and reader.same(t, op.inputs[0])]
    same = [t for t in above if reader.same(t, root)]
    if whole:
        yield _Limit(1.0, tf.identity, one, 0, (whole[0],), (root,))
    elif len(same) >= 2:
        yield _Limit(1.0, tf.ones_like, one, 0, (same[0],), (root,))


def _limit(
    reader: Reader,
    vanishing: _Vanishing,
    tensor: tf.Tensor,
    found: tuple[int, Term],
    others: Sequence[tf.Tensor],
    is_above: bool,
) -> _Limit | None:
    sign, term = found
    inside = _scaled(reader, term.tensor, term.factor)
    scaled = [(each, _scaled(reader, each)) for each in others]
    same = [pair for pair in scaled if reader.same(pair[1].tensor, inside.tensor)]
    if vanishing.order == 1:
        same = same[:1]
    if not same:
        return None
    alike, factor = tuple(each for each, _ in same), float(sign)
    for _, other in same:
        ratio = inside.factor / other.factor
        factor *= ratio if is_above else 1 / ratio
    if is_above:
        if len(alike) > vanishing.order:
            return None
        power = vanishing.order - len(alike)
        return _Limit(factor, vanishing.over_power, term, power, (tensor,), alike)
    if vanishing.inverse is None:
        return None
    return _Limit(factor, vanishing.inverse, term, 0, alike, (tensor,))


def _without(
    tensors: Sequence[tf.Tensor], dropped: Sequence[tf.Tensor]
) -> list[tf.Tensor] | None:
    left = list(tensors)
    for each in dropped:
        place = next((i for i, t in enumerate(left) if t is each), None)
        if place is None:
            return None
        del left[place]
    return left


def _read(reader: Reader, op: tf.Operation) -> tuple[int, Build | None]:
    memory = reader.memory.setdefault(_Memory, _Memory())
    if op.name not in memory:
        memory[op.name] = (0, None)
        memory[op.name] = _computed(reader, op)
    found: tuple[int, Build | None] = memory[op.name]
    return found


def _computed(reader: Reader, op: tf.Operation) -> tuple[int, Build | None]:
    product = _product(reader, op)
    if not product.below:
        return 0, None
    limits: list[_Limit] = []
    above, below = list(product.above), list(product.below)
    for limit in _limits(reader, product):
        left = _without(above, limit.above), _without(below, limit.below)
        if left[0] is not None and left[1] is not None:
            above, below = left[0], left[1]
            limits.append(limit)
    removed = len(product.below) - len(below)
    if removed <= sum(_read(reader, part)[0] for part in _outermost(reader, product)):
        return removed, None

    def build(value: Value) -> tf.Tensor:
        made, *rest = [each.make(value) for each in limits]
        for each in (*rest, *map(value, above)):
            made = made * each
        for each in map(value, below):
            made = made / each
        return made if product.factor == 1 else product.factor * made

    return removed, build


def _outermost(reader: Reader, product: _Product) -> list[tf.Operation]:
    # What is inside another part is counted by it.
    inner = {reader.op(each).name for part in product.parts for each in part.inputs}
    return [part for part in product.parts if part.name not in inner]


_TREES = Trees(
    Tree(
        ("Sub", ("Div", 1, ("Tanh", "x")), ("Div", 1, "x")),
        removable.coth_minus_inverse,
    ),
    Tree(
        ("Sub", ("Reciprocal", ("Tanh", "x")), ("Reciprocal", "x")),
        removable.coth_minus_inverse,
    ),
    Tree(
        ("Sub", ("Div", ("Cosh", "x"), ("Sinh", "x")), ("Div", 1, "x")),
        removable.coth_minus_inverse,
    ),
    Tree(
        ("Sub", ("Div", ("Cosh", "x"), ("Sinh", "x")), ("Reciprocal", "x")),
        removable.coth_minus_inverse,
    ),
)


def _match(op: tf.Operation, reader: Reader) -> Build | None:
    if not is_float(op.outputs[0]) or is_watched(reader, op):
        return None
    if op.type in _TREES.op_types:
        return _TREES(op, reader)
    return _read(reader, op)[1]


RULES = (
    Rule(
        name="removable-singularity",
        before="sin(x) / x, (1 - cos(x)) / x ** 2, tanh(x) / x, x / expm1(x), ...",
        after="the same; near 0 the power series",
        fails_when="x = 0: the value is 0 / 0; x is near 0: the derivatives cancel",
        reference="Taylor series of the quotient",
        op_types=(*_DIVISIONS, "Mul", *_TREES.op_types),
        match=_match,
    ),
)
