"""The rules for quotients that have a limit where both sides are 0."""

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import tensorflow as tf

from tfsafe.graph import OpFact, op_types
from tfsafe.ops.kernels import limits, removable
from tfsafe.ops.kernels.removable import Removable
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.finiteness import is_watched
from tfsafe.rewriting.facts.tensors import Reader, is_float
from tfsafe.rewriting.match.arithmetic import Term, number, root_of
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
from tfsafe.rewriting.match.trees import Pattern, argument

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
    _Vanishing(("Erf", "x"), 1, removable.erf_over_x, removable.x_over_erf),
    _Vanishing(("BesselJ1", "x"), 1, removable.bessel_j1_over_x),
    _Vanishing(("BesselI1", "x"), 1, removable.bessel_i1_over_x),
    _Vanishing(("Sub", 1, ("Cos", "x")), 2, removable.one_minus_cos_over_square),
    _Vanishing(("Sub", "x", ("Sin", "x")), 3, removable.x_minus_sin_over_cube),
    _Vanishing(
        ("Sub", ("Sin", "x"), ("Mul", "x", ("Cos", "x"))), 3, removable.sine_moment
    ),
    _Vanishing(
        ("Sub", ("Mul", "x", ("Cosh", "x")), ("Sinh", "x")), 3, removable.sinh_moment
    ),
    _Vanishing(
        ("Sub", ("Log1p", "x"), ("Div", "x", ("Add", 1, "x"))),
        2,
        removable.log1p_moment,
    ),
    _Vanishing(
        ("Sub", ("Log", ("Add", 1, "x")), ("Div", "x", ("Add", 1, "x"))),
        2,
        removable.log1p_moment,
    ),
    _Vanishing(
        ("Sub", ("Exp", "x"), ("Exp", ("Neg", "x"))),
        1,
        removable.two_sinh_over_x,
        removable.x_over_two_sinh,
    ),
    _Vanishing(("Sub", "x", ("Tanh", "x")), 3, removable.x_minus_tanh_over_cube),
    _Vanishing(
        ("Sub", 1, ("Div", ("Sin", "x"), "x")), 2, removable.one_minus_sinc_over_square
    ),
    _Vanishing(
        ("Sub", ("Exp", "x"), 1, "x"), 2, removable.exp_minus_tangent_over_square
    ),
    _Vanishing(
        ("Sub", ("Expm1", "x"), "x"), 2, removable.exp_minus_tangent_over_square
    ),
    _Vanishing(("Sub", "x", ("Log1p", "x")), 2, removable.x_minus_log1p_over_square),
    _Vanishing(
        ("Sub", "x", ("Log", ("Add", 1, "x"))), 2, removable.x_minus_log1p_over_square
    ),
)
# Nearer to 0, a quotient of two functions, or by a factor of the argument, is a series.
_NEAR = 0.5
_PRODUCTS = frozenset({*_DIVISIONS, "Mul"})


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
    for top, bottom in itertools.product(product.above, product.below):
        yield from _power_over_order(reader, top, bottom)
    for root in product.below:
        if norm(reader, root) is not None:
            yield from _squares(reader, root, product.above)
        for top in product.above:
            yield from _angle(reader, top, root)


def _power_over_order(
    reader: Reader, top: tf.Tensor, bottom: tf.Tensor
) -> Iterator[_Limit]:
    """Yields `(x ** k - 1) / k`."""
    op = reader.op(top)
    for place, sign in ((0, 1), (1, -1)) if op.type == "Sub" else ():
        power, one = reader.op(op.inputs[place]), op.inputs[1 - place]
        if power.type != "Pow" or number(reader, one, op.inputs[place]) != 1:
            continue
        x, k = power.inputs
        order, other = scaled(reader, k), scaled(reader, bottom)
        if reader.constant(k) is None and reader.same(order.tensor, other.tensor):
            factor = sign * order.factor / other.factor
            yield _Limit(_of_power(x, k, factor), (top,), (bottom,))


def _of_power(x: tf.Tensor, k: tf.Tensor, factor: float) -> Build:
    return lambda value: factor * limits.power_minus_one_over(value(x), value(k))


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
        return _part_of_argument(reader, zero, others, is_above) or _ratio(
            reader, zero, others, is_above
        )
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


