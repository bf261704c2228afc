"""The rule for even functions of the length of a vector."""

from typing import NamedTuple

import tensorflow as tf

from tfsafe.ops.formulas.limits import removable
from tfsafe.ops.formulas.limits.removable import Removable
from tfsafe.rewriting.engine.rule import Build, Rule, Value
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.match.arithmetic import Term, square_of, terms
from tfsafe.rewriting.match.index import Pattern
from tfsafe.rewriting.match.reductions import squared_length
from tfsafe.rewriting.match.trees import argument


class _Even(NamedTuple):
    """An even function: `function(x) * x ** power`."""

    pattern: Pattern
    function: Removable
    power: int = 0


_EVEN = (
    _Even(("Cos", "x"), removable.cos),
    _Even(("Cosh", "x"), removable.cosh),
    _Even(("Sub", 1, ("Cos", "x")), removable.one_minus_cos_over_square, 2),
)


def _match(op: tf.Operation, reader: Reader) -> Build | None:
    length = square_of(reader, op.outputs[0])
    if length is not None:
        return _squared(reader, length)
    for each in _EVEN:
        found = argument(reader, op.outputs[0], each.pattern)
        if found is not None:
            sign, term = found
            return _even(reader, each, sign, term)
    return None


def _squared(reader: Reader, length: tf.Tensor) -> Build | None:
    square = squared_length(reader, Term(1.0, length))
    if square is None:
        return None
    return lambda value: tf.cast(square(value), length.dtype)


def _even(reader: Reader, even: _Even, sign: int, term: Term) -> Build | None:
    scaled = terms(reader, term.tensor)
    if len(scaled) != 1:
        return None
    inside = Term(scaled[0].factor * term.factor, scaled[0].tensor)
    square = squared_length(reader, inside)
    if square is None:
        return None

    def build(value: Value) -> tf.Tensor:
        whole = square(value)
        made = even.function.of_length(whole)
        if even.power:
            made *= whole
        made = tf.cast(made, term.tensor.dtype)
        return made if sign > 0 else -made

    return build


RULES = (
    Rule(
        name="function-of-length",
        before="cos(norm(v)), cosh(norm(v)), 1 - cos(norm(v)), norm(v) ** 2",
        after="the same; near 0 the power series in sum(v * v)",
        fails_when="v = 0: the slope is NaN, and the second derivative NaN or 0",
        reference="Taylor series; Grassia, Journal of Graphics Tools 3(3), 1998",
        op_types=("Cos", "Cosh", "Sub", "Add", "AddV2", "Mul", "Pow", "Square"),
        match=_match,
    ),
)
