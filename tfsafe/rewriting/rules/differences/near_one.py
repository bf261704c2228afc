"""Rules for quotients, roots, powers and products that are near 1."""

import tensorflow as tf

from tfsafe.graph import SUMS
from tfsafe.ops.formulas import uncancelled, unchanged_values
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.finiteness import is_watched
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.match.linear import parts
from tfsafe.rewriting.match.near_one import less_one, root_less_one
from tfsafe.rewriting.rules.out_of_range import products

_COMPOSED = frozenset({"Div", "Mul", "Pow", "RealDiv", "Rsqrt", "Sqrt", "Square"})


def _match(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `c * f - c` of a number c."""
    if is_watched(reader, op):
        return None
    found = parts(reader, op.outputs[0])
    numbers = [each.factor for each in found if each.tensor is None]
    if len(found) != 2 or len(numbers) != 1:
        return None
    (part,) = (each for each in found if each.tensor is not None)
    if part.tensor is None or part.axes is not None:
        return None
    if abs(part.factor + numbers[0]) > 1e-6 * abs(numbers[0]):
        return None
    build = less_one(reader, part.tensor) or root_less_one(reader, part.tensor)
    if build is None:
        return None
    factor = part.factor
    return build if factor == 1 else lambda value: factor * build(value)


def match_log(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches the logarithm of a quotient, root, power or product near 1."""
    x = op.inputs[0]
    if is_watched(reader, op) or reader.op(x).type not in _COMPOSED:
        return None
    inner = less_one(reader, x)
    if inner is None:
        return None

    far = products.match_log(op, reader)

    def build(value: Value) -> tf.Tensor:
        whole = value(x)
        log = unchanged_values.log(whole) if far is None else far(value)
        return uncancelled.log_near_one(whole, inner(value), log)

    return build


LOGARITHM = Rule(
    name="log-near-one",
    before="log(a / b), log((1 + a) * sqrt(1 + b)), log((1 + a) / (1 + b))",
    after="the same; where a is near b log1p((a - b) / b), and so on",
    fails_when="the argument is near 1, where its digits beyond 1 are lost",
    reference="tfsafe.ops.log1p",
    op_types=("Log",),
    match=match_log,
)
RULES = (
    Rule(
        name="difference-from-one",
        before="a / b - 1, sqrt(x) - 1, sqrt((1 + x) / (1 - x)) - 1, "
        "(1 + a) * (1 + b) - 1, c - c * cos(x)",
        after="the same from the differences of its parts from 1, such as (a - b) / b",
        fails_when="what 1 is taken from is near 1",
        reference="identities",
        op_types=SUMS,
        match=_match,
    ),
)