def _part_of_argument(
    reader: Reader, zero: _Zero, others: Sequence[tf.Tensor], is_above: bool
) -> _Limit | None:
    """Returns the limit of `f(a * b) / a` or of `a / f(a * b)`."""
    vanishing, op = zero.vanishing, reader.op(zero.inside.tensor)
    function = vanishing.over_power if is_above else vanishing.inverse
    if vanishing.order != 1 or function is None or op.type not in _PRODUCTS:
        return None
    inside = factored(reader, op)
    for other in others:
        a = scaled(reader, other)
        for place, each in enumerate(inside.above):
            if reader.same(a.tensor, each) and not inside.builds:
                rest = [*inside.above[:place], *inside.above[place + 1 :]]
                factor = zero.inside.factor * inside.factor / a.factor * zero.sign
                rest_of = inside._replace(factor=factor, above=rest)
                return _of_part(zero, other, rest_of, function, is_above)
    return None


def _of_part(
    zero: _Zero, other: tf.Tensor, rest: Product, function: Removable, is_above: bool
) -> _Limit:
    def build(value: Value) -> tf.Tensor:
        x = zero.term.make(value)
        near = tf.abs(x) < _NEAR
        ratio = tf.constant(rest.factor, x.dtype)
        for each in rest.above:
            ratio *= _kept(near, value(each))
        for each in rest.below:
            ratio /= _kept(near, value(each))
        made = function(tf.where(near, x, tf.zeros_like(x)))
        made = made * ratio if is_above else made / ratio
        return _near_or_plain(near, made, zero.tensor, other, is_above, value)

    above, below = (zero.tensor,), (other,)
    return _Limit(build, above, below) if is_above else _Limit(build, below, above)


def _ratio(
    reader: Reader, zero: _Zero, others: Sequence[tf.Tensor], is_above: bool
) -> _Limit | None:
    """Returns the limit of `f(a * x) / g(b * x)`."""
    if not is_above or zero.vanishing.order != 1:
        return None
    for other in others:
        below = _zero(reader, other)
        if below is None or below.vanishing.inverse is None:
            continue
        if reader.same(zero.inside.tensor, below.inside.tensor):
            return _of_two(zero, below, below.vanishing.inverse)
    return None


def _of_two(zero: _Zero, below: _Zero, inverse: Removable) -> _Limit:
    factor = zero.sign * below.sign * zero.inside.factor / below.inside.factor

    def build(value: Value) -> tf.Tensor:
        x, y = zero.term.make(value), below.term.make(value)
        near = (tf.abs(x) < _NEAR) & (tf.abs(y) < _NEAR)
        nothing = tf.zeros_like(x)
        made = zero.vanishing.over_power(tf.where(near, x, nothing))
        made *= factor * inverse(tf.where(near, y, nothing))
        return _near_or_plain(near, made, zero.tensor, below.tensor, True, value)

    return _Limit(build, (zero.tensor,), (below.tensor,))


def _kept(condition: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    return tf.where(condition, x, tf.ones([], x.dtype))


def _near_or_plain(
    near: tf.Tensor,
    made: tf.Tensor,
    zero: tf.Tensor,
    other: tf.Tensor,
    is_above: bool,
    value: Value,
) -> tf.Tensor:
    """Selects between a limit and the quotient as it is written."""
    far = tf.logical_not(near)
    a, b = _kept(far, value(zero)), _kept(far, value(other))
    return tf.where(near, made, a / b if is_above else b / a)


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
    product = factored(reader, op)
    zeros = [_zero(reader, each) for each in (*product.above, *product.below)]
    wholes = [
        each.inside.tensor
        for each in zeros
        if each is not None and reader.op(each.inside.tensor).type in _PRODUCTS
    ]
    if wholes:
        product = factored(reader, op, wholes)
    product = _with_divisors(reader, product)
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


def _match(op: tf.Operation, reader: Reader) -> Build | None:
    if not is_float(op.outputs[0]) or is_watched(reader, op):
        return None
    return _read(reader, op)[1]


RULES = (
    Rule(
        name="removable-singularity",
        before="sin(x) / x, (1 - cos(x)) / x ** 2, tanh(x) / x, x / expm1(x), ...",
        after="the same; near 0 the power series",
        fails_when="x = 0: the value is 0 / 0; x is near 0: the derivatives cancel",
        reference="Taylor series of the quotient",
        op_types=(*_DIVISIONS, "Mul"),
        match=_match,
    ),
)
