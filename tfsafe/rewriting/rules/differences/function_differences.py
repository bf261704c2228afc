"""Rules for the difference of one function at two points."""

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import tensorflow as tf

from tfsafe.graph import SUMS
from tfsafe.ops.formulas.differences.function_differences import (
    DIFFERENCES,
    Difference,
    of_power,
)
from tfsafe.ops.kernels import activation
from tfsafe.rewriting.analysis import holes
from tfsafe.rewriting.analysis.elementwise import elementwise
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.tensors import NARROW, Reader
from tfsafe.rewriting.log_space.analysis import logarithms
from tfsafe.rewriting.match.arithmetic import (
    Term,
    beside_number,
    is_sum,
    number,
    square_of,
    terms,
)
from tfsafe.rewriting.match.products import inverted

# The slopes of these need their argument, not their value.
_WITH_SLOPES = {"Sigmoid": activation.sigmoid, "Tanh": activation.tanh}

# The values at the numbers at which people write them.
_AT_NUMBERS: Mapping[str, Callable[..., float]] = {
    "Log": math.log,
    "Pow": math.pow,
    "Sigmoid": lambda c: 1 / (1 + math.exp(-c)),
    "Softplus": lambda c: math.log1p(math.exp(c)),
    "Sqrt": math.sqrt,
}
_EVERYWHERE = frozenset({"Sigmoid", "Softplus"})
# How far off a number of float32 may be.
_CLOSE = 2e-7


def _match(op: tf.Operation, reader: Reader) -> Build | None:
    if op.type not in SUMS or len(op.inputs) != 2:
        return None
    found = terms(reader, op.outputs[0])
    if len(found) != 2:
        return None
    tensors = [each.tensor for each in found]
    ones = [_log_one_plus(reader, each) for each in tensors]
    (first, name, a, one), (second, other, b, two) = (
        known or _function(reader, each)
        for known, each in zip(
            ones if all(ones) else [None, None], tensors, strict=True
        )
    )
    scale = found[0].factor
    if name == other == "Pow" and not reader.same(first.inputs[1], second.inputs[1]):
        return None
    if scale != -found[1].factor or name != other or one != two:
        return _less_number(reader, op.outputs[0])
    if name not in DIFFERENCES and name != "Pow":
        return None
    if any(reader.constant(each.tensor) is not None for each in (a, b)):
        return None
    is_narrow = op.outputs[0].dtype in NARROW
    if is_narrow and all(square_of(reader, each) is not None for each in tensors):
        # They have a rule of their own, after the one for any formula.
        return None
    if name in {"Pow", "Reciprocal"} and _has_hole(reader, op.outputs[0]):
        return None
    step = _step(reader, a, b)
    if step is None:
        step = _step(reader, b, a)
        if step is not None:
            first, second, a, b, scale = second, first, b, a, -scale
    is_whole = step is None and not all(ones)
    if any(not _is_plain(reader, each, is_whole) for each in (first, second)):
        return None

    def build(value: Value) -> tf.Tensor:
        difference = _difference(name, first, value)
        of_a, of_b = (_known(each, value) for each in (first, second))
        if one != 1:
            of_a, of_b = of_a / one, of_b / one
        if step is None:
            made = difference.of_points(
                b.make(value), _distance(a, b, value), of_a, of_b
            )
        else:
            made = difference.of_step(b.make(value), step.make(value), of_a, of_b)
        return made if scale * one == 1 else scale * one * made

    return build


def _has_hole(reader: Reader, difference: tf.Tensor) -> bool:
    """Returns whether two poles cancel, as in `1 / x - 1 / y(x)`.

    Formulas in float64 have no other rule.
    """
    is_narrow = difference.dtype in NARROW
    formula = elementwise(reader, difference) if is_narrow else None
    hole = None if formula is None else holes.of(formula)
    return hole is not None and not hole.is_lost


def _distance(a: Term, b: Term, value: Value) -> tf.Tensor:
    """Returns `a - b`; numbers before them alike would round it."""
    if a.factor != b.factor:
        return a.make(value) - b.make(value)
    distance = value(a.tensor) - value(b.tensor)
    return distance if a.factor == 1 else a.factor * distance


def _known(op: tf.Operation, value: Value) -> tf.Tensor:
    """Returns the value of a function."""
    function = _WITH_SLOPES.get(op.type)
    if function is not None:
        return function(value(op.inputs[0]))
    # Other rules may know that of a logarithm where its argument underflows.
    return value(op.outputs[0])


