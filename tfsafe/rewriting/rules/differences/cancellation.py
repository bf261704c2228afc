"""Rules for differences that cancel."""

import math
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from tfsafe import ops
from tfsafe._limits import LIMITS
from tfsafe.graph import SUMS
from tfsafe.ops.formulas import unchanged_values
from tfsafe.ops.formulas.differences import angles, uncancelled
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.zeros import square
from tfsafe.rewriting.analysis.near_one import less_one
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.tensors import Reader, both_ways
from tfsafe.rewriting.log_space.form import in_float32
from tfsafe.rewriting.match.arithmetic import (
    Term,
    beside_number,
    negated,
    squared,
    terms,
)
from tfsafe.rewriting.match.reductions import Reduction, mean_of, single_mean
from tfsafe.rewriting.match.trees import Tree, Trees, scaled_argument
from tfsafe.rewriting.rules import references
from tfsafe.rewriting.rules.differences import roots_minus

_BINARY_SUMS = ("Sub", "Add", "AddV2")
# A quarter of a turn, as the dtypes round it.
_RIGHT_ANGLES = (math.pi / 2, float(np.float32(math.pi / 2)))
# How far from an eighth of a turn one is in float32.
_ROUNDED = 1e-7
# A larger number that is added to a difference is part of the formula.
_LARGEST_GUARD = 0.01


def _match_variance(op: tf.Operation, reader: Reader) -> Build | None:
    found = difference_form(reader, op.outputs[0])
    if found is None:
        return None
    x, axes, keepdims = found
    return lambda value: ops.variance(value(x), axis=axes, keepdims=keepdims)


def difference_form(reader: Reader, tensor: tf.Tensor) -> Reduction | None:
    """Reads `mean(x^2) - mean(x)^2`."""
    op = reader.op(tensor)
    found = terms(reader, op.outputs[0]) if op.type in SUMS else []
    if len(found) != 2:
        return None
    first, second = found
    if squared(reader, second.tensor) is None:
        first, second = second, first
    whole, base = mean_of(reader, first), squared(reader, second.tensor)
    if whole is None or base is None or base.minus is not None:
        return None
    factor, of_squares = whole
    inner, mean = squared(reader, of_squares.x), _plain_mean(reader, base.x)
    if inner is None or inner.minus is not None or mean is None:
        return None
    is_alike = mean.axes == of_squares.axes and mean.keepdims == of_squares.keepdims
    is_difference = abs(factor - 1) < 1e-6 and second.factor == -1
    if is_alike and is_difference and reader.same(inner.x, mean.x):
        return Reduction(mean.x, mean.axes, mean.keepdims)
    return None


def _plain_mean(reader: Reader, tensor: tf.Tensor) -> Reduction | None:
    # A mean behind `tf.stop_gradient` has another gradient.
    if reader.op(tensor).type == "StopGradient":
        return None
    return single_mean(reader, tensor)


