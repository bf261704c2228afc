"""The rules for quotients that have a limit where both sides are 0."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import tensorflow as tf

from tfsafe.graph import OpFact, op_types
from tfsafe.ops.kernels import removable
from tfsafe.ops.kernels.removable import Removable
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.finiteness import is_watched
from tfsafe.rewriting.facts.tensors import Reader, is_float
from tfsafe.rewriting.match.arithmetic import Term, root_of
from tfsafe.rewriting.match.layout import reshaped
from tfsafe.rewriting.match.products import (
    Product,
    factored,
    outermost,
    scaled,
    without,
)
from tfsafe.rewriting.match.quotients import is_reshaped, without_divisor
from tfsafe.rewriting.match.reductions import norm, squared_length
from tfsafe.rewriting.match.trees import Pattern, Tree, Trees, argument

_DIVISIONS = op_types(OpFact.DIVIDES)


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
    over_power: Removable
    inverse: Removable | None = None


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


class _Limit(NamedTuple):
    """What replaces some factors of a product.

    Attributes:
      build: Builds it.
      above: The factors of the numerator that it replaces.
      below: Those of the denominator.
    """

    build: Build
    above: tuple[tf.Tensor, ...]
    below: tuple[tf.Tensor, ...]


class _Memory(dict[str, tuple[int, Build | None]]):
    """By operation: how many divisors are removed, and how to build the result."""


class _Zero(NamedTuple):
    """A factor of a product that is 0 where its argument is.

    Attributes:
      tensor: The factor.
      vanishing: The function.
      sign: Of the function.
      term: Its argument.
      inside: The argument, a number times a tensor.
    """

    tensor: tf.Tensor
    vanishing: _Vanishing
    sign: int
    term: Term
    inside: Term

    def is_argument(self, reader: Reader, other: tf.Tensor) -> bool:
        """Returns whether a tensor is the argument, in the shape of the factor."""
        if reader.same(other, self.inside.tensor):
            return True
        is_shape = list(other.shape) == list(self.tensor.shape)
        return is_shape and is_reshaped(reader, other, self.inside.tensor)

    def build(
        self, reader: Reader, function: Removable, factor: float, power: int
    ) -> Build:
        """Returns how to build `factor * function(x) * x ** power`."""
        square = squared_length(reader, self.inside)

        def build(value: Value) -> tf.Tensor:
            if square is None or not function.is_even:
                x = self.term.make(value)
                made = function(x)
                for _ in range(power):
                    made *= x
            else:
                whole = square(value)
                made = function.of_length(whole)
                for _ in range(power // 2):
                    made *= whole
                made = tf.cast(made, self.tensor.dtype)
                if power % 2:
                    made *= self.term.make(value)
            if self.inside.tensor.shape.rank != self.tensor.shape.rank:
                made = tf.reshape(made, tf.shape(value(self.tensor)))
            return made if factor == 1 else factor * made

        return build


def _zero(reader: Reader, tensor: tf.Tensor) -> _Zero | None:
    for step in reshaped(reader, tensor):
        for each in _VANISHING:
            found = argument(reader, step, each.pattern)
            if found is not None:
                sign, term = found
                inside = scaled(reader, term.tensor, term.factor)
                return _Zero(tensor, each, sign, term, inside)
    return None


def _limits(reader: Reader, product: Product) -> Iterator[_Limit]:
    """Yields the factors of a product that have a limit together."""
    for places, others in (
        (product.above, product.below),
        (product.below, product.above),
    ):
        for tensor in places:
            zero = _zero(reader, tensor)
            if zero is not None:
                limit = _limit(reader, zero, others, places is product.above)
                if limit is not None:
                    yield limit
    for root in product.below:
        if norm(reader, root) is not None:
            yield from _squares(reader, root, product.above)
        for top in product.above:
            yield from _angle(reader, top, root)


def _squares(
    reader: Reader, root: tf.Tensor, above: Sequence[tf.Tensor]
) -> Iterator[_Limit]:
    """Yields a norm, or its square, that is divided by the norm."""
    op = reader.op(root)
    whole = [t for t in above if op.type == "Sqrt" and reader.same(t, op.inputs[0])]
    same = [t for t in above if reader.same(t, root)]
    if whole:
        yield _Limit(lambda value: value(root), (whole[0],), (root,))
    elif same and len(above) > 1:
        yield _Limit(lambda value: tf.ones_like(value(root)), (same[0],), (root,))


_SINE_OF_ACOS = ("Sqrt", ("Sub", 1, ("Square", "c")))


def _angle(reader: Reader, top: tf.Tensor, bottom: tf.Tensor) -> Iterator[_Limit]:
    """Yields an angle over its sine."""
    op = reader.op(top)
    if op.type == "Acos":
        c = op.inputs[0]
        found = argument(reader, bottom, _SINE_OF_ACOS)
        if found is None or found[1].factor != 1:
            return
        if reader.same(found[1].tensor, c):
            yield _Limit(_of_acos(c, 1.0), (top,), (bottom,))
    elif op.type == "Atan2" and reader.same(op.inputs[0], bottom):
        y, x = op.inputs
        square = squared_length(reader, Term(1.0, y))
        if square is not None:
            yield _Limit(
                lambda value: tf.cast(
                    removable.atan2_over_length(
                        square(value), tf.cast(value(x), square(value).dtype)
                    ),
                    x.dtype,
                ),
                (top,),
                (bottom,),
            )


def _limit(
    reader: Reader, zero: _Zero, others: Sequence[tf.Tensor], is_above: bool
) -> _Limit | None:
    vanishing, inside = zero.vanishing, zero.inside
    numbered = [(each, scaled(reader, each)) for each in others]
    same = [pair for pair in numbered if zero.is_argument(reader, pair[1].tensor)]
    if vanishing.order == 1:
        same = same[:1]
    if not same:
        return None
    alike, factor = tuple(each for each, _ in same), float(zero.sign)
    for _, other in same:
        ratio = inside.factor / other.factor
        factor *= ratio if is_above else 1 / ratio
    if is_above:
        if len(alike) > vanishing.order:
            return None
        power = vanishing.order - len(alike)
        build = zero.build(reader, vanishing.over_power, factor, power)
        return _Limit(build, (zero.tensor,), alike)
    if vanishing.inverse is None:
        return None
    build = zero.build(reader, vanishing.inverse, factor, 0)
    angle = reader.op(inside.tensor)
    is_sine = vanishing.inverse is removable.x_over_sin and inside.factor == 1
    is_shape = zero.tensor.shape.rank == inside.tensor.shape.rank
    if angle.type == "Acos" and is_sine and is_shape:
        build = _of_acos(angle.inputs[0], factor)
    return _Limit(build, alike, (zero.tensor,))


def _of_acos(c: tf.Tensor, factor: float) -> Build:
    return lambda value: factor * removable.acos_over_sine(value(c))


def _with_divisors(reader: Reader, product: Product) -> Product:
    """Takes divisors out of the factors of a product that vanishes with them.

    In `sin(t) * cross(v / t, p)` the divisor is inside another factor, and in
    `(1 - cos(t)) / (x * x + y * y)` it is the square of `t`.

    Args:
      reader: Reader of the graph.
      product: The product, whose lists are changed.

    Returns:
      The product.
    """
    zeros = [_zero(reader, each) for each in product.above]
    for zero in zeros:
        if zero is None:
            continue
        x = zero.inside.tensor
        shaped = x if x.shape.rank == zero.tensor.shape.rank else zero.tensor
        is_same = [
            each is not None and is_reshaped(reader, each.inside.tensor, x)
            for each in zeros
        ]
        room = sum(
            each.vanishing.order
            for each, same in zip(zeros, is_same, strict=True)
            if each is not None and same
        ) - sum(is_reshaped(reader, each, x) for each in product.below)
        inside = root_of(reader, x)
        for each in list(product.below):
            if room >= 2 and inside is not None and reader.same(each, inside):
                product.below.remove(each)
                product.below.extend([x, x])
                room -= 2
        for each in list(product.above):
            if not room or each.name in product.builds or each is zero.tensor:
                continue
            found = without_divisor(reader, each, x, shaped)
            if found is not None and found.degree <= room:
                product.builds[each.name] = found.build
                product.below.extend([x] * found.degree)
                room -= found.degree
    return product


def _read(reader: Reader, op: tf.Operation) -> tuple[int, Build | None]:
    memory = reader.memory.setdefault(_Memory, _Memory())
    if op.name not in memory:
        memory[op.name] = (0, None)
        memory[op.name] = _computed(reader, op)
    found: tuple[int, Build | None] = memory[op.name]
    return found


def _computed(reader: Reader, op: tf.Operation) -> tuple[int, Build | None]:
    product = _with_divisors(reader, factored(reader, op))
    if not product.below:
        return 0, None
    limits: list[_Limit] = []
    above, below = list(product.above), list(product.below)
    for limit in _limits(reader, product):
        left = without(above, limit.above), without(below, limit.below)
        if left[0] is not None and left[1] is not None:
            above, below = left[0], left[1]
            limits.append(limit)
    removed = len(product.below) - len(below)
    if removed <= sum(_read(reader, part)[0] for part in outermost(reader, product)):
        return removed, None

    def build(value: Value) -> tf.Tensor:
        made, *rest = [each.build(value) for each in limits]
        for each in (*rest, *(product.make(each, value) for each in above)):
            made = made * each
        for each in map(value, below):
            made = made / each
        return made if product.factor == 1 else product.factor * made

    return removed, build


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
