"""Rules for quotients and means whose terms are all masked: 0 divided by 0."""

from collections.abc import Callable, Mapping

import tensorflow as tf

from tfsafe import ops
from tfsafe.graph import DIVISIONS, RECIPROCALS, SUMS, OpFact, op_types, raw_kernel
from tfsafe.ops.formulas import unchanged_values
from tfsafe.ops.formulas.out_of_range import fractions
from tfsafe.ops.formulas.out_of_range.weighted_exponentials import (
    softmax_at_temperature,
)
from tfsafe.ops.kernels.statistics.moments import times_inverse
from tfsafe.ops.kernels.zeros import square
from tfsafe.rewriting.analysis import wider
from tfsafe.rewriting.analysis.empty_data import (
    is_empty_quotient,
    is_mean_by_count,
    is_sparse_mean,
)
from tfsafe.rewriting.analysis.vanishing import counts_of, factors, vanish_together
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.finiteness import is_regular, is_watched
from tfsafe.rewriting.facts.tensors import Reader, both_ways
from tfsafe.rewriting.log_space.analysis import logarithms
from tfsafe.rewriting.match.arithmetic import root_of, square_of, terms
from tfsafe.rewriting.match.quotients import is_reshaped
from tfsafe.rewriting.match.reductions import reduction, reshaped
from tfsafe.rewriting.match.trees import Tree, Trees

# Functions that are 0 at 0 and have a slope there.
_SMOOTH_ZEROS = op_types(OpFact.VANISHES) | {"Softsign"}
# Their results may be infinite where their arguments are not.
_OVERFLOWING: Mapping[str, Callable[..., tf.Tensor]] = {
    "Exp": ops.exp,
    "Pow": unchanged_values.pow,
    "Square": square,
}
# Elementwise operations through which the elements of `boolean_mask` are followed.
_DEPTH = 12
_MATRIX_PRODUCTS = frozenset({"BatchMatMulV2", "MatMul"})


_QUOTIENT = ("RealDiv", "a", "b")
_ODDS = Trees(
    Tree(("RealDiv", _QUOTIENT, ("Add", 1, _QUOTIENT)), fractions.part_of_sum)
)


def _match_fraction(op: tf.Operation, reader: Reader) -> Build | None:
    x, y = op.inputs
    if is_watched(reader, op):
        return None
    if reader.constant(x) is not None:
        return None
    part = _part_of_sum(reader, x, y)
    if part is not None:
        return part
    if is_regular(reader, op):
        return None
    odds = _ODDS(op, reader)
    if odds is not None:
        return odds
    if _hides_slope(reader, x, y):
        return None
    if not (
        _is_weighted_mean(reader, x, y)
        or _is_part(reader, x, y)
        or vanish_together(reader, x, y)
        or counts_of(reader, x, y)
        or is_empty_quotient(reader, x, y)
        or is_mean_by_count(reader, x, y)
        or is_sparse_mean(reader, x, y)
        or _is_moneyness(reader, x, y)
    ):
        return None
    if reader.same(x, y):
        return lambda value: ops.divide(value(x), value(y), at_zero=1.0)
    if not wider.may_leave(reader, x, y) and not wider.may_vanish(reader, y):
        return lambda value: ops.xdivy(value(x), value(y))
    # Sums of products are 0 where these underflow, and the quotient is not.
    return wider.quotient(reader, x, y, ops.xdivy)


def _hides_slope(reader: Reader, x: tf.Tensor, y: tf.Tensor) -> bool:
    """Returns whether `x` has a factor that is 0 at `y = 0` and has a slope there.

    In `sin(y) * v / y` a slope of 0 at `y = 0` would be wrong.
    """
    for each, _ in factors(reader, x):
        op = reader.op(each)
        inner = terms(reader, op.inputs[0]) if op.type in _SMOOTH_ZEROS else []
        if len(inner) == 1 and is_reshaped(reader, inner[0].tensor, y):
            return True
    return False


