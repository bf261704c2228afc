"""Matches `a / tanh(a * x) - b / tanh(b * x)`, such as the Brillouin function."""

import tensorflow as tf

from tfsafe.graph import DIVISIONS, RECIPROCALS, SUMS
from tfsafe.ops.kernels.limits import removable
from tfsafe.rewriting.engine.rule import Build
from tfsafe.rewriting.facts.tensors import Reader, is_float
from tfsafe.rewriting.match.arithmetic import Term, terms
from tfsafe.rewriting.match.products import scaled

# How far the numbers of a formula may be off: they are rounded one by one.
_CLOSE = 1e-5


def match(op: tf.Operation, reader: Reader) -> Build | None:
    """Returns how to build such a difference without the poles that cancel."""
    if op.type not in SUMS or not is_float(op.outputs[0]):
        return None
    summands = terms(reader, op.outputs[0])
    if len(summands) != 2:
        return None
    one, other = (_inverse_tanh(reader, each) for each in summands)
    if one is None or other is None:
        return None
    (a, x), (b, y) = one, other
    first, second = (scaled(reader, each.tensor, each.factor) for each in (x, y))
    if not reader.same(first.tensor, second.tensor) or first.factor == second.factor:
        return None
    poles = a / first.factor, b / second.factor
    if abs(poles[0] + poles[1]) > _CLOSE * abs(poles[0]):
        return None
    return lambda value: (
        a * removable.coth_minus_inverse(x.make(value))
        + b * removable.coth_minus_inverse(y.make(value))
    )


def _inverse_tanh(reader: Reader, term: Term) -> tuple[float, Term] | None:
    """Reads a number over `tanh(x)`; returns the number and x."""
    op, top = reader.op(term.tensor), 1.0
    if op.type in DIVISIONS:
        whole = reader.scalar(op.inputs[0])
        if whole is None or op.inputs[0].shape.rank != 0:
            return None
        op, top = reader.op(op.inputs[1]), whole
    elif op.type in RECIPROCALS:
        op = reader.op(op.inputs[0])
    else:
        return None
    factor = term.factor * top
    while op.type == "Mul":
        below = scaled(reader, op.outputs[0])
        if below.factor == 1 or not below.factor:
            return None
        op, factor = reader.op(below.tensor), factor / below.factor
    return (factor, Term(1.0, op.inputs[0])) if op.type == "Tanh" else None
