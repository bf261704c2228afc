"""The rule for half-precision formulas whose parts leave the range of the dtype."""

import dataclasses
import functools
from collections.abc import Sequence

import tensorflow as tf

from tfsafe.graph import DIVISIONS, raw_kernel
from tfsafe.ops.kernels import precision
from tfsafe.rewriting.analysis import wider
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.finiteness import is_watched
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.match.arithmetic import Term
from tfsafe.rewriting.match.products import scaled
from tfsafe.rewriting.rules.in_float64 import is_made_wide
from tfsafe.rewriting.rules.out_of_range.half_precision_chains import (
    ANY_DTYPE,
    CONTRACTIONS,
    SOFTMAXES,
    STRETCHES,
    Chain,
    is_applied,
)

_NAME = "half-precision"
# A smaller factor would leave nothing of small elements.
_LEAST_SCALE = 2.0**-8


def _match(
    op: tf.Operation, reader: Reader, others: Sequence[Rule] = ()
) -> Build | None:
    tensor = op.outputs[0]
    if tensor.dtype not in precision.HALF or is_watched(reader, op):
        return None
    scale = _scale(op, reader)
    if scale is not None and _is_contraction(reader.op(scale.tensor), scale.factor):
        return _scaled_first(reader.op(scale.tensor), scale.factor)
    is_sum_inside = op.type == "Sub" or op.type in SOFTMAXES
    if is_sum_inside and not wider.adds_products(reader, *op.inputs):
        return None
    if op.type == "Cast" and not _is_mean_of_keras(op, reader):
        return None
    chain = Chain(op, reader, others)
    # The sum of a mean may overflow.
    if not (chain.stretches or chain.restores or op.type == "Mean"):
        return None
    is_open = chain.inverts or chain.restores
    if op.type == "Mul" and not is_open and scale is None:
        return None
    if op.type == "Pow" and not _is_root(op, reader):
        return None
    is_log = op.type in {"Log", "Log1p"}
    if is_log and not is_open and not _is_moment(op, reader):
        return None
    return lambda value: chain.build(tensor, value)


def _is_mean_of_keras(op: tf.Operation, reader: Reader) -> bool:
    """Returns whether a mean is taken in float32, of a power in half precision."""
    mean = reader.op(op.inputs[0])
    wide = reader.op(mean.inputs[0]) if mean.type == "Mean" else mean
    if wide is mean or wide.type != "Cast":
        return False
    power = wide.inputs[0]
    return power.dtype in precision.HALF and reader.op(power).type in STRETCHES


def _scale(op: tf.Operation, reader: Reader) -> Term | None:
    """Reads a tensor times a number that brings it nearer to 0."""
    # bfloat16 has the range of float32.
    if op.outputs[0].dtype != tf.float16:
        return None
    term = scaled(reader, op.outputs[0])
    return term if 0 < abs(term.factor) < 1 else None


def _is_contraction(op: tf.Operation, factor: float) -> bool:
    """Returns whether a factor of a contraction may be multiplied beforehand."""
    is_pair = op.type in CONTRACTIONS and len(op.inputs) == 2
    return is_pair and abs(factor) > _LEAST_SCALE


def _scaled_first(op: tf.Operation, factor: float) -> Build:
    """Returns how to build a contraction times a number, in float16 as it was."""

    def build(value: Value) -> tf.Tensor:
        a, b = map(value, op.inputs)
        return precision.contracted(
            lambda a, b: raw_kernel(op)([a, b])[0], a, b, factor
        )

    return build


def _is_moment(op: tf.Operation, reader: Reader) -> bool:
    """Returns whether the logarithm is of a sum or a mean of products or powers."""
    inner = reader.op(op.inputs[0])
    if inner.type not in {"Sum", "Mean"}:
        return inner.type in CONTRACTIONS
    return reader.op(inner.inputs[0]).type in STRETCHES


def _is_root(op: tf.Operation, reader: Reader) -> bool:
    exponent = reader.scalar(op.inputs[1])
    return exponent is not None and exponent < 1


def of_wide_operands(rule: Rule, others: Sequence[Rule]) -> Rule:
    """Returns a rule whose formula may have operands that leave half precision."""
    if not is_made_wide(rule, ANY_DTYPE):
        return rule

    def match(op: tf.Operation, reader: Reader) -> Build | None:
        build = rule.match(op, reader)
        tensor = op.outputs[0]
        is_half = tensor.dtype in precision.HALF and is_applied(_NAME, reader)
        if build is None or not is_half:
            return build
        chain = Chain(op, reader, others, build)
        is_wide = chain.stretches or chain.restores
        return (lambda value: chain.build(tensor, value)) if is_wide else build

    return dataclasses.replace(rule, match=match)


def rule(others: Sequence[Rule]) -> Rule:
    """Returns the rule."""
    return Rule(
        name=_NAME,
        before="x * rsqrt(mean(x * x)), mean(x), m / (sqrt(v) + 1e-8), log(p + 1e-9), "
        "0.5 * x ** 2, sum(x * x) - sum(y * y), matmul(q, k) / 8 in float16",
        after="the same, computed in float32 and rounded once; matmul(q / 8, k)",
        fails_when="a square, a product or a sum overflows or vanishes, and the result "
        "does not; an epsilon that is cast to half precision is 0",
        reference="Micikevicius et al., Mixed Precision Training, ICLR 2018",
        op_types=(
            *("Cast", "Log", "Log1p", "Mean", "Mul", "Pow", "Rsqrt", "Sqrt", "Sub"),
            *DIVISIONS,
            "DivNoNan",
            *SOFTMAXES,
        ),
        match=functools.partial(_match, others=others),
    )
