"""Rules for products and powers whose logarithm, or root, is in range."""

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import tensorflow as tf

from tfsafe import ops
from tfsafe.graph import DIVISIONS, RECIPROCALS, SUMS
from tfsafe.ops.formulas import log_products, power_means
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.finiteness import is_watched
from tfsafe.rewriting.facts.tensors import Reader, both_ways, is_float
from tfsafe.rewriting.log_space.analysis import Logarithms, logarithms
from tfsafe.rewriting.log_space.form import Factored
from tfsafe.rewriting.match.arithmetic import (
    is_sum,
    number,
    root_of,
    square_of,
    squared,
    terms,
)
from tfsafe.rewriting.match.reductions import (
    REDUCTIONS,
    Reduction,
    mean_of_squares,
    reduction,
)
from tfsafe.rewriting.match.trees import Tree, Trees, argument

# Longer products are left alone.
_MOST, _MOST_PARTS = 12, 64
_MOST_SQUARES = 4
# A constant power up to here keeps nearly all digits of its base.
_LARGE = 256


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


def _factors(
    reader: Reader, tensor: tf.Tensor, power: float
) -> Iterator[_Factor | float]:
    """Yields the factors of a product, and positive numbers."""
    op = reader.op(tensor)
    constant = reader.scalar(tensor)
    if constant is not None and constant > 0 and tensor.shape.rank == 0:
        yield constant**power
    elif op.type in DIVISIONS:
        yield from _factors(reader, op.inputs[0], power)
        yield from _factors(reader, op.inputs[1], -power)
    elif op.type in RECIPROCALS:
        yield from _factors(reader, op.inputs[0], -power)
    elif op.type == "Mul":
        for each in op.inputs:
            yield from _factors(reader, each, power)
    elif op.type == "Square":
        yield from _factors(reader, op.inputs[0], 2 * power)
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
        yield from _factors(reader, inside, power / 2)
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
    return _log_of(_factors(reader, x, 1.0)) or _log_of_powers(reader, x)


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


def _log_of(factors: Iterable[_Factor | float]) -> Build | None:
    """Returns how to build the logarithm of a product; None if it is long or safe."""
    numbers, found = 1.0, []
    for each in factors:
        if isinstance(each, float):
            numbers *= each
        else:
            found.append(each)
        if len(found) > _MOST:
            return None
    if not found or not 0 < numbers < float("inf") or not _may_leave(found):
        return None
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
        return _Split([(found, power)], []) if found.is_pure else None
    if parts:
        return _Split([log for each in known for log in each.logs], rest)
    if logs.reader.is_mask(tensor):
        return None
    factors = _factors(logs.reader, tensor, power)
    few = list(itertools.islice(factors, _MOST_PARTS + 1))
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


def _match_mixed_log(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches the logarithm of a product of powers and exponentials."""
    x = op.inputs[0]
    if is_watched(reader, op) or reader.constant(x) is not None:
        return None
    if not _signed_parts(reader.op(x)) or _is_long(reader, x):
        return None
    split = _split(logarithms(reader), x, 1.0)
    if split is None or not split.logs:
        return None
    log_of_rest = _log_of(split.rest)
    if log_of_rest is None:
        return None

    def build(value: Value) -> tf.Tensor:
        made = log_of_rest(value)
        for found, power in split.logs:
            made += power * found.whole_log(value)
        return made

    return build


def _match_power(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `prod(x) ** k`, `(1 - x) ** k` and `(a / (a + b)) ** k`."""
    base, exponent = op.inputs
    if is_watched(reader, op):
        return None
    total = reduction(reader, base, "Prod")
    if total is not None:
        return _of_product(total.x, exponent, total.axes, total.keepdims)
    k = reader.scalar(exponent)
    if reader.constant(base) is not None or (k is not None and abs(k) <= _LARGE):
        return None
    return _of_fraction(reader, op) or _of_one_minus(reader, op)


def _of_product(
    x: tf.Tensor, exponent: tf.Tensor, axes: tuple[int, ...] | None, keepdims: bool
) -> Build | None:
    if axes is None:
        return None
    return lambda value: log_products.power_of_product(
        value(x), value(exponent), axes, keepdims
    )


def _of_fraction(reader: Reader, op: tf.Operation) -> Build | None:
    base, exponent = op.inputs
    part, total = _quotient(reader, reader.op(base))
    if total is None or not is_sum(reader.op(total)):
        return None
    for same, b in both_ways(reader.op(total)):
        if part is None and number(reader, same, b) == 1:
            return _of_part(base, None, b, exponent)
        if part is not None and reader.same(same, part):
            return _of_part(base, part, b, exponent)
    return None


def _of_part(
    base: tf.Tensor, part: tf.Tensor | None, b: tf.Tensor, exponent: tf.Tensor
) -> Build:
    def build(value: Value) -> tf.Tensor:
        a = tf.ones([], b.dtype) if part is None else value(part)
        return log_products.power_of_fraction(value(base), a, value(b), value(exponent))

    return build


def _quotient(
    reader: Reader, op: tf.Operation
) -> tuple[tf.Tensor | None, tf.Tensor | None]:
    """Reads `a / b`; the numerator 1 is None."""
    if op.type in RECIPROCALS:
        return None, op.inputs[0]
    if op.type not in DIVISIONS:
        return None, None
    a, b = op.inputs
    return (None if number(reader, a, b) == 1 else a), b


def _of_one_minus(reader: Reader, op: tf.Operation) -> Build | None:
    base, exponent = op.inputs
    if reader.op(base).type not in SUMS:
        return None
    found = argument(reader, base, ("Sub", 1, "x"))
    if found is None or found[0] < 0:
        return None
    x = found[1]
    return lambda value: log_products.power_of_one_minus(
        value(base), x.make(value), value(exponent)
    )


_ONE_PLUS_POWER = ("Add", 1, ("Pow", "x", "k"))
FIRST = (
    Rule(
        name="log-of-powers-and-exponentials",
        before="log(x ** k * exp(-x)), log(x ** k * sigmoid(y) / exp(lgamma(k)))",
        after="k * log(x) where the power is out of range, plus the logarithms of the "
        "exponentials",
        fails_when="a power or an exponential underflows or overflows",
        reference="identity",
        op_types=("Log",),
        match=_match_mixed_log,
    ),
    Rule(
        name="log-of-one-plus-power",
        before="log(1 + x ** k), log(1 / (1 + x ** k))",
        after="k * log(x) where the power is large",
        fails_when="the power overflows",
        reference="identity",
        match=Trees(
            Tree(("Log", _ONE_PLUS_POWER), log_products.log_one_plus_power),
            Tree(("Log1p", ("Pow", "x", "k")), log_products.log_one_plus_power),
            *(
                Tree(
                    ("Log", inverse),
                    lambda x, k: -log_products.log_one_plus_power(x, k),
                )
                for inverse in (
                    ("Div", 1, _ONE_PLUS_POWER),
                    ("Reciprocal", _ONE_PLUS_POWER),
                    ("Sub", 1, ("Div", ("Pow", "x", "k"), _ONE_PLUS_POWER)),
                )
            ),
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
    Rule(
        name="power-out-of-range",
        before="prod(x) ** k, (1 - x) ** k, (a / (a + b)) ** k",
        after="exp(k * sum(log(x))) where the product underflows or overflows; "
        "exp(k * log1p(-x)) where x is near 0",
        fails_when="the product underflows or overflows; x is lost in 1 - x",
        reference="identity",
        op_types=("Pow",),
        match=_match_power,
    ),
)
