"""The rule for means whose weights are inverse distances: a distance may be 0."""

import tensorflow as tf

from tfsafe.graph import DIVISIONS, RECIPROCALS
from tfsafe.ops.formulas.out_of_range import fractions
from tfsafe.rewriting.analysis import wider
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.finiteness import is_regular, is_watched
from tfsafe.rewriting.facts.layouts import same_shape
from tfsafe.rewriting.facts.tensors import Reader, both_ways, is_float
from tfsafe.rewriting.match.products import inverted
from tfsafe.rewriting.match.reductions import Reduction, reduction


def _match(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `w / sum(w)` and `sum(w * v) / sum(w)`."""
    total = reduction(reader, op.inputs[-1], "Sum")
    if total is None or not total.axes or not is_float(op.outputs[0]):
        return None
    if is_watched(reader, op) or not _may_be_infinite(reader, total.x):
        return None
    if total.keepdims and reader.same(op.inputs[0], total.x):
        return _over_total(op, reader, total, None, 1.0)
    above = reduction(reader, op.inputs[0], "Sum")
    if above is None or above[1:] != total[1:]:
        return None
    inner = reader.op(above.x)
    for w, v in both_ways(inner, "Mul"):
        if reader.same(w, total.x) and same_shape(w, above.x):
            return _over_total(op, reader, total, v, 1.0)
    inverse = inverted(reader, reader.op(total.x))
    if inverse is None or inner.type not in DIVISIONS:
        return None
    is_alike = reader.same(inner.inputs[1], inverse.tensor)
    if is_alike and same_shape(total.x, above.x):
        return _over_total(op, reader, total, inner.inputs[0], inverse.factor)
    return None


def _may_be_infinite(reader: Reader, weights: tf.Tensor) -> bool:
    op = reader.op(weights)
    exponent = reader.scalar(op.inputs[1]) if op.type == "Pow" else None
    is_power = exponent is not None and exponent < 0
    is_inverse = is_power or op.type in DIVISIONS | RECIPROCALS | {"Rsqrt"}
    return is_inverse and not is_regular(reader, op)


def _over_total(
    op: tf.Operation,
    reader: Reader,
    total: Reduction,
    x: tf.Tensor | None,
    factor: float,
) -> Build:
    """Returns how to build the quotient, from float64 where the sum is infinite."""
    axes, keepdims = total.axes or (), total.keepdims

    def build(value: Value) -> tf.Tensor:
        sums = (value(op.inputs[0]), value(op.inputs[1]))
        wide = wider.in_float64(reader, total.x, value)
        if x is None:
            return fractions.over_sum_of_poles(sums, wide, axes, keepdims)
        if factor == 1:
            weights = value(total.x), value(x)
            sums = fractions.weighted_sum(*weights, axes, keepdims), sums[1]
        return fractions.mean_with_poles(sums, wide, value(x), factor, axes, keepdims)

    return build


RULES = (
    Rule(
        name="infinite-weight",
        before="(1 / d) / sum(1 / d), sum(v / d ** 2) / sum(1 / d ** 2)",
        after="the same, from float64 where a sum is infinite; a weight that is "
        "infinite there counts alone",
        fails_when="a distance is 0 or its power vanishes: infinity over infinity",
        reference="Shepard, Proceedings of the 23rd ACM National Conference, 1968",
        op_types=DIVISIONS,
        match=_match,
    ),
)
