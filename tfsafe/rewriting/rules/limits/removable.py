"""The rules for quotients that have a limit where both sides are 0."""

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import tensorflow as tf

from tfsafe import ops
from tfsafe.graph import DIVISIONS, SUMS
from tfsafe.ops.formulas import unchanged_values
from tfsafe.ops.formulas.limits import quotients as limits, removable
from tfsafe.ops.formulas.limits.removable import Removable
from tfsafe.rewriting.analysis import holes, wider
from tfsafe.rewriting.analysis.near_one import by_change, numbered
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.finiteness import is_watched
from tfsafe.rewriting.facts.tensors import Reader, both_ways
from tfsafe.rewriting.match.arithmetic import Term, are_opposite, number, root_of
from tfsafe.rewriting.match.products import (
    Product,
    outermost,
    scaled,
    without,
)
from tfsafe.rewriting.match.quotients import is_reshaped, without_divisor
from tfsafe.rewriting.match.reductions import is_square_of, squared_length
from tfsafe.rewriting.match.trees import argument
from tfsafe.rewriting.rules.limits import divided_differences, removable_pairs, steps
from tfsafe.rewriting.rules.limits.fields import truncated_normals
from tfsafe.rewriting.rules.limits.parts_of_arguments import (
    NEAR,
    near_or_plain,
    part_of_argument,
)
from tfsafe.rewriting.rules.limits.vanishing_functions import Limit, Zero, zero_of

_PRODUCTS = DIVISIONS | {"Mul"}
# Arguments that stay whole where a product is taken apart.
_WHOLES = _PRODUCTS | {"Pow", "Square"}


class _Read(NamedTuple):
    """What is known of a product.

    Attributes:
      removed: How many divisors are removed.
      is_whole: Whether these are all that it has.
      build: How to build the product; None where a factor removes them.
    """

    removed: int = 0
    is_whole: bool = False
    build: Build | None = None


class _Memory(dict[str, _Read]):
    """By operation."""


def _limits(reader: Reader, product: Product) -> Iterator[Limit]:
    """Yields the factors of a product that have a limit together."""
    yield from removable_pairs.over_less_one(reader, product)
    for places, others in (
        (product.above, product.below),
        (product.below, product.above),
    ):
        for tensor in places:
            zero = zero_of(reader, tensor)
            if zero is not None:
                limit = _limit(reader, zero, others, places is product.above)
                if limit is not None:
                    yield limit
    for top, bottom in itertools.product(product.above, product.below):
        yield from removable_pairs.power_over_order(reader, top, bottom)
        yield from removable_pairs.raised_cosine(reader, top, bottom)
        yield from divided_differences.limits(reader, top, bottom)
        yield from truncated_normals.limits(reader, top, bottom)
    for root in product.below:
        yield from removable_pairs.squares(reader, root, product.above)
        for top in product.above:
            yield from _angle(reader, top, root)
    yield from removable_pairs.cancelled(reader, product)


# By the inverse function: the sine of its value, and the function over that.
_SINES = {
    "Acos": (("Sqrt", ("Sub", 1, ("Square", "c"))), removable.acos_over_sine),
    "Acosh": (("Sqrt", ("Sub", ("Square", "c"), 1)), removable.acosh_over_sine),
}


def _angle(reader: Reader, top: tf.Tensor, bottom: tf.Tensor) -> Iterator[Limit]:
    """Yields an angle over its sine."""
    op = reader.op(top)
    if op.type in _SINES:
        c, (sine, function) = op.inputs[0], _SINES[op.type]
        found = argument(reader, bottom, sine)
        if found is None or found[1].factor != 1:
            return
        if reader.same(found[1].tensor, c):
            yield Limit(lambda value: function(value(c)), (top,), (bottom,))
    elif op.type == "Atan2" and reader.same(op.inputs[0], bottom):
        y, x = op.inputs
        square = squared_length(reader, Term(1.0, y))
        if square is not None:

            def build(value: Value) -> tf.Tensor:
                whole = square(value)
                in_range = tf.math.is_finite(whole)
                whole = tf.where(in_range, whole, tf.ones_like(whole))
                side, along = value(y), value(x)
                below = tf.cast(along, whole.dtype)
                made = removable.atan2_over_length(whole, below)
                made = tf.cast(made, along.dtype)
                # Elsewhere by the length itself, whose square is out of range.
                one = tf.ones([], along.dtype)
                side, along = (tf.where(in_range, one, each) for each in (side, along))
                far = unchanged_values.divide(ops.atan2(side, along), side)
                return tf.where(in_range, made, far)

            yield Limit(build, (top,), (bottom,))