def _is_weighted_mean(reader: Reader, x: tf.Tensor, y: tf.Tensor) -> bool:
    """Returns whether `x / y` is `sum(a * w) / sum(w)`, or of running sums."""
    if reader.op(y).type == "Cumsum":
        return _is_running_mean(reader, x, reader.op(y))
    total, weights = reduction(reader, x, "Sum"), reduction(reader, y, "Sum")
    if total is None or weights is None or total.keepdims != weights.keepdims:
        return False
    is_alike = total.axes == weights.axes or not (x.shape.rank or y.shape.rank)
    product = reader.op(total.x)
    return is_alike and any(
        reader.same(each, weights.x) for each, _ in both_ways(product, "Mul")
    )


def _is_running_mean(reader: Reader, x: tf.Tensor, weights: tf.Operation) -> bool:
    """Returns whether `x` is the running sum of `a * w`, or `a * w` itself."""
    op = reader.op(x)
    if op.type == "Cumsum":
        names = ("exclusive", "reverse")
        is_alike = all(op.get_attr(each) == weights.get_attr(each) for each in names)
        if not is_alike or not reader.same(op.inputs[1], weights.inputs[1]):
            return False
        x = op.inputs[0]
    return any(reader.same(each, weights.inputs[0]) for each, _ in factors(reader, x))


def _is_part(reader: Reader, x: tf.Tensor, y: tf.Tensor) -> bool:
    """Returns whether one of the two is a term of the other, or the same."""
    return reader.constant(y) is None and any(
        reader.same(whole, term.tensor)
        for part, whole in ((x, y), (y, x))
        for term in terms(reader, part)
    )


def _part_of_sum(reader: Reader, x: tf.Tensor, y: tf.Tensor) -> Build | None:
    """Matches `p / (p + b)`; a power or an exponential p may overflow."""
    op, found = reader.op(x), terms(reader, y)
    function = _OVERFLOWING.get(op.type)
    if len(found) != 2 or (op.type == "Square" and wider.may_vanish(reader, y)):
        return None
    if function is None and (wider.may_leave(reader, x, y) or op.type in DIVISIONS):
        return None
    for own, other in (found, found[::-1]):
        if own.factor != 1 or not reader.same(x, own.tensor):
            continue
        if function is not None:
            return lambda value: fractions.part_of_sum(
                function(*map(value, op.inputs)), other.make(value)
            )
        # What cancels has rules of its own.
        if other.factor > 0 and not wider.may_vanish(reader, y):
            return lambda value: fractions.part_of_sum(value(x), other.make(value))
    return None


def _is_moneyness(reader: Reader, x: tf.Tensor, y: tf.Tensor) -> bool:
    """Returns whether `x / y` is `(log(a) + b * y) / y`, as in option prices.

    At `a = 1` and `y = 0` the terms without the logarithm vanish faster than `y`.
    """
    divisor = factors(reader, y)
    found = terms(reader, x)
    logs = [each for each in found if reader.op(each.tensor).type == "Log"]
    rest = [
        each
        for each in found
        if reader.op(each.tensor).type != "Log" and reader.scalar(each.tensor) is None
    ]
    if not logs or not rest:
        return False
    return all(
        any(
            power > below and reader.same(each, other)
            for each, power in factors(reader, term.tensor)
            for other, below in divisor
        )
        for term in rest
    )


