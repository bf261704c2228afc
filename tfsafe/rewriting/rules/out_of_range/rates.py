"""The rule for the chance of an event, by a rate that may be out of range."""

import tensorflow as tf

from tfsafe.ops.formulas.out_of_range.log_products import log_one_minus_exp_of_rate
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.finiteness import is_watched
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.match.arithmetic import number, terms
from tfsafe.rewriting.match.products import factored
from tfsafe.rewriting.rules.out_of_range.products import factors, log_of


def _match(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `log(1 - exp(-a * b))` and `log(1 - exp(-x ** k))`."""
    exponent = _exponent(op, reader)
    if exponent is None or is_watched(reader, op):
        return None
    log_of_rate = _log_of_minus(reader, exponent)
    if log_of_rate is None:
        return None
    x = exponent

    def build(value: Value) -> tf.Tensor:
        return log_one_minus_exp_of_rate(-value(x), log_of_rate(value))

    return build


def _exponent(op: tf.Operation, reader: Reader) -> tf.Tensor | None:
    """Recognises `log(1 - exp(x))`, also by log1p or expm1; returns `x`."""
    inside = reader.op(op.inputs[0])
    if (
        op.type == "Log"
        and inside.type == "Sub"
        and number(reader, *inside.inputs) == 1
    ):
        power, wanted = reader.op(inside.inputs[1]), "Exp"
    elif inside.type == "Neg":
        wanted = "Expm1" if op.type == "Log" else "Exp"
        power = reader.op(inside.inputs[0])
    else:
        return None
    return power.inputs[0] if power.type == wanted else None


def _log_of_minus(reader: Reader, exponent: tf.Tensor) -> Build | None:
    """Returns how to build `log(-exponent)` of a product that may be out of range."""
    term, *others = terms(reader, exponent)
    scale, above, below = term.factor, [term.tensor], []
    if scale > 0:
        product = factored(reader, reader.op(term.tensor))
        scale, above, below = scale * product.factor, product.above, product.below
    if others or scale >= 0:
        return None
    powers = [(each, 1.0) for each in above] + [(each, -1.0) for each in below]
    found = [each for x, power in powers for each in factors(reader, x, power)]
    return log_of([-scale, *found])


RULES = (
    Rule(
        name="log-of-rare-event",
        before="log(1 - exp(-a * b)), log(1 - exp(-x ** k)), log(-expm1(-x**2 / 2))",
        after="ops.log1mexp of the exponent; the logarithm of the rate where that "
        "underflows",
        fails_when="the rate rounds to 0 or is below the smallest digit of 1",
        reference="tfsafe.ops.log1mexp",
        op_types=("Log", "Log1p"),
        match=_match,
    ),
)
