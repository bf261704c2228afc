"""Rules for products whose logarithm is in range."""

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import tensorflow as tf

from tfsafe import ops
from tfsafe.graph import DIVISIONS, RECIPROCALS
from tfsafe.ops.formulas.out_of_range import log_products, power_means
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.finiteness import is_watched
from tfsafe.rewriting.facts.tensors import Reader, both_ways, is_float
from tfsafe.rewriting.log_space.analysis import Logarithms, logarithms
from tfsafe.rewriting.log_space.form import Factored
from tfsafe.rewriting.log_space.sums import signed
from tfsafe.rewriting.match.arithmetic import (
    is_sum,
    number,
    root_of,
    square_of,
    squared,
    terms,
)
from tfsafe.rewriting.match.index import Pattern
from tfsafe.rewriting.match.reductions import (
    REDUCTIONS,
    Reduction,
    mean_of_squares,
    reduction,
)
from tfsafe.rewriting.match.trees import Tree, Trees

# Longer products are left alone.
_MOST, _MOST_PARTS = 12, 64
_MOST_SQUARES = 4


class _Factor(NamedTuple):
    """A factor of a product, and its power: a number, or a number times a tensor."""

    build: Build
    power: float
    exponent: tf.Tensor | None = None

    def make(self, value: Value) -> log_products.Power:
        """Returns base and power in the graph that is made."""
        if self.exponent is None:
            return self.build(value), self.power
        return self.build(value), self.power * value(self.exponent)


def factors(
    reader: Reader, tensor: tf.Tensor, power: float
) -> Iterator[_Factor | float]:
    """Yields the factors of a product, and positive numbers."""
    op = reader.op(tensor)
    constant = reader.scalar(tensor)
    if constant is not None and constant > 0 and tensor.shape.rank == 0:
        yield constant**power
    elif _signed_parts(op):
        for each, sign in _signed_parts(op):
            yield from factors(reader, each, sign * power)
    elif op.type == "Square":
        yield from factors(reader, op.inputs[0], 2 * power)
    elif op.type == "Pow":
        yield from _powers(reader, op, power)
    else:
        yield from _leaf(reader, tensor, power)


def _powers(reader: Reader, op: tf.Operation, power: float) -> Iterator[_Factor]:
    base, exponent = op.inputs
    k = number(reader, exponent, base)
    if k is None:
        yield _Factor(lambda value: value(base), power, exponent)
    elif k:
        yield _Factor(lambda value: value(base), k * power)


def _leaf(reader: Reader, tensor: tf.Tensor, power: float) -> Iterator[_Factor | float]:
    inside = root_of(reader, tensor)
    if inside is not None and reader.op(inside).type in {"Mul", *DIVISIONS}:
        scale = power / 2
        yield from _of_root([*factors(reader, inside, scale)], scale)
        return
    count, found = mean_of_squares(reader, tensor)
    if found is None:
        yield _hypot(reader, tensor, power) or _Factor(
            lambda value: value(tensor), power
        )
        return

    def length(value: Value) -> tf.Tensor:
        return ops.norm(
            found.base.make(value), axis=found.axes, keepdims=found.keepdims
        )

    if count != 1:
        yield count**-power
    yield _Factor(length, 2 * power)


def _of_root(
    found: Sequence[_Factor | float], power: float
) -> Iterator[_Factor | float]:
    """Yields the factors of a root by magnitude, and their sign: two may be negative.

    Args:
      found: The factors of what the root is taken of, with a part of their powers.
      power: That part.
    """
    odd = [
        each
        for each in found
        if isinstance(each, _Factor)
        and each.exponent is None
        and each.power / power % 2 == 1
    ]
    if len(odd) < 2:
        yield from found
        return
    yield from (each for each in found if each not in odd)
    for each in odd:
        yield _Factor(functools.partial(_magnitude, each.build), each.power)

    def sign(value: Value) -> tf.Tensor:
        return functools.reduce(
            tf.multiply, [tf.sign(each.build(value)) for each in odd]
        )

    yield _Factor(sign, power)


def _magnitude(build: Build, value: Value) -> tf.Tensor:
    return tf.abs(build(value))


