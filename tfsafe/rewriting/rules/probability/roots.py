"""The rule for roots of probabilities that leave their range."""

import tensorflow as tf

from tfsafe import ops
from tfsafe.ops.formulas.out_of_range import fractions
from tfsafe.ops.kernels import precision
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.finiteness import is_watched
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.log_space.analysis import logarithms
from tfsafe.rewriting.log_space.form import LogRule, in_float32, with_inputs
from tfsafe.rewriting.match.arithmetic import number

# The rules for the logarithms of what has roots here.
_PROBABILITIES: frozenset[LogRule] = frozenset({
    "log-of-complement",
    "log-of-erfc",
    "log-of-sigmoid",
    "log-of-softmax",
    "log-of-softplus",
})


def _match_probability(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `sqrt(p)`, `rsqrt(p)` and `p ** k` of a number k below 1."""
    base, *exponents = op.inputs
    if is_watched(reader, op):
        return None
    if exponents:
        power = number(reader, exponents[0], base)
        if power is None or power >= 1:
            return None
    logs = logarithms(reader)
    p, root = logs.of(base), logs.of(op.outputs[0])
    if p is None or root is None or p.name not in _PROBABILITIES:
        return None
    if p.is_partial or not p.is_pure:
        return None
    exponent = root.exponent
    if base.dtype in precision.HALF:
        return in_float32(lambda value: ops.exp(exponent(value)), base.dtype)

    def build(value: Value) -> tf.Tensor:
        return fractions.normal_or_exp(
            lambda x: with_inputs(op, value, {0: x}), value(base), exponent(value)
        )

    return build


RULES = (
    Rule(
        name="root-of-probability",
        before="sqrt(sigmoid(x)), sqrt(softmax(x)), sqrt(1 - sigmoid(x)), p ** k for "
        "k < 1",
        after="exp(log(p) / 2) where p underflows",
        fails_when="the probability underflows, and its root does not",
        reference="identity",
        op_types=("Pow", "Rsqrt", "Sqrt"),
        match=_match_probability,
    ),
)
