"""The rule for skewness and kurtosis, whose powers leave the range of the dtype."""

from typing import NamedTuple

import tensorflow as tf

from tfsafe.graph import DIVISIONS
from tfsafe.ops.formulas.limits import field_limits
from tfsafe.rewriting.engine.rule import Build, Rule
from tfsafe.rewriting.facts.finiteness import is_watched
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.match.arithmetic import Base, number, root_of, squared
from tfsafe.rewriting.match.reductions import Reduction, reduction

_ORDERS = {3.0, 4.0, 6.0}
# Powers of powers, such as the cube of a root.
_DEPTH = 3


class _Power(NamedTuple):
    """A tensor, and the power in which it is another."""

    base: Base
    power: float


def _power(reader: Reader, tensor: tf.Tensor, depth: int = _DEPTH) -> _Power:
    op = reader.op(tensor)
    inner: tuple[tf.Tensor, float] | None = None
    base = squared(reader, tensor)
    root = root_of(reader, tensor)
    if base is not None and base.minus is not None:
        return _Power(base, 2.0)
    if base is not None:
        inner = base.x, 2.0
    elif root is not None:
        inner = root, 0.5
    elif op.type == "Pow":
        k = number(reader, op.inputs[1], op.inputs[0])
        inner = None if k is None else (op.inputs[0], k)
    elif op.type == "Mul":
        for place, x in enumerate(op.inputs):
            rest = _power(reader, op.inputs[1 - place], 0 if depth < 1 else 1)
            if rest.base.minus is None and reader.same(rest.base.x, x):
                return _Power(rest.base, rest.power + 1)
    if inner is None or not depth:
        return _Power(Base(reader.source(tensor)), 1.0)
    found = _power(reader, inner[0], depth - 1)
    return found._replace(power=found.power * inner[1])


def _moment(reader: Reader, tensor: tf.Tensor) -> tuple[str, Reduction, _Power] | None:
    """Reads a mean or a sum of powers."""
    for kind in ("Mean", "Sum"):
        found = reduction(reader, tensor, kind)
        if found is not None:
            return kind, found, _power(reader, found.x)
    return None


def _match(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `mean(d ** 3) / mean(d ** 2) ** 1.5` and the like."""
    if is_watched(reader, op):
        return None
    above = _moment(reader, op.inputs[0])
    if above is None or above[2].power not in _ORDERS:
        return None
    whole = _power(reader, op.inputs[1])
    below = _moment(reader, whole.base.x) if whole.base.minus is None else None
    if below is None or below[2].power != 2 or whole.power != above[2].power / 2:
        return None
    (kind, top, power), (other, bottom, square) = above, below
    same_axes = (top.axes, top.keepdims) == (bottom.axes, bottom.keepdims)
    if not same_axes or not _alike(reader, power.base, square.base):
        return None
    order, means = power.power, (kind == "Mean", other == "Mean")
    return lambda value: field_limits.standardised_moment(
        power.base.make(value), order, top.axes, top.keepdims, means
    )


def _alike(reader: Reader, a: Base, b: Base) -> bool:
    """Returns whether two tensors are one; a difference may be written as a square."""
    first, second = (_difference(reader, each) for each in (a, b))
    if first is None or second is None:
        return a.minus is b.minus is None and reader.same(a.x, b.x)
    return all(map(reader.same, first, second))


def _difference(reader: Reader, base: Base) -> tuple[tf.Tensor, tf.Tensor] | None:
    if base.minus is not None:
        return base.x, base.minus
    op = reader.op(base.x)
    return tuple(op.inputs) if op.type == "Sub" else None


RULES = (
    Rule(
        name="standardised-moment",
        before="mean(d ** 3) / mean(d ** 2) ** 1.5, mean(d ** 4) / mean(d ** 2) ** 2",
        after="the same of d divided by a power of 2; 0 where d is 0 everywhere",
        fails_when="the powers underflow or overflow",
        reference="identity",
        op_types=DIVISIONS,
        match=_match,
    ),
)