def _limit(
    reader: Reader, zero: Zero, others: Sequence[tf.Tensor], is_above: bool
) -> Limit | None:
    vanishing, inside = zero.vanishing, zero.inside
    numbered = [(each, _scaled_like(reader, each, inside.tensor)) for each in others]
    same = [pair for pair in numbered if zero.is_argument(reader, pair[1].tensor)]
    if vanishing.order == 1:
        same = same[:1]
    if not same:
        return (
            part_of_argument(reader, zero, others, is_above)
            or _ratio(reader, zero, others, is_above)
            or _of_function(reader, zero, others, is_above)
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
        return Limit(build, (zero.tensor,), alike)
    if vanishing.inverse is None:
        return None
    build = zero.build(reader, vanishing.inverse, factor, 0)
    angle = reader.op(inside.tensor)
    is_sine = vanishing.inverse is removable.x_over_sin and inside.factor == 1
    is_shape = zero.tensor.shape.rank == inside.tensor.shape.rank
    if angle.type == "Acos" and is_sine and is_shape:
        build = _of_acos(angle.inputs[0], factor)
    return Limit(build, alike, (zero.tensor,))


def _scaled_like(reader: Reader, tensor: tf.Tensor, x: tf.Tensor) -> Term:
    """Reads a tensor as a number times another; as one times x, where it is `-x`."""
    found = scaled(reader, tensor)
    if are_opposite(reader, found.tensor, x):
        return Term(-found.factor, x)
    return found


def _of_function(
    reader: Reader, zero: Zero, others: Sequence[tf.Tensor], is_above: bool
) -> Limit | None:
    """Returns the limit of `f(a * g(x)) / x`, such as `tanh(3 * atanh(x)) / x`."""
    if not is_above or zero.vanishing.order != 1:
        return None
    for other in others:
        inner = _over(reader, zero.inside.tensor, scaled(reader, other))
        if inner is not None:
            return Limit(_outside(zero, inner), (zero.tensor,), (other,))
    return None


def _outside(zero: Zero, inner: Build) -> Build:
    factor = zero.sign * zero.inside.factor

    def build(value: Value) -> tf.Tensor:
        outer = zero.vanishing.over_power(zero.term.make(value))
        return factor * outer * inner(value)

    return build


def _over(reader: Reader, tensor: tf.Tensor, x: Term) -> Build | None:
    """Returns what builds `g(x) / x`, or `minimum(x, limit) / x`."""
    op = reader.op(tensor)
    for inside, least in both_ways(op, "Minimum"):
        limit = number(reader, least, inside)
        if limit is not None and limit > 0 and reader.same(inside, x.tensor):
            bound = limit
            return lambda value: (
                limits.clipped_over_x(value(x.tensor), bound) / x.factor
            )
    inner = zero_of(reader, tensor)
    if inner is None or inner.vanishing.order != 1:
        return None
    if not inner.is_argument(reader, x.tensor):
        return None
    factor = inner.sign * inner.inside.factor / x.factor
    return inner.build(reader, inner.vanishing.over_power, factor, 0)


def _ratio(
    reader: Reader, zero: Zero, others: Sequence[tf.Tensor], is_above: bool
) -> Limit | None:
    """Returns the limit of `f(a * x) / g(b * x)`."""
    if not is_above or zero.vanishing.order != 1:
        return None
    for other in others:
        below = zero_of(reader, other)
        if below is None or below.vanishing.inverse is None:
            continue
        if reader.same(zero.inside.tensor, below.inside.tensor):
            return _of_two(zero, below, below.vanishing.inverse)
    return None


def _of_two(zero: Zero, below: Zero, inverse: Removable) -> Limit:
    factor = zero.sign * below.sign * zero.inside.factor / below.inside.factor

    def build(value: Value) -> tf.Tensor:
        x, y = zero.term.make(value), below.term.make(value)
        near = (tf.abs(x) < NEAR) & (tf.abs(y) < NEAR)
        nothing = tf.zeros_like(x)
        made = zero.vanishing.over_power(tf.where(near, x, nothing))
        made *= factor * inverse(tf.where(near, y, nothing))
        return near_or_plain(near, made, zero.tensor, (below.tensor,), True, value)

    return Limit(build, (zero.tensor,), (below.tensor,))


def _of_acos(c: tf.Tensor, factor: float) -> Build:
    return lambda value: factor * removable.acos_over_sine(value(c))


def _with_divisors(reader: Reader, product: Product) -> Product:
    """Takes divisors out of the factors of a product that vanishes with them.

    In `sin(t) * cross(v / t, p)` the divisor is inside another factor, and in
    `(1 - cos(t)) / (x * x + y * y)` it is the square of `t`.

    Returns:
      The product.
    """
    zeros = [zero_of(reader, each) for each in product.above]
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
            is_square = inside is not None and reader.same(each, inside)
            if room >= 2 and (is_square or is_square_of(reader, each, x)):
                rest = [other for other in product.below if other is not each]
                product.below[:] = [*rest, x, x]
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


def _far(
    reader: Reader, op: tf.Operation, limits: Sequence[Limit], rest: Sequence[tf.Tensor]
) -> Build | None:
    """Returns how to build a quotient whose sides overflow together.

    Such as `(exp(x) - 1) / (exp(x) + 1) / x`, if a limit has taken one side.
    """
    taken = (each for limit in limits for each in (*limit.above, *limit.below))
    sides = [[wider.may_leave_range(reader, each) for each in taken]]
    sides.append([wider.may_leave_range(reader, each) for each in rest])
    if op.type not in DIVISIONS or not all(map(any, sides)):
        return None
    x, y = op.inputs
    return wider.quotient(reader, x, y, unchanged_values.divide)


def _read(reader: Reader, op: tf.Operation) -> _Read:
    memory: _Memory = reader.memory.setdefault(_Memory, _Memory())
    if op.name not in memory:
        memory[op.name] = _Read()
        memory[op.name] = _computed(reader, op)
    return memory[op.name]


def _computed(reader: Reader, op: tf.Operation) -> _Read:
    product = numbered(reader, op)
    zeros = [zero_of(reader, each) for each in (*product.above, *product.below)]
    wholes = [
        each.inside.tensor
        for each in zeros
        if each is not None and reader.op(each.inside.tensor).type in _WHOLES
    ]
    if wholes:
        product = numbered(reader, op, wholes)
    product = _with_divisors(reader, product)
    if not product.below:
        return _Read()
    limits: list[Limit] = []
    above, below = list(product.above), list(product.below)
    for limit in _limits(reader, product):
        left = without(above, limit.above), without(below, limit.below)
        if left[0] is not None and left[1] is not None:
            above, below = left[0], left[1]
            limits.append(limit)
    removed = len(product.below) - len(below)
    inside = sum(_read(reader, part).removed for part in outermost(reader, product))
    changes = [(x.name, by_change(reader, x)) for x in above if removed]
    found = {name: change for name, change in changes if change is not None}
    if removed <= inside and not found:
        return _Read(removed, removed > 0 and not below)
    far = _far(reader, op, limits, (*above, *below))
    product.builds.update({**found, **product.builds})

    def build(value: Value) -> tf.Tensor:
        made, *rest = [each.build(value) for each in limits]
        for each in (*rest, *(product.make(each, value) for each in above)):
            made = unchanged_values.multiply(made, each)
        for each in map(value, below):
            made = unchanged_values.divide(made, each)
        made = made if product.factor == 1 else product.factor * made
        if far is None:
            return made
        return tf.where(tf.math.is_finite(made), made, far(value))

    return _Read(removed, not below, build)


def _match(op: tf.Operation, reader: Reader) -> Build | None:
    if is_watched(reader, op):
        return None
    found = _read(reader, op) if op.type in _PRODUCTS else _Read()
    if found.is_whole:
        return None if holes.is_of_root(reader, op) else found.build
    build = found.build or removable_pairs.less_limit(op, reader)
    build = build or steps.match(op, reader)
    # One divisor at a time, the rest would cancel.
    if build and (holes.has_deep_hole(reader, op) or holes.is_of_root(reader, op)):
        return None
    return build


RULES = (
    Rule(
        name="removable-singularity",
        before="sin(x) / x, (1 - cos(x)) / x ** 2, tanh(x) / x, x / expm1(x), "
        "(exp(-a) - exp(-b)) / (b - a), (1 - q) / (1 - q ** n), tanh(a * x) / tanh(a), "
        "log(mean(exp(a * x))) / a, 1 - sin(x) / x, "
        "(pdf(a) - pdf(b)) / (cdf(b) - cdf(a))",
        after="the same; near 0 the power series",
        fails_when="x = 0: the value is 0 / 0; x is near 0: the derivatives cancel",
        reference="Taylor series of the quotient",
        op_types=DIVISIONS | SUMS | {"Mul", "Pow"},
        match=_match,
    ),
)
