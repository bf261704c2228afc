"""Matches the entropies of Tsallis and Renyi, whose limit at order 1 is Shannon's."""

from typing import NamedTuple

import tensorflow as tf

from tfsafe.ops.kernels import entropies_of_order
from tfsafe.rewriting.engine.rule import Build
from tfsafe.rewriting.facts.tensors import Reader, is_float
from tfsafe.rewriting.log_space.probabilities import quotients
from tfsafe.rewriting.match.arithmetic import number
from tfsafe.rewriting.match.linear import Part, merged, minus, parts


class _Sum(NamedTuple):
    """The sum `sum(p ** q)` over axes."""

    p: tf.Tensor
    q: tf.Tensor
    axes: tuple[int, ...]
    keepdims: bool


def match(op: tf.Operation, reader: Reader) -> Build | None:
    """Matches `(1 - sum(p ** q)) / (q - 1)` and `log(sum(p ** q)) / (1 - q)`."""
    for top, bottom in quotients(op, reader) if is_float(op.outputs[0]) else ():
        inner = reader.op(top)
        if inner.type == "Log":
            found = _sum_of_powers(reader, inner.inputs[0])
            sign = None if found is None else _order(reader, bottom, found.q)
            if found is not None and sign is not None:
                return _built(found, -sign, is_log=True)
        elif inner.type == "Sub":
            for total, one, side in ((1, 0, 1), (0, 1, -1)):
                found = _sum_of_powers(reader, inner.inputs[total])
                sign = None if found is None else _order(reader, bottom, found.q)
                is_one = number(reader, inner.inputs[one], inner.inputs[total]) == 1
                if found is not None and sign is not None and is_one:
                    return _built(found, side * sign, is_log=False)
    return None


def _built(found: _Sum, sign: int, *, is_log: bool) -> Build:
    function = entropies_of_order.renyi if is_log else entropies_of_order.tsallis
    return lambda value: (
        sign * function(value(found.p), value(found.q), found.axes, found.keepdims)
    )


def _sum_of_powers(reader: Reader, tensor: tf.Tensor) -> _Sum | None:
    op = reader.op(tensor)
    if op.type != "Sum":
        return None
    power = reader.op(op.inputs[0])
    axes = reader.axes(op.inputs[1], op.inputs[0].shape.rank)
    if power.type != "Pow" or not axes:
        return None
    p, q = power.inputs
    if q.shape.rank != 0 or reader.constant(q) is not None:
        return None
    return _Sum(p, q, axes, op.get_attr("keep_dims"))


def _order(reader: Reader, tensor: tf.Tensor, q: tf.Tensor) -> int | None:
    """Returns 1 for `q - 1`, -1 for `1 - q`."""
    found, order = parts(reader, tensor), [*parts(reader, q), Part(-1.0, None)]
    for sign, wanted in ((1, order), (-1, minus(order))):
        if not merged(reader, [*found, *minus(wanted)]):
            return sign
    return None