def _match_score(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches what the normal distribution is taken of, scaled or shifted."""
    x, y = op.inputs
    is_known = reader.constant(x) is not None or reader.constant(y) is not None
    if is_known or is_watched(reader, op) or is_regular(reader, op):
        return None
    # In the price of an option, the volatility is added to such a quotient.
    is_of_log = reader.op(x).type == "Log"

    def is_shift(tensor: tf.Tensor) -> bool:
        return is_of_log or any(reader.same(f, y) for f, _ in factors(reader, tensor))

    queue, seen = [(op.outputs[0], False)], set()
    while queue:
        tensor, is_squared = queue.pop()
        for user in tensor.consumers():
            if user.type in {"Erf", "Erfc"} or (user.type == "Exp" and is_squared):
                return lambda value: ops.xdivy(value(x), value(y))
            if user.name in seen or not user.outputs:
                continue
            seen.add(user.name)
            others = [each for each in user.inputs if each is not tensor]
            is_square = square_of(reader, user.outputs[0]) is not None
            is_scaled = user.type in {"Mul", "Neg", "RealDiv"} and all(
                reader.scalar(each) is not None for each in others
            )
            is_shifted = user.type in SUMS and all(map(is_shift, others))
            if is_square or is_scaled or is_shifted:
                queue.append((user.outputs[0], is_squared or is_square))
    return None


def _match_degrees(op: tf.Operation, reader: Reader) -> Build | None:
    if is_watched(reader, op):
        return None
    for x, inverse in both_ways(op, "Mul"):
        degrees = _inverted(reader, inverse)
        if degrees is None:
            continue
        total = reduction(reader, degrees, "Sum") or reduction(reader, degrees, "Mean")
        if total is None:
            if vanish_together(reader, x, degrees):
                return _without_infinity(x, inverse)
            continue
        base = square_of(reader, total.x)
        inside = total.x if base is None else base
        if any(reader.same(each, inside) for each, _ in factors(reader, x)):
            return _without_infinity(x, inverse)
    return None


def _match_diagonal(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches inverse degrees on a diagonal or at edges, which only multiply."""
    inverse = op.inputs[0]
    if is_watched(reader, op):
        return None
    users = {each.type for each in op.outputs[0].consumers()}
    degrees = _inverted(reader, inverse)
    allowed = {"Mul"} if op.type == "GatherV2" else _MATRIX_PRODUCTS
    if degrees is None or not users or not users <= allowed:
        return None
    # A degree that underflows is not that of a lonely node.
    if logarithms(reader).of(degrees) is not None or wider.may_vanish(reader, degrees):
        return None
    if reader.op(degrees).type not in {"Sum", "UnsortedSegmentSum", "SegmentSum"}:
        return None

    def build(value: Value) -> tf.Tensor:
        found = value(inverse)
        is_lonely = tf.equal(value(degrees), 0) & tf.math.is_inf(found)
        known = tf.where(is_lonely, tf.zeros_like(found), found)
        return raw_kernel(op)([known, *(value(each) for each in op.inputs[1:])])[0]

    is_alike = degrees.shape.is_compatible_with(inverse.shape)
    return build if is_alike and degrees.shape.rank == inverse.shape.rank else None


def _without_infinity(x: tf.Tensor, inverse: tf.Tensor) -> Build:
    return lambda value: times_inverse(value(x), value(inverse))


def _inverted(reader: Reader, tensor: tf.Tensor) -> tf.Tensor | None:
    """Returns what a tensor is a negative power of, if that may be 0."""
    for each in reshaped(reader, tensor):
        op = each.op
        exponent = reader.scalar(op.inputs[1]) if op.type == "Pow" else None
        is_inverse = op.type in RECIPROCALS | {"Rsqrt"} or (
            exponent is not None and exponent < 0
        )
        if is_inverse:
            return None if is_regular(reader, op) else op.inputs[0]
        if op.type in DIVISIONS:
            if is_regular(reader, op):
                return None
            roots = (root_of(reader, below) for below in reshaped(reader, op.inputs[1]))
            return next((root for root in roots if root is not None), op.inputs[1])
    return None


def _match_mean_of_kept(op: tf.Operation, reader: Reader) -> Build | None:
    found = reduction(reader, op.outputs[0], "Mean")
    if found is None or is_watched(reader, op):
        return None
    x, axes, keepdims = found
    if axes is None or 0 not in axes or not _is_kept(reader, x, _DEPTH):
        return None
    return lambda value: ops.mean(value(x), axis=axes, keepdims=keepdims)


def _is_kept(reader: Reader, tensor: tf.Tensor, depth: int) -> bool:
    """Returns whether a tensor has what `boolean_mask` or `x[:n]` left."""
    if not depth or tensor.shape.rank is None or tensor.shape[:1] != [None]:
        return False
    op = reader.value_source(tensor).op
    if op.type == "GatherV2":
        return _is_where(reader, op.inputs[1])
    if op.type == "Slice" or (
        op.type == "StridedSlice" and not op.get_attr("shrink_axis_mask")
    ):
        return any(reader.constant(each) is None for each in op.inputs[1:3])
    return any(_is_kept(reader, each, depth - 1) for each in op.inputs)


def _is_where(reader: Reader, indices: tf.Tensor) -> bool:
    op = reader.op(indices)
    while op.type in {"Cast", "Reshape", "Squeeze", "StridedSlice"}:
        op = reader.op(op.inputs[0])
    return op.type == "Where"


def _match_temperature(op: tf.Operation, reader: Reader) -> Build | None:
    quotient = reader.op(op.inputs[0])
    if quotient.type not in DIVISIONS:
        return None
    z, temperature = quotient.inputs
    rank = temperature.shape.rank
    is_one = rank == 0 or (rank and z.shape.rank and temperature.shape[-1] == 1)
    if not is_one or reader.scalar(temperature) or is_watched(reader, op):
        return None

    return lambda value: softmax_at_temperature(value(z), value(temperature))


FRACTION_OF_ZERO = Rule(
    name="fraction-of-zero",
    before="sum(x * w) / sum(w), cumsum(x * w) / cumsum(w), a / (a + b), "
    "sum(a * b) / (sum(a) + sum(b)), "
    "sum(a * b) / sqrt(sum(a * a) * sum(b * b)), segment_sum(x) / count, "
    "(x - min(x)) / (max(x) - min(x)), mean(x) / std(x), "
    "(log(a) + b * t) / sqrt(t), (a / b) / (1 + a / b)",
    after="the same, from float64 where products underflow; 0 for 0 / 0, and 1 for "
    "a / a, for b = 0 and for x ** n / (x ** n + b) where the power overflows",
    fails_when="all weights are 0, a and b are, or a segment is empty",
    reference="tfsafe.ops.xdivy",
    op_types=DIVISIONS,
    match=_match_fraction,
)
RULES = (
    FRACTION_OF_ZERO,
    Rule(
        name="normal-score",
        before="erf(x / y), exp(-square(x / y)), m * cdf(m / s) + s * pdf(m / s)",
        after="the same, 0 for 0 / 0",
        fails_when="x and y are 0: a difference and its deviation",
        reference="Jones, Schonlau and Welch, Journal of Global Optimization 13, 1998: "
        "no improvement is expected of a point that is known",
        op_types=DIVISIONS,
        match=_match_score,
    ),
    Rule(
        name="degree-normalisation",
        before="a * sum(a) ** -0.5, x * rsqrt(mean(x * x))",
        after="the same, 0 for 0 times infinity",
        fails_when="a row of a is 0: a node without edges",
        reference="Kipf and Welling, ICLR 2017: an isolated node has no neighbours",
        op_types=["Mul"],
        match=_match_degrees,
    ),
    Rule(
        name="inverse-degrees",
        before="matmul(diag(sum(a) ** -0.5), x), w * gather(rsqrt(segment_sum(w)), i)",
        after="the same, 0 for an infinite element of the diagonal or of an edge",
        fails_when="a row of a is 0: a node without edges",
        reference="Kipf and Welling, ICLR 2017: an isolated node has no neighbours",
        op_types=["MatrixDiag", "MatrixDiagV2", "MatrixDiagV3", "Diag", "GatherV2"],
        match=_match_diagonal,
    ),
    Rule(
        name="mean-of-kept",
        before="mean(boolean_mask(x, mask)), mean(x[:n])",
        after="ops.mean(boolean_mask(x, mask))",
        fails_when="the mask keeps nothing, or n is 0",
        reference="tfsafe.ops.mean",
        op_types=["Mean", "Squeeze"],
        match=_match_mean_of_kept,
    ),
    Rule(
        name="softmax-temperature",
        before="softmax(z / t)",
        after="softmax((z - max(z)) / t), 0 for 0 / 0",
        fails_when="t is 0, or so small that z / t overflows",
        reference="the limit for t -> 0",
        op_types=["Softmax"],
        match=_match_temperature,
    ),
)
