"""The rule for roots of means and of sums of powers."""

from collections.abc import Callable

import tensorflow as tf

from tfsafe.ops.formulas.power_means import root_of_powers
from tfsafe.rewriting.engine.rule import Build, Rule
from tfsafe.rewriting.facts.finiteness import is_watched
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.match.arithmetic import number
from tfsafe.rewriting.match.products import inverted
from tfsafe.rewriting.match.reductions import REDUCTIONS, Reduction, reduction


def _match(op: tf.Operation, reader: Reader) -> Build | None:
    total, inverse = op.inputs
    if is_watched(reader, op):
        return None
    for name, reduce in REDUCTIONS.items():
        found = reduction(reader, total, name)
        power = None if found is None else reader.op(found.x)
        if found is None or power is None or power.type != "Pow":
            continue
        x, order = power.inputs
        if _are_inverse(reader, order, x, inverse, total):
            return _root(x, order, inverse, found, reduce)
    return None


def _are_inverse(
    reader: Reader, p: tf.Tensor, x: tf.Tensor, q: tf.Tensor, total: tf.Tensor
) -> bool:
    """Returns whether `p * q` is 1, but for a norm."""
    first, second = number(reader, p, x), number(reader, q, total)
    if first is not None and second is not None:
        # Norms have rules of their own.
        is_norm = first == 2 or reader.op(x).type == "Abs"
        return abs(first * second - 1) < 1e-6 and not is_norm
    inverse = inverted(reader, reader.op(q))
    if inverse is None or inverse.factor != 1:
        return False
    return reader.same(inverse.tensor, p)


def _root(
    x: tf.Tensor,
    order: tf.Tensor,
    inverse: tf.Tensor,
    found: Reduction,
    reduce: Callable[..., tf.Tensor],
) -> Build:
    return lambda value: root_of_powers(
        value(x), value(order), value(inverse), found.axes, found.keepdims, reduce
    )


RULES = (
    Rule(
        name="power-mean",
        before="mean(x ** p) ** (1 / p), sum(x ** p) ** (1 / p)",
        after="the same of x over its largest element, times that; near p = 0 a series",
        fails_when="the powers leave the range, and the root does not; p is near 0",
        reference="Radenovic et al., IEEE TPAMI 41(7), 2019, section 3.2: GeM pooling",
        op_types=("Pow",),
        match=_match,
    ),
)
