"""Matches `a / tanh(a * x) - b / tanh(b * x)`, such as the Brillouin function.

One of the two may be the pole alone, as in `1 / (2 * tanh(x)) - 1 / (2 * x)`.
"""

import dataclasses

import tensorflow as tf

from tfsafe.graph import DIVISIONS, RECIPROCALS, SUMS
from tfsafe.ops.formulas.limits import removable
from tfsafe.rewriting.engine.rule import Build, Value
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.match.arithmetic import Term, terms
from tfsafe.rewriting.match.products import scaled

# How far the numbers of a formula may be off: they are rounded one by one.
_CLOSE = 1e-5


@dataclasses.dataclass(frozen=True)
class _Pole:
    """A number over the hyperbolic tangent of something, or over that itself."""

    number: float
    argument: Term
    is_tanh: bool

    def rest(self, value: Value) -> tf.Tensor:
        """Returns what is left of it without `number / argument`."""
        rest = removable.coth_minus_inverse(self.argument.make(value))
        return self.number * rest


def match(op: tf.Operation, reader: Reader) -> Build | None:
    """Returns how to build such a difference without the poles that cancel."""
    if op.type not in SUMS:
        return None
    summands = terms(reader, op.outputs[0])
    if len(summands) != 2:
        return None
    one, other = (_pole(reader, each) for each in summands)
    if one is None or other is None:
        return None
    first, second = (
        scaled(reader, each.argument.tensor, each.argument.factor)
        for each in (one, other)
    )
    if not reader.same(first.tensor, second.tensor):
        return None
    if one.is_tanh == other.is_tanh and first.factor == second.factor:
        return None
    poles = one.number / first.factor, other.number / second.factor
    if abs(poles[0] + poles[1]) > _CLOSE * abs(poles[0]):
        return None
    if not (one.is_tanh and other.is_tanh):
        return one.rest if one.is_tanh else other.rest
    return lambda value: one.rest(value) + other.rest(value)


def _pole(reader: Reader, term: Term) -> _Pole | None:
    """Reads a number over `tanh(x)` or over x."""
    op, top = reader.op(term.tensor), 1.0
    cotangent = _cotangent(reader, op)
    if cotangent is not None:
        number, x = cotangent
        return _Pole(term.factor * number, Term(1.0, x), True)
    if op.type in DIVISIONS:
        whole = reader.scalar(op.inputs[0])
        if whole is None or op.inputs[0].shape.rank != 0:
            return None
        below, top = scaled(reader, op.inputs[1]), whole
    elif op.type in RECIPROCALS:
        below = scaled(reader, op.inputs[0])
    else:
        return None
    if not below.factor or reader.constant(below.tensor) is not None:
        return None
    number, op = term.factor * top / below.factor, reader.op(below.tensor)
    is_tanh = op.type == "Tanh"
    return _Pole(number, Term(1.0, op.inputs[0] if is_tanh else below.tensor), is_tanh)


def _cotangent(reader: Reader, op: tf.Operation) -> Term | None:
    """Reads a number times `cosh(x) / sinh(x)`, as the number and x."""
    if op.type not in DIVISIONS:
        return None
    above, below = (scaled(reader, each) for each in op.inputs)
    cosh, sinh = reader.op(above.tensor), reader.op(below.tensor)
    if (cosh.type, sinh.type) != ("Cosh", "Sinh"):
        return None
    x = cosh.inputs[0]
    return (
        Term(above.factor / below.factor, x) if reader.same(x, sinh.inputs[0]) else None
    )
