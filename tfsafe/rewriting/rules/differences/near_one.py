"""Rules for quotients, roots, powers and products that are near 1."""

import functools
from collections.abc import Sequence

import tensorflow as tf

from tfsafe import ops
from tfsafe.graph import ADDITIONS, DIVISIONS, SUMS
from tfsafe.ops.formulas import unchanged_values
from tfsafe.ops.formulas.differences import uncancelled
from tfsafe.ops.kernels import precision
from tfsafe.rewriting.analysis import holes, wider
from tfsafe.rewriting.analysis.near_one import less_one, root_less_one
from tfsafe.rewriting.engine.rule import Build, Rule, Value, first
from tfsafe.rewriting.facts.finiteness import is_watched
from tfsafe.rewriting.facts.tensors import Reader, both_ways
from tfsafe.rewriting.log_space.analysis import logarithms
from tfsafe.rewriting.log_space.form import Widened, in_float32
from tfsafe.rewriting.match.linear import Part, parts, total
from tfsafe.rewriting.match.trees import Tree, Trees
from tfsafe.rewriting.rules.out_of_range import fractions, products

_COMPOSED = frozenset({"Div", "Mul", "Pow", "RealDiv", "Rsqrt", "Sqrt", "Square"})


def _match(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `c * f - c` of a number c."""
    is_half = op.outputs[0].dtype in precision.HALF
    # Sums overflow there: `half-precision` has the whole difference.
    if is_watched(reader, op) or (is_half and wider.adds_products(reader, *op.inputs)):
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
    build = (
        _ratio_less_one(reader, part.tensor)
        or less_one(reader, part.tensor)
        or root_less_one(reader, part.tensor)
    )
    # Differences of the first order cancel in one of a higher order.
    if build is None or holes.vanishes(reader, op.outputs[0], 2):
        return None
    factor = part.factor
    return build if factor == 1 else lambda value: factor * build(value)


def _ratio_less_one(reader: Reader, tensor: tf.Tensor) -> Build | None:
    """Returns how to build a quotient of exponentials less 1: both may overflow."""
    is_quotient = reader.op(tensor).type in DIVISIONS
    log = logarithms(reader).of(tensor) if is_quotient else None
    if log is None or log.is_partial:
        return None
    if not (log.has_exp and log.is_pure and log.is_nonnegative):
        return None
    return in_float32(lambda value: ops.expm1(log.whole_log(value)), tensor.dtype)


def match_log(
    op: tf.Operation, reader: Reader, limits: Sequence[Rule] = ()
) -> Build | None:
    """Matches the logarithm of a quotient, root, power or product near 1.

    Args:
      op: The logarithm.
      reader: Reads its graph.
      limits: Rules for quotients that have a limit: the logarithm is not that of their
        factors, which are 0 there.

    Returns:
      How to build it, or None.
    """
    x = op.inputs[0]
    # Near 1, it is its magnitude.
    signed = reader.op(x).inputs[0] if reader.op(x).type == "Abs" else x
    if is_watched(reader, op) or reader.op(signed).type not in _COMPOSED:
        return None
    inner = less_one(reader, signed)
    # The same differences cancel in a logarithm that vanishes as a square does.
    if inner is None or holes.vanishes(reader, op.outputs[0], 2):
        return None

    far = products.match_mixed_log(op, reader, may_leave=True)
    if far is None and first(limits, reader.op(signed), reader) is None:
        far = products.match_log(op, reader) or fractions.in_range(reader, "Log", x)

    def build(value: Value) -> tf.Tensor:
        whole = value(x)
        log = unchanged_values.log(whole) if far is None else far(value)
        whole = whole if signed is x else value(signed)
        return uncancelled.log_near_one(whole, inner(value), log)

    return build


_LOG_ONE_PLUS = Trees(
    Tree(("Log", ("Add", 1, "x")), unchanged_values.log1p),
    Tree(("Log", ("Abs", ("Add", 1, "x"))), uncancelled.log_abs_one_plus),
)


def _match_one_plus(
    op: tf.Operation, reader: Reader, others: Sequence[Rule]
) -> Build | None:
    """Matches `log(1 + x)`; where `1 + x` is near 0, another rule may compute that."""
    known = _LOG_ONE_PLUS(op, reader)
    near_one = known or _log_of_sum(op, reader)
    if near_one is None:
        return None
    found = first(others, reader.op(op.inputs[0]), reader)
    if found is None and known is not None:
        return _out_of_range(op, reader) or known

    def build(value: Value) -> tf.Tensor:
        # For half precision, the sum has digits to spare.
        is_wider = isinstance(value, Widened)
        whole = found[1](value) if found and is_wider else value(op.inputs[0])
        is_far = tf.abs(whole - 1) > (2**-6 if is_wider else 0.5)
        return tf.where(is_far, unchanged_values.log(whole), near_one(value))

    return in_float32(build, op.outputs[0].dtype)


def _log_of_sum(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches the logarithm of a sum of 1 and more than one tensor, near 1."""
    found = parts(reader, op.inputs[0])
    rest = [each for each in found if each.tensor is not None]
    if Part(1.0, None) not in found or len(rest) < 2 or is_watched(reader, op):
        return None
    return lambda value: ops.log1p(total(rest, value, op.inputs[0]))


def _out_of_range(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `log(1 + x)` of an `x` that may leave the range: `log(1 + a * b)`."""
    if is_watched(reader, op):
        return None
    inner = reader.op(op.inputs[0])
    for x, one in both_ways(inner, *ADDITIONS):
        if reader.is_number(one, 1):
            return fractions.in_range(reader, "Log1p", x)
    return None


def log_of_one_plus(others: Sequence[Rule]) -> Rule:
    """Returns the rule for `log(1 + x)`.

    Args:
      others: Rules that may compute `1 + x`.
    """
    return Rule(
        name="log-of-one-plus",
        before="log(1 + x), log(abs(1 + x)), log(1 + a * b), log(1 - a - b)",
        after="ops.log1p(x), in float64 where x is out of range; the logarithm of "
        "1 + x in its stable form where x is near -1, as in log(1 - cos(y))",
        fails_when="x is near 0; or near -1, as the cosine is",
        reference="tfsafe.ops.log1p",
        op_types=("Log",),
        match=functools.partial(_match_one_plus, others=others),
    )


def log_near_one(limits: Sequence[Rule]) -> Rule:
    """Returns the rule for the logarithm of a product near 1.

    Args:
      limits: Rules for quotients that have a limit.
    """
    return Rule(
        name="log-near-one",
        before="log(a / b), log((1 + a) * sqrt(1 + b)), log(abs((1 + a) / (1 + b)))",
        after="the same; where a is near b log1p((a - b) / b), and so on",
        fails_when="the argument is near 1, where its digits beyond 1 are lost",
        reference="tfsafe.ops.log1p",
        op_types=("Log",),
        match=functools.partial(match_log, limits=limits),
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
