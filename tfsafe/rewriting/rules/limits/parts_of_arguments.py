"""Divides a function by factors of its argument where both sides are 0."""

import functools
from collections.abc import Sequence

import tensorflow as tf

from tfsafe.graph import DIVISIONS
from tfsafe.ops.formulas import unchanged_values
from tfsafe.ops.formulas.limits.removable import Removable
from tfsafe.rewriting.engine.rule import Value
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.match.products import Product, factored, scaled
from tfsafe.rewriting.rules.limits.vanishing_functions import Limit, Zero

# Nearer to 0, a quotient of two functions, or by a factor of the argument, is a series.
NEAR = 0.5
_PRODUCTS = DIVISIONS | {"Mul"}


def part_of_argument(
    reader: Reader, zero: Zero, others: Sequence[tf.Tensor], is_above: bool
) -> Limit | None:
    """Returns the limit of `f(a * b) / a`, of `f(a * x ** 3) / x ** 3`.

    Also of `a / f(a * b)`, and of `f(a * b) / a ** 2` where f has a zero of order 2.
    """
    vanishing, op = zero.vanishing, reader.op(zero.inside.tensor)
    function = vanishing.over_power if is_above else vanishing.inverse
    if function is None or op.type not in _PRODUCTS:
        return None
    if vanishing.order != 1 and not is_above:
        return None
    inside = factored(reader, op)
    # The factors of the argument, as often as the function has the argument as one.
    copies = [list(inside.above) for _ in range(vanishing.order)]
    factor, used = float(zero.sign), []
    for other in others if not inside.builds else ():
        a = scaled(reader, other)
        for copy in copies:
            place = next(
                (i for i, x in enumerate(copy) if reader.same(a.tensor, x)), -1
            )
            if place >= 0:
                del copy[place]
                factor /= a.factor
                used.append(other)
                break
    if not used:
        return None
    touched = [each for each in copies if len(each) < len(inside.above)]
    factor *= (zero.inside.factor * inside.factor) ** len(touched)
    above = [x for each in touched for x in each]
    below = inside.below * len(touched)
    rest = inside._replace(factor=factor, above=above, below=below)
    power = vanishing.order - len(touched)
    return _of_part(zero, tuple(used), rest, function, power if is_above else -1)


def _of_part(
    zero: Zero,
    others: tuple[tf.Tensor, ...],
    rest: Product,
    function: Removable,
    power: int,
) -> Limit:
    """Returns `function(x) * x ** power * rest`; `function(x) / rest` of power -1."""

    def build(value: Value) -> tf.Tensor:
        x = zero.term.make(value)
        near = tf.abs(x) < NEAR
        ratio = tf.constant(rest.factor, x.dtype)
        for each in rest.above:
            ratio *= _kept(near, value(each))
        for each in rest.below:
            ratio /= _kept(near, value(each))
        inside = tf.where(near, x, tf.zeros_like(x))
        made = function(inside)
        for _ in range(power):
            made *= inside
        made = made / ratio if power < 0 else made * ratio
        return near_or_plain(near, made, zero.tensor, others, power >= 0, value)

    above, below = (zero.tensor,), others
    return Limit(build, above, below) if power >= 0 else Limit(build, below, above)


def _kept(condition: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    return tf.where(condition, x, tf.ones([], x.dtype))


def near_or_plain(
    near: tf.Tensor,
    made: tf.Tensor,
    zero: tf.Tensor,
    others: Sequence[tf.Tensor],
    is_above: bool,
    value: Value,
) -> tf.Tensor:
    """Selects between a limit and the written quotient."""
    far = tf.logical_not(near)
    a, b = _kept(far, value(zero)), [_kept(far, value(each)) for each in others]
    # Both sides may overflow where what is made of them is flat.
    if is_above:
        return tf.where(near, made, functools.reduce(unchanged_values.divide, b, a))
    whole = functools.reduce(unchanged_values.multiply, b)
    return tf.where(near, made, unchanged_values.divide(whole, a))