def _difference(name: str, op: tf.Operation, value: Value) -> Difference:
    return of_power(value(op.inputs[1])) if name == "Pow" else DIFFERENCES[name]


def _less_number(reader: Reader, difference: tf.Tensor) -> Build | None:
    """Matches `f(x + c) - f(c)` of a number c; the second is written as a number."""
    for part, size in beside_number(reader, difference):
        op = reader.op(part.tensor)
        if op.type not in _AT_NUMBERS or not size:
            continue
        for step, c in _steps(reader, op.inputs[0]):
            at = _at_number(reader, op, c)
            if at is not None and abs(part.factor * at + size) <= _CLOSE * abs(size):
                return _from_number(op, part.factor, c, at, step)
    return None


def _steps(reader: Reader, x: tf.Tensor) -> Iterator[tuple[Term, float]]:
    """Yields d and the number c where x is `d + c`."""
    yield Term(1.0, x), 0.0
    for step, c in beside_number(reader, x):
        if reader.constant(step.tensor) is None:
            yield step, c


def _at_number(reader: Reader, op: tf.Operation, c: float) -> float | None:
    """Returns the value of a function at a number, or None."""
    others = [number(reader, each, op.inputs[0]) for each in op.inputs[1:]]
    if None in others or not (c > 0 or op.type in _EVERYWHERE):
        return None
    with contextlib.suppress(OverflowError):
        return _AT_NUMBERS[op.type](c, *others)
    return None


def _from_number(
    op: tf.Operation, factor: float, c: float, at: float, step: Term
) -> Build:
    def build(value: Value) -> tf.Tensor:
        of_a = _known(op, value)
        b, of_b = (tf.constant(each, of_a.dtype) for each in (c, at))
        difference = _difference(op.type, op, value)
        made = difference.of_step(b, step.make(value), of_a, of_b)
        return made if factor == 1 else factor * made

    return build


class _Function(NamedTuple):
    """An operation as a function of one term; `factor` is c of `c / x`."""

    op: tf.Operation
    name: str
    x: Term
    factor: float = 1.0


def _function(reader: Reader, tensor: tf.Tensor) -> _Function:
    op = reader.op(tensor)
    inverse = inverted(reader, op)
    if inverse is not None:
        return _Function(op, "Reciprocal", Term(1.0, inverse.tensor), inverse.factor)
    return _Function(op, op.type, Term(1.0, op.inputs[0] if op.inputs else tensor))


def _log_one_plus(reader: Reader, tensor: tf.Tensor) -> _Function | None:
    """Reads `log(1 + x)`, whose digits the sum has not, as a function of x."""
    op = reader.op(tensor)
    for x, one in beside_number(reader, op.inputs[0]) if op.type == "Log" else ():
        if one == 1:
            return _Function(op, "Log1p", x)
    return None


def _step(reader: Reader, a: Term, b: Term) -> Term | None:
    """Returns d where a is `b + d`."""
    if a.factor != 1 or b.factor != 1:
        return None
    found = terms(reader, a.tensor)
    for one, other in (found, found[::-1]) if len(found) == 2 else ():
        if one.factor == 1 and reader.same(one.tensor, b.tensor):
            return other
    return None


def _is_plain(reader: Reader, op: tf.Operation, is_sum_known: bool) -> bool:
    """Returns whether no rule knows the logarithm better than from its argument."""
    if op.type != "Log":
        return True
    x = op.inputs[0]
    found = logarithms(reader).of(x)
    if found is not None and found.name:
        return False
    # The logarithm of `1 + x` has digits that the sum has not.
    return not (is_sum_known and is_sum(reader.op(x))) or not any(
        number(reader, each, other) is not None
        for each, other in zip(
            reader.op(x).inputs, reversed(reader.op(x).inputs), strict=True
        )
    )


RULES = (
    Rule(
        name="difference-of-function",
        before="f(a) - f(b) of a logarithm, exponential, root, power, reciprocal, "
        "sine, cosine, tangent, arctangent, sigmoid, tanh, erf or softplus",
        after="by a - b, such as log1p((a - b) / b), exp(b) * expm1(a - b) or "
        "2 cos((a + b) / 2) sin((a - b) / 2), where the two are near each other",
        fails_when="a is near b, or both are in a tail",
        reference="addition theorems",
        op_types=SUMS,
        match=_match,
    ),
)