def _match_exp(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `exp(x) - 1`, and `c - c * exp(x)` of a number c."""
    found = _EXP_MINUS_ONE(op, reader)
    if found is not None:
        return found
    for term, c in beside_number(reader, op.outputs[0]):
        inner = reader.op(term.tensor)
        if inner.type == "Exp" and term.factor == -c:
            return _scaled(term.factor, ops.expm1, inner.inputs[0])
    return None


def _match_complement(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `1 - f(x)`, and `c + c * cos(x)` or `c - c * sin(x)` of a number c."""
    found = _COMPLEMENTS(op, reader)
    if found is not None:
        return found
    for sign, x, _ in scaled_argument(reader, op.outputs[0], _ONE_MINUS_SQUARE):
        # Of `1 - exp(x) ** 2`, the difference of the root from 1 is known.
        if less_one(reader, x.tensor) is None:
            return _one_minus_square(sign, x)
    for term, c in beside_number(reader, op.outputs[0]):
        inner = reader.op(term.tensor)
        gap = abs(c / term.factor + math.pi / 4) if inner.type == "Atan" else 1.0
        if gap < max(LIMITS[op.outputs[0].dtype.name].eps, _ROUNDED):
            return _less_eighth(reader, term.factor, inner.inputs[0])
        function = _WAVES.get((inner.type, term.factor == c))
        if function is not None and abs(term.factor) == abs(c):
            return _scaled(c, function, inner.inputs[0])
    return None


def _less_eighth(reader: Reader, factor: float, x: tf.Tensor) -> Build:
    less = less_one(reader, x)

    def build(value: Value) -> tf.Tensor:
        whole = value(x)
        step = whole - 1 if less is None else less(value)
        return factor * angles.atan_less_eighth(whole, step)

    return in_float32(build, x.dtype)


def _scaled(
    factor: float, function: Callable[[tf.Tensor], tf.Tensor], x: tf.Tensor
) -> Build:
    return lambda value: factor * function(value(x))


def _match_guard(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches a small number added to a difference."""
    for inner, guard in both_ways(op, *_BINARY_SUMS):
        small, difference = reader.scalar(guard), reader.op(inner)
        if not small or difference.type not in _BINARY_SUMS:
            continue
        if reader.constant(inner) is None and _may_merge(reader, difference, small):
            return _held(op, inner)
    return None


def _may_merge(reader: Reader, difference: tf.Operation, small: float) -> bool:
    """Returns whether `(a + small) - b` may differ from `(a - b) + small`."""
    constants = [reader.scalar(each) for each in difference.inputs]
    whole = next((each for each in constants if each), None)
    if whole is not None:
        return _is_lossy(whole, small, difference.outputs[0].dtype)
    is_difference = difference.type == "Sub" or any(
        negated(reader, each) is not None for each in difference.inputs
    )
    return is_difference and abs(small) <= _LARGEST_GUARD


def _is_lossy(a: float, b: float, dtype: tf.DType) -> bool:
    """Returns whether the sum or the difference of two numbers is rounded."""
    kind = dtype.as_numpy_dtype
    exact = [np.float64(a) + np.float64(b), np.float64(a) - np.float64(b)]
    return any(np.float64(kind(each)) != each for each in exact)


def _held(op: tf.Operation, inner: tf.Tensor) -> Build:
    raw = getattr(tf.raw_ops, op.type)

    def build(value: Value) -> tf.Tensor:
        x, y = (
            unchanged_values.held(value(each)) if each is inner else value(each)
            for each in op.inputs
        )
        return raw(x=x, y=y)

    return build


def _angle_left(x: tf.Tensor) -> tf.Tensor:
    return ops.atan2(tf.ones_like(x), x)


def _one_minus_square(sign: int, x: Term) -> Build:
    def build(value: Value) -> tf.Tensor:
        made = x.make(value)
        return sign * uncancelled.difference_of_squares(tf.ones([], made.dtype), made)

    return build


_erf = precision.runs_in_float32(tf.math.erf)
_erfc = precision.runs_in_float32(tf.math.erfc)


def _has_exact_root(k: float) -> bool:
    # A root of few digits: multiplied by it, a tensor is not rounded much.
    return k > 0 and math.sqrt(k) * 16 % 1 == 0


_EXP_MINUS_ONE = Trees(Tree(("Sub", ("Exp", "x"), 1), ops.expm1))
_COMPLEMENTS = Trees(
    Tree(("Sub", 1, ("Cos", "x")), uncancelled.one_minus_cos),
    Tree(("Add", 1, ("Cos", "x")), uncancelled.one_plus_cos),
    Tree(("Sub", 1, ("Sin", "x")), uncancelled.one_minus_sin),
    Tree(("Add", 1, ("Sin", "x")), lambda x: uncancelled.one_minus_sin(-x)),
    Tree(("Sub", 1, ("Sigmoid", "x")), lambda x: ops.sigmoid(-x)),
    Tree(("Add", 1, ("Tanh", "x")), uncancelled.one_plus_tanh),
    Tree(("Sub", 1, ("Tanh", "x")), lambda x: uncancelled.one_plus_tanh(-x)),
    Tree(("Add", 1, ("Erf", "x")), lambda x: _erfc(-x)),
    Tree(("Sub", 1, ("Erfc", "x")), _erf),
    Tree(("Sub", ("Cosh", "x"), 1), uncancelled.cosh_minus_one),
    Tree(("Sub", 1, ("Square", ("Tanh", "x"))), uncancelled.sech_squared),
    Tree(("Sub", 1, ("Square", ("Cos", "x"))), lambda x: square(tf.sin(x))),
    Tree(("Sub", 1, ("Square", ("Sin", "x"))), lambda x: square(tf.cos(x))),
    Tree(("Sub", 1, ("Square", ("Sub", 1, "x"))), uncancelled.twice_less_square),
    Tree(("Sub", ("Square", ("Add", 1, "x")), 1), uncancelled.twice_plus_square),
    *(Tree(("Sub", turn, ("Atan", "x")), _angle_left) for turn in _RIGHT_ANGLES),
)
_ONE_MINUS_SQUARE = (("Sub", 1, ("Square", "x")),)
_WAVES = {
    ("Cos", True): uncancelled.one_plus_cos,
    ("Sin", False): uncancelled.one_minus_sin,
    ("Sin", True): lambda x: uncancelled.one_minus_sin(-x),
}
RULES = (
    Rule(
        name="variance",
        before="mean(x * x) - mean(x) ** 2",
        after="ops.variance(x)",
        fails_when="the mean is much larger than the spread: no digit is left, or the "
        "result is negative",
        reference=references.VARIANCE,
        op_types=SUMS,
        match=_match_variance,
    ),
    Rule(
        name="exp-minus-one",
        before="exp(x) - 1, c - c * exp(x)",
        after="ops.expm1(x), -c * ops.expm1(x)",
        fails_when="x is near 0",
        reference="tfsafe.ops.expm1",
        op_types=_BINARY_SUMS,
        match=_match_exp,
    ),
    Rule(
        name="complement",
        before="1 - cos(x), 1 + cos(x), 1 - sin(x), cosh(x) - 1, 1 - sigmoid(x), "
        "1 - tanh(x), 1 + tanh(x), 1 + erf(x), 1 - erfc(x), 1 - tanh(x)**2, "
        "1 - cos(x)**2, 1 - x**2, 1 - (1 - x)**2, pi / 2 - atan(x) or "
        "2 * atan(exp(x)) - pi / 2",
        after="2 sin(x / 2)^2, 2 cos(x / 2)^2, cos(x)^2 / (1 + sin(x)), "
        "2 sinh(x / 2)^2, sigmoid(-x), 2 sigmoid(-2 x), 2 sigmoid(2 x), erfc(-x), "
        "erf(x), 1 / cosh(x)^2, sin(x)^2, (1 - x)(1 + x), "
        "x (2 - x), atan2(1, x) or 2 atan(expm1(x) / (exp(x) + 1))",
        fails_when="what is subtracted is near 1",
        reference="half-angle formula; Kahan, IEEE lecture notes, 1997",
        op_types=SUMS,
        match=_match_complement,
    ),
    Rule(
        name="difference-of-squares",
        before="a * a - b * b, a ** 2 - 4 * b ** 2, (a + b) ** 2 - a ** 2",
        after="(a - b) * (a + b), (a - 2 * b) * (a + 2 * b), b * (2 * a + b)",
        fails_when="a is near b; a square overflows",
        reference="Goldberg, ACM Computing Surveys 23(1), 1991, section 1.4",
        match=Trees(
            Tree(
                ("Sub", ("Square", ("Add", "x", "y")), ("Square", "x")),
                lambda x, y: y * (2 * x + y),
            ),
            Tree(
                ("Sub", ("Square", "x"), ("Square", "y")),
                uncancelled.difference_of_squares,
            ),
            Tree(
                ("Sub", ("Square", "x"), ("Mul", "#k", ("Square", "y"))),
                lambda x, k, y: uncancelled.difference_of_squares(x, k**0.5 * y),
                where=_has_exact_root,
            ),
            Tree(
                ("Sub", ("Mul", "#k", ("Square", "x")), ("Square", "y")),
                lambda k, x, y: uncancelled.difference_of_squares(k**0.5 * x, y),
                where=_has_exact_root,
            ),
        ),
    ),
    Rule(
        name="softplus-minus-argument",
        before="softplus(x) - x, log1p(exp(x)) - x",
        after="softplus(-x)",
        fails_when="x is large",
        reference="identity",
        match=Trees(
            *(
                Tree(("Sub", each, "x"), uncancelled.softplus_minus)
                for each in (
                    ("Softplus", "x"),
                    ("Log1p", ("Exp", "x")),
                    ("Log", ("Add", 1, ("Exp", "x"))),
                )
            )
        ),
    ),
    *roots_minus.RULES,
    Rule(
        name="guard",
        before="(1 - x) + epsilon, (a - b) + epsilon",
        after="the same, which no compiler merges into (1 + epsilon) - x",
        fails_when="compiled: a + epsilon is rounded before b is subtracted",
        reference="TensorFlow issues 47548 and 52045",
        op_types=_BINARY_SUMS,
        match=_match_guard,
    ),
)
