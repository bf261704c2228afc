"""Finds where non-finite values begin in a graph, and where they are dropped.

A zero incoming gradient times an infinite factor is NaN. That can happen between an
operation that makes infinities and one that drops them.
"""

import math
from collections.abc import Collection
from typing import NamedTuple

import tensorflow as tf

from tfsafe._limits import LIMITS
from tfsafe.graph import DIVISIONS, RECIPROCALS, OpFact, op_types
from tfsafe.rewriting.facts.tensors import Reader, is_float

_DROPS = op_types(OpFact.DROPS)
_CLEANS = op_types(OpFact.CLEANS)
_WATCHES = op_types(OpFact.TESTS_FINITE)
_EXPONENTIALS = op_types(OpFact.EXPONENTIAL)
_POLES = op_types(OpFact.POLE)
_FLAT = DIVISIONS | RECIPROCALS | {"Erf", "Erfc", "Exp", "Rsqrt", "Sigmoid", "Tanh"}


class _Flow(NamedTuple):
    """Names of operations.

    Attributes:
      doubtful: Their outputs may not be finite though the inputs of the graph are.
      dropped: Some of their elements may be dropped later.
      watched: What is not finite in their outputs is asked for later.
    """

    doubtful: frozenset[str]
    dropped: frozenset[str]
    watched: frozenset[str]


def is_doubtful(reader: Reader, tensor: tf.Tensor) -> bool:
    """Returns whether elements may not be finite for finite inputs of the graph."""
    return reader.written(tensor).op.name in _flow(reader).doubtful


def is_dropped(reader: Reader, op: tf.Operation) -> bool:
    """Returns whether some elements of what `op` makes may be dropped later."""
    return reader.written(op.outputs[0]).op.name in _flow(reader).dropped


def is_watched(reader: Reader, op: tf.Operation) -> bool:
    """Returns whether the graph asks later what of the outputs of `op` is finite.

    Then a NaN that a formula makes is an answer, which has to stay.
    """
    return reader.written(op.outputs[0]).op.name in _flow(reader).watched


def flow_at(reader: Reader, op: tf.Operation) -> tuple[bool, bool, bool]:
    """Returns whether `op` is doubtful, dropped and watched, in the words above."""
    doubtful, dropped, watched = _flow(reader)
    return op.name in doubtful, op.name in dropped, op.name in watched


def is_regular(reader: Reader, op: tf.Operation) -> bool:
    """Returns whether an operation with a singular point can be shown to stay off it.

    An operation without a singular point is regular too.
    """
    if op.type in RECIPROCALS:
        return _is_away(reader, op.inputs[0], 0.0, either_side=True)
    if op.type in {"Log", "Rsqrt", "Sqrt"}:
        return _is_away(reader, op.inputs[0], 0.0)
    if op.type == "Log1p":
        return _is_away(reader, op.inputs[0], -1.0)
    if op.type in DIVISIONS:
        return _is_away(reader, op.inputs[1], 0.0, either_side=True)
    if op.type in _EXPONENTIALS:
        return not may_overflow(reader, op.inputs[0])
    if op.type in {"Acos", "Asin", "Atanh"}:
        bounds = reader.bounds(op.inputs[0])
        return bounds.low > -1 and bounds.high < 1
    if op.type == "Acosh":
        return _is_away(reader, op.inputs[0], 1.0)
    if op.type == "Pow":
        exponent = reader.scalar(op.inputs[1])
        whole = exponent is not None and exponent >= 2 and exponent == int(exponent)
        return bool(whole or exponent == 0) or _is_away(reader, op.inputs[0], 0.0)
    return op.type not in _POLES


def may_overflow(reader: Reader, exponent: tf.Tensor) -> bool:
    """Returns whether the exponential of a tensor may be infinite."""
    limits = LIMITS.get(exponent.dtype.name)
    return limits is None or not reader.bounds(exponent).high < math.log(limits.max)


def _is_away(
    reader: Reader, x: tf.Tensor, pole: float, either_side: bool = False
) -> bool:
    bounds = reader.bounds(x)
    return bounds.low > pole or (either_side and bounds.high < pole)


def _flow(reader: Reader) -> _Flow:
    known: _Flow | None = reader.memory.get(_Flow)
    if known is None:
        doubtful = _forwards(reader)
        known = _Flow(doubtful, *_backwards(reader, doubtful))
        reader.memory[_Flow] = known
    return known


def _forwards(reader: Reader) -> frozenset[str]:
    operations = reader.operations
    doubtful = {
        reader.written(reader.source(op.inputs[0])).op.name
        for op in operations
        if op.type in _WATCHES
    }
    for op in operations:
        if not any(is_float(tensor) for tensor in op.outputs):
            continue
        reached = any(tensor.op.name in doubtful for tensor in op.inputs)
        if (reached and not _cleans(reader, op)) or not _stays_finite(reader, op):
            doubtful.add(op.name)
    return frozenset(doubtful)


def _stays_finite(reader: Reader, op: tf.Operation) -> bool:
    """Returns whether finite inputs are known to give finite outputs."""
    if op.type == "Sqrt":
        return reader.is_nonnegative(op.inputs[0])
    if op.type == "Pow":
        exponent = reader.scalar(op.inputs[1])
        if exponent is not None and exponent > 0:
            return reader.is_nonnegative(op.inputs[0]) or is_regular(reader, op)
    return is_regular(reader, op)


def _backwards(
    reader: Reader, doubtful: frozenset[str]
) -> tuple[frozenset[str], frozenset[str]]:
    dropped: set[str] = set()
    watched: set[str] = set()
    for op in reversed(reader.operations):
        drops = op.name in dropped or op.type in _DROPS or _is_masking(reader, op)
        drops = drops or _is_flat(reader, op, doubtful)
        watches = op.name in watched or op.type in _WATCHES
        for tensor in op.inputs:
            if drops:
                dropped.add(tensor.op.name)
            if watches:
                watched.add(tensor.op.name)
    return frozenset(dropped), frozenset(watched)


def _is_flat(reader: Reader, op: tf.Operation, doubtful: Collection[str]) -> bool:
    """Returns whether `op` is like `exp(-x)`, flat where its argument is infinite."""
    place = 1 if op.type in DIVISIONS else 0
    if op.type == "Pow":
        exponent = reader.scalar(op.inputs[1])
        is_flat = exponent is not None and exponent < 0
    else:
        is_flat = op.type in _FLAT
    return is_flat and op.inputs[place].op.name in doubtful


def _cleans(reader: Reader, op: tf.Operation) -> bool:
    return op.type in _CLEANS or _is_masking(reader, op)


def _is_masking(reader: Reader, op: tf.Operation) -> bool:
    return (
        op.type == "Mul"
        and is_float(op.outputs[0])
        and any(reader.is_scaled_mask(each) for each in op.inputs)
    )