def _hypot(reader: Reader, tensor: tf.Tensor, power: float) -> _Factor | None:
    """Reads `x * x + y * y` as the square of a length."""
    found = terms(reader, tensor) if is_sum(reader.op(tensor)) else []
    bases = [squared(reader, each.tensor) for each in found if each.factor == 1]
    known = [each for each in bases if each is not None]
    if len(known) != len(found) or not 2 <= len(found) <= _MOST_SQUARES:
        return None

    def length(value: Value) -> tf.Tensor:
        return functools.reduce(ops.hypot, [each.make(value) for each in known])

    return _Factor(length, 2 * power)


def _may_leave(found: list[_Factor]) -> bool:
    """Returns whether a product may be out of range where its factors are not."""
    if any(each.exponent is not None for each in found):
        return True
    return len(found) > 1 or abs(found[0].power) > 1


def match_log(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches the logarithm of a product that may be out of range."""
    x = op.inputs[0]
    if is_watched(reader, op) or reader.constant(x) is not None:
        return None
    return log_of(factors(reader, x, 1.0)) or _log_of_powers(reader, x)


def _log_of_powers(reader: Reader, total: tf.Tensor) -> Build | None:
    """Matches `log(sum(w * x ** p))` and `log(mean(x ** p))`."""
    for name, reduce in REDUCTIONS.items():
        found = reduction(reader, total, name)
        if found is None:
            continue
        sides = [(found.x, None), *both_ways(reader.op(found.x), "Mul")]
        for term, weight in sides:
            power = reader.op(term)
            # A sum of squares is in the range of float64.
            is_square = square_of(reader, term) is not None
            if power.type == "Pow" and is_float(term) and not is_square:
                return _of_powers(power, weight, found, reduce)
    return None


def _of_powers(
    power: tf.Operation,
    weight: tf.Tensor | None,
    found: Reduction,
    reduce: Callable[..., tf.Tensor],
) -> Build:
    def build(value: Value) -> tf.Tensor:
        x, order = map(value, power.inputs)
        w = tf.ones([], x.dtype) if weight is None else value(weight)
        return power_means.log_of_powers(
            x, order, w, found.axes, found.keepdims, reduce
        )

    return build


def log_of(
    each_factor: Iterable[_Factor | float], may_leave: bool = False
) -> Build | None:
    """Returns how to build the logarithm of a product; None if it is long or safe."""
    numbers, found = 1.0, []
    for each in each_factor:
        if isinstance(each, float):
            numbers *= each
        else:
            found.append(each)
        if len(found) > _MOST:
            return None
    may_leave = may_leave or (bool(found) and _may_leave(found))
    if not 0 < numbers < float("inf") or not may_leave:
        return None
    if not found:
        return lambda _: math.log(numbers)
    return lambda value: log_products.log_of_product(
        [each.make(value) for each in found], numbers
    )


class _Split(NamedTuple):
    """A product: its exponentials and probabilities, each with a power, and the rest.

    Attributes:
      logs: What is known of the logarithms of the former.
      rest: The other factors, and positive numbers.
    """

    logs: list[tuple[Factored, float]]
    rest: list[_Factor | float]


def _split(logs: Logarithms, tensor: tf.Tensor, power: float) -> _Split | None:
    """Splits a product; None if a factor may not be positive, or if there are many."""
    op = logs.reader.op(tensor)
    parts = _signed_parts(op)
    splits = [_split(logs, each, sign * power) for each, sign in parts]
    known = [each for each in splits if each is not None]
    if len(known) < len(splits):
        return None
    found = logs.of(tensor)
    rest = [factor for each in known for factor in each.rest]
    # One that consists of exponentials alone is known better as a whole.
    if found is not None and not any(isinstance(each, _Factor) for each in rest):
        if found.is_partial and not found.is_nonnegative:
            found = signed(tensor, logs)
            is_known = found is not None and not found.is_partial
        else:
            is_known = found.is_pure
        return _Split([(found, power)], []) if found and is_known else None
    if parts:
        return _Split([log for each in known for log in each.logs], rest)
    if logs.reader.is_mask(tensor):
        return None
    few = [*itertools.islice(factors(logs.reader, tensor, power), _MOST_PARTS + 1)]
    return _Split([], few) if len(few) <= _MOST_PARTS else None


def _is_long(reader: Reader, tensor: tf.Tensor) -> bool:
    """Returns whether a product has too many factors to be split."""
    parts = [tensor]
    for each in parts:
        parts += [part for part, _ in _signed_parts(reader.op(each))]
        if len(parts) > _MOST_PARTS:
            return True
    return False


def _signed_parts(op: tf.Operation) -> list[tuple[tf.Tensor, float]]:
    """Returns the factors of a product or a quotient, with their powers."""
    if op.type in DIVISIONS:
        return [(op.inputs[0], 1.0), (op.inputs[1], -1.0)]
    if op.type in RECIPROCALS:
        return [(op.inputs[0], -1.0)]
    if op.type == "Mul":
        return [(each, 1.0) for each in op.inputs]
    return []


def match_mixed_log(
    op: tf.Operation, reader: Reader, may_leave: bool = False
) -> Build | None:
    """Matches the logarithm of a product of powers and exponentials.

    Args:
      op: The logarithm.
      reader: Reads its graph.
      may_leave: Whether one factor with differences of exponentials is enough.

    Returns:
      How to build it, or None.
    """
    x = op.inputs[0]
    if is_watched(reader, op) or reader.constant(x) is not None:
        return None
    if not _signed_parts(reader.op(x)) or _is_long(reader, x):
        return None
    split = _split(logarithms(reader), x, 1.0)
    if split is None or not split.logs:
        return None
    signs = [each.weight for each, _ in split.logs if each.weight is not None]
    rest = split.rest
    if signs:
        rest = [_magnitude_of(each) for each in split.rest]
        signs += [each.build for each in map(_odd, split.rest) if each is not None]
    is_whole = len(split.logs) == 1 and not rest
    log_of_rest = None if is_whole else log_of(rest, may_leave and bool(signs))
    if log_of_rest is None:
        return None

    def build(value: Value) -> tf.Tensor:
        made = log_of_rest(value)
        for found, power in split.logs:
            made += power * _size_of(found).whole_log(value)
        if not signs:
            return made
        sign = functools.reduce(tf.multiply, [tf.sign(each(value)) for each in signs])
        return log_products.log_unless_out(value(x), made, sign)

    return build


def _size_of(found: Factored) -> Factored:
    """Returns a factored tensor without the sign of its weight."""
    weight = found.weight and functools.partial(_magnitude, found.weight)
    return found._replace(weight=weight)


def _odd(factor: _Factor | float) -> _Factor | None:
    """Returns a factor that may be below 0, and the product with it."""
    if isinstance(factor, float) or factor.exponent is not None:
        return None
    return factor if factor.power % 2 == 1 else None


def _magnitude_of(factor: _Factor | float) -> _Factor | float:
    found = _odd(factor)
    if found is None:
        return factor
    return found._replace(build=functools.partial(_magnitude, found.build))


def _one_plus_power(
    power: Pattern, function: Callable[..., tf.Tensor]
) -> Iterator[Tree]:
    """Yields the spellings of `log(1 + power)` and of its negative."""
    total = ("Add", 1, power)
    yield Tree(("Log", total), function)
    yield Tree(("Log1p", power), function)
    for inverse in (
        ("Div", 1, total),
        ("Reciprocal", total),
        ("Sub", 1, ("Div", power, total)),
    ):
        yield Tree(("Log", inverse), lambda *parts: -function(*parts))


FIRST = (
    Rule(
        name="log-of-powers-and-exponentials",
        before="log(x ** k * exp(-x)), log(x ** k * sigmoid(y) / exp(lgamma(k)))",
        after="k * log(x) where the power is out of range, plus the logarithms of the "
        "exponentials",
        fails_when="a power or an exponential underflows or overflows",
        reference="identity",
        op_types=("Log",),
        match=match_mixed_log,
    ),
    Rule(
        name="log-of-one-plus-power",
        before="log(1 + x ** k), log(1 / (1 + x ** k))",
        after="k * log(x) where the power is large",
        fails_when="the power overflows",
        reference="identity",
        match=Trees(
            *_one_plus_power(
                ("Pow", ("Div", "x", "y"), "k"),
                log_products.log_one_plus_power_of_quotient,
            ),
            *_one_plus_power(("Pow", "x", "k"), log_products.log_one_plus_power),
        ),
    ),
)
RULES = (
    Rule(
        name="log-out-of-range",
        before="log(x ** 3), log(a * b), log(sqrt(a * b)), "
        "log(sum(a * a) / sum(b * b)), log(sum(w * x ** p))",
        after="the same; where the product underflows or overflows the sum of the "
        "logarithms",
        fails_when="the product underflows or overflows",
        reference="identity",
        op_types=("Log",),
        match=match_log,
    ),
)
