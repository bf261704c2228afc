"""Rules for hyperbolic distances, whose cosine is a difference that rounds to 1."""

import functools
import operator

import tensorflow as tf

from tfsafe import ops
from tfsafe._limits import LIMITS
from tfsafe.graph import DIVISIONS, MATRIX_PRODUCTS, SUMS, OpFact, op_types
from tfsafe.ops.formulas.differences import angles
from tfsafe.ops.kernels import precision
from tfsafe.rewriting.analysis import wider
from tfsafe.rewriting.analysis.near_one import product_of
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.finiteness import is_watched
from tfsafe.rewriting.facts.tensors import Reader, both_ways
from tfsafe.rewriting.match.arithmetic import number, root_of, square_of, terms
from tfsafe.rewriting.match.linear import Part, parts

_TOTALS = MATRIX_PRODUCTS | {"Cumsum", "Einsum", "Mean", "Sum"}
_KEEP = op_types(OpFact.MOVES | OpFact.PICKS) | {"Mul", "Neg", "Sqrt"} | DIVISIONS
_INSIDE = frozenset({
    *(_KEEP | SUMS | _TOTALS),
    *("ConcatV2", "Maximum", "Minimum", "Pack", "Square", "SquaredDifference"),
})
# Of these dtypes a formula is computed in float64.
_NARROW = {tf.float32, *precision.HALF}
_DEPTH = 6
# Longer formulas begin with what is in float32.
_WIDE_DEPTH = 12


def is_added(reader: Reader, tensor: tf.Tensor, depth: int = _DEPTH) -> bool:
    """Returns whether a tensor was added up, and so rounded."""
    op = reader.op(tensor)
    if op.type in SUMS | _TOTALS:
        return any(reader.constant(each) is None for each in op.inputs)
    if op.type not in _KEEP or not depth:
        return False
    return any(is_added(reader, each, depth - 1) for each in op.inputs)


def _match(op: tf.Operation, reader: Reader) -> Build | None:
    x = op.inputs[0]
    total = _unclipped(reader, x)
    if is_watched(reader, op) or not is_added(reader, total):
        return None
    if reader.bounds(total).low >= 1:
        return None
    if x.dtype not in _NARROW:
        function = angles.above(ops.acosh, 1.0, 1.0)
        return lambda value: function(value(x))
    found = terms(reader, total)

    def build(value: Value) -> tf.Tensor:
        wide = _Wide(reader, value)
        sizes = [tf.abs(each.factor * wide.of(each.tensor)) for each in found]
        size, eps = functools.reduce(operator.add, sizes), LIMITS[x.dtype.name].eps
        return tf.cast(angles.acosh_of_sum(wide.of(x), size, eps), x.dtype)

    return build


def _unclipped(reader: Reader, tensor: tf.Tensor) -> tf.Tensor:
    """Returns `x` for `max(x, 1)`, for a clipped x, and for x."""
    while True:
        op = reader.op(tensor)
        for x, limit in both_ways(op, "Maximum", "Minimum"):
            if (number(reader, limit, x) or 0) >= 1:
                tensor = x
                break
        if reader.op(tensor) is op:
            return tensor


def _match_product(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches sums of `sqrt(c + sum(x * x)) * sqrt(d + sum(y * y)) - sum(x * y)`."""
    whole = op.outputs[0]
    if whole.dtype != tf.float32 or is_watched(reader, op):
        return None
    found = parts(reader, whole)
    if not any(_are_opposite(reader, a, b) for a in found for b in found):
        return None
    return lambda value: tf.cast(_Wide(reader, value).of(whole), whole.dtype)


def _are_opposite(reader: Reader, lengths: Part, total: Part) -> bool:
    """Returns whether two parts are a product of lengths, and of their vectors."""
    if lengths.tensor is None or total.tensor is None or total.axes is None:
        return False
    outer, inner = (product_of(reader, x) for x in (lengths.tensor, total.tensor))
    sizes = lengths.factor * outer.factor, total.factor * inner.factor
    pairs = inner.above, inner.above[::-1]
    is_product = not outer.below and not inner.below
    return (
        is_product
        and sizes[0] == -sizes[1]
        and any(
            len(pair) == len(outer.above) == 2
            and all(
                _is_length(reader, a, x) for a, x in zip(outer.above, pair, strict=True)
            )
            for pair in pairs
        )
    )


def _is_length(reader: Reader, root: tf.Tensor, x: tf.Tensor) -> bool:
    """Returns whether a tensor is the root of the square of x and a number."""
    inside = root_of(reader, root)
    found = [] if inside is None else parts(reader, inside)
    squares = [
        square_of(reader, each.tensor)
        for each in found
        if each.tensor is not None and each.axes is not None and each.factor == 1
    ]
    is_of_x = any(each is not None and reader.same(each, x) for each in squares)
    return is_of_x and len(found) == 2


class _Wide:
    """Makes a formula in float64, from where sums of products begin."""

    def __init__(self, reader: Reader, value: Value):
        self._reader = reader
        self._value = value
        self._made: dict[str, tf.Tensor] = {}

    def of(
        self, tensor: tf.Tensor, depth: int = _WIDE_DEPTH, is_summed: bool = False
    ) -> tf.Tensor:
        """Returns the counterpart of a tensor."""
        if tensor.dtype not in _NARROW:
            return self._value(tensor)
        source = self._reader.source(tensor)
        if source.name not in self._made:
            self._made[source.name] = self._compute(source, depth, is_summed)
        return self._made[source.name]

    def _compute(self, tensor: tf.Tensor, depth: int, is_summed: bool) -> tf.Tensor:
        op = tensor.op
        # The products of matrices before a sum are layers of a model.
        is_layer = is_summed and op.type in MATRIX_PRODUCTS
        is_inside = depth > 0 and op.type in _INSIDE and not is_layer
        if not is_inside or self._reader.constant(tensor) is not None:
            return tf.cast(self._value(tensor), tf.float64)
        is_summed |= op.type in _TOTALS
        return wider.run(op, [self.of(x, depth - 1, is_summed) for x in op.inputs])


RULES = (
    Rule(
        name="rounded-acosh",
        before="acosh(x), where x is a sum, also clipped",
        after="the same, computed in float64; of 1 where x rounds to slightly less",
        fails_when="x is near 1: its digits are lost, and below 1 it is NaN",
        reference="rounding of a sum",
        op_types=["Acosh"],
        match=_match,
    ),
    Rule(
        name="lorentz-product",
        before="sqrt(1 + sum(x * x)) * sqrt(1 + sum(y * y)) - sum(x * y)",
        after="the same, computed in float64 and rounded once",
        fails_when="x is near y: the products cancel",
        reference="rounding of a sum",
        op_types=SUMS,
        match=_match_product,
    ),
)
