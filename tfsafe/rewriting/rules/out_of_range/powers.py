"""The rule for powers of products, fractions and complements that leave the range."""

import tensorflow as tf

from tfsafe.graph import DIVISIONS, RECIPROCALS, SUMS
from tfsafe.ops.formulas.out_of_range import log_products
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.finiteness import is_watched
from tfsafe.rewriting.facts.tensors import Reader, both_ways
from tfsafe.rewriting.match.arithmetic import is_sum, number
from tfsafe.rewriting.match.reductions import reduction
from tfsafe.rewriting.match.trees import argument

# A constant power up to here keeps nearly all digits of its base.
_LARGE = 256


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


RULES = (
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
