"""The rule for odd functions that are written by a sign and a magnitude."""

from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from tfsafe import ops
from tfsafe._limits import LIMITS
from tfsafe.ops.formulas.differences.uncancelled import sqrt1pm1
from tfsafe.ops.formulas.out_of_range import fractions
from tfsafe.rewriting.analysis.elementwise import FUNCTIONS, Elementwise
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.finiteness import is_watched
from tfsafe.rewriting.facts.tensors import Reader, both_ways
from tfsafe.rewriting.match.arithmetic import walk
from tfsafe.rewriting.match.index import Pattern
from tfsafe.rewriting.match.products import scaled
from tfsafe.rewriting.match.trees import Tree, Trees

_SIZE = ("Abs", "x")


def _odd_functions() -> Iterator[Tree]:
    """Yields `sign(x) * f(abs(x))` of functions with `f(0) = 0`."""
    rows: tuple[tuple[Pattern, fractions.Function], ...] = (
        (("Log", ("Add", 1, _SIZE)), ops.log1p),
        (("Log1p", _SIZE), ops.log1p),
        (("Sub", ("Exp", _SIZE), 1), ops.expm1),
        (("Expm1", _SIZE), ops.expm1),
        (("Sub", ("Sqrt", ("Add", 1, _SIZE)), 1), sqrt1pm1),
    )
    for pattern, function in rows:
        yield Tree(("Mul", ("Sign", "x"), pattern), fractions.odd(function))
    multiple = ("Mul", "#k", _SIZE)
    for pattern in (("Log", ("Add", 1, multiple)), ("Log1p", multiple)):
        yield Tree(
            ("Mul", ("Sign", "x"), pattern),
            lambda x, k: fractions.odd(lambda size: ops.log1p(k * size))(x),
            where=lambda k: k > 0,
        )


_TREES = Trees(*_odd_functions())
_DEPTH = 16
# How far from 0 a slope is tried, and how much it may differ from one half as far away.
_STEP, _CLOSE = 1e-5, 1e-3
# The value at 0, relative to that at 1; the numbers in a formula are rounded.
_NOTHING = 1e-5
_BELOW = frozenset({"Less", "LessEqual"})
_ABOVE = frozenset({"Greater", "GreaterEqual"})


def _match(op: tf.Operation, reader: Reader) -> Build | None:
    known = _TREES(op, reader)
    if known is not None or is_watched(reader, op):
        return known
    for sign, function in both_ways(op, "Mul"):
        of_x = scaled(reader, sign)
        if reader.op(of_x.tensor).type == "Sign":
            x = reader.op(of_x.tensor).inputs[0]
            slope = _slope(reader, function, x)
            if slope is not None:
                return _with_slope(op, x, of_x.factor * slope)
    return None


def _with_slope(op: tf.Operation, x: tf.Tensor, slope: float) -> Build:
    def build(value: Value) -> tf.Tensor:
        made = value(op.inputs[0]) * value(op.inputs[1])
        return fractions.with_slope_at_zero(made, value(x), slope)

    return build


def _slope(reader: Reader, function: tf.Tensor, x: tf.Tensor) -> float | None:
    """Returns the slope at 0 of a function of `abs(x)` that is 0 there."""
    function = _branch_at_zero(reader, function, x)
    size = None
    for each, is_inside in walk(reader, function, FUNCTIONS, _DEPTH):
        if is_inside or reader.scalar(each) is not None:
            continue
        if not _is_size(reader, each, x):
            return None
        size = each
    if size is None:
        return None
    formula = Elementwise(reader, function, [size])
    steps = np.array([0.0, _STEP / 2, _STEP, 1.0])
    start, near, far, whole = formula.at({reader.number(size): steps}).tolist()
    near, far = (near - start) / (_STEP / 2), (far - start) / _STEP
    slope = 2 * near - far
    is_zero = abs(start) < _NOTHING * abs(whole)
    is_finite = abs(slope) <= LIMITS[function.dtype.name].max
    is_smooth = is_finite and abs(near - far) < _CLOSE * abs(slope)
    return slope if is_zero and is_smooth else None


def _is_size(reader: Reader, tensor: tf.Tensor, x: tf.Tensor) -> bool:
    op = reader.op(tensor)
    return op.type == "Abs" and reader.same(op.inputs[0], x)


def _branch_at_zero(reader: Reader, tensor: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """Returns what `where(abs(x) < k, a, b)` is near 0."""
    op = reader.op(tensor)
    if op.type not in {"Select", "SelectV2"}:
        return tensor
    compared = reader.op(op.inputs[0])
    if compared.type not in _BELOW | _ABOVE:
        return tensor
    limit = reader.scalar(compared.inputs[1])
    if limit is None or limit <= 0 or not _is_size(reader, compared.inputs[0], x):
        return tensor
    return op.inputs[1 if compared.type in _BELOW else 2]


# Before the rules for logarithms, which take a part of these.
RULES = (
    Rule(
        name="odd-function",
        before="sign(x) * log(1 + abs(x)), sign(x) * (sqrt(1 + abs(x)) - 1), "
        "sign(x) * f(abs(x)) of any f with f(0) = 0",
        after="the same with its slope at 0",
        fails_when="x is 0: the slope is 0 in place of 1",
        reference="chain rule on either side of 0",
        op_types=("Mul",),
        match=_match,
    ),
)
