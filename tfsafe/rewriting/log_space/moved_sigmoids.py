"""Recognises sigmoids behind slices, gathers and joined ends, and their differences."""

import math

import tensorflow as tf

from tfsafe import ops
from tfsafe.graph import DIVISIONS, raw_kernel
from tfsafe.ops.formulas import unchanged_values
from tfsafe.rewriting.engine.rule import Build, Value
from tfsafe.rewriting.facts.tensors import Reader
from tfsafe.rewriting.log_space.form import LogForms, once, with_inputs
from tfsafe.rewriting.log_space.probabilities import sigmoid_of
from tfsafe.rewriting.match.linear import merged, minus, parts, total

_MOVES = frozenset({"ExpandDims", "GatherV2", "Reshape", "Squeeze", "StridedSlice"})
# Longer chains are not followed.
_DEPTH = 4


def moved_sigmoid_of(
    op: tf.Operation, logs: LogForms, depth: int = _DEPTH
) -> Build | None:
    """Returns what builds the input of a sigmoid, moved like the sigmoid itself."""
    if not depth:
        return None
    if op.type == "ConcatV2":
        return _joined(op, logs, depth)
    if op.type not in _MOVES:
        return sigmoid_of(op, logs)
    inner = moved_sigmoid_of(logs.reader.op(op.inputs[0]), logs, depth - 1)
    if inner is None:
        return None
    return lambda value: with_inputs(op, value, {0: inner(value)})


def _joined(op: tf.Operation, logs: LogForms, depth: int) -> Build | None:
    """Reads sigmoids joined to zeros and ones, whose logits are infinite."""
    builds = [_part(each, logs, depth) for each in op.inputs[:-1]]
    known = [each for each in builds if each is not None]
    if len(known) < len(builds):
        return None

    def build(value: Value) -> tf.Tensor:
        made = {place: each(value) for place, each in enumerate(known)}
        return with_inputs(op, value, made)

    return build


def _part(tensor: tf.Tensor, logs: LogForms, depth: int) -> Build | None:
    bounds = logs.reader.bounds(tensor)
    if bounds.low == bounds.high and bounds.low in {0, 1}:
        logit = math.inf if bounds.low else -math.inf
        return lambda value: _filled(value(tensor), logit)
    return moved_sigmoid_of(logs.reader.op(tensor), logs, depth - 1)


def _filled(like: tf.Tensor, number: float) -> tf.Tensor:
    return tf.fill(tf.shape(like), tf.constant(number, like.dtype))


def log_of_sigmoid_difference(
    op: tf.Operation, other: tf.Operation, logs: LogForms
) -> Build | None:
    """Builds `log(sigmoid(u) - sigmoid(v))`, also where both are near 1."""
    u, v = (moved_sigmoid_of(each, logs) for each in (op, other))
    if u is None or v is None:
        return None
    reader = logs.reader
    is_direct = op.type == other.type == "Sigmoid"
    known = (
        _without_common(reader, other.inputs[0], op.inputs[0]) if is_direct else None
    )

    def log(value: Value) -> tf.Tensor:
        first, second = u(value), v(value)
        step = second - first if known is None else known(value)
        is_nothing = tf.equal(first, second)
        if known is not None:
            is_nothing &= tf.math.is_inf(first)
        step = tf.where(is_nothing, tf.zeros([], step.dtype), step)
        # Where the difference is negative, the slopes are TensorFlow's.
        logs = ops.log_sigmoid(first) + ops.log_sigmoid(-second)
        return logs + unchanged_values.log1mexp(step)

    return once(log)


def _without_common(reader: Reader, a: tf.Tensor, b: tf.Tensor) -> Build | None:
    """Returns how to build `a - b` without the terms that both have, if there are any.

    `(c - x) - (d - x)` rounds what `c - d` does not, and its slopes in x are huge
    numbers that cancel.
    """
    first, second = reader.op(a), reader.op(b)
    if first.type == second.type and first.type in DIVISIONS | {"Mul"}:
        return _of_common_factor(reader, first, second)
    whole = [*parts(reader, a), *minus(parts(reader, b))]
    rest = merged(reader, whole)
    return None if len(rest) == len(whole) else lambda value: total(rest, value, a)


def _of_common_factor(
    reader: Reader, first: tf.Operation, second: tf.Operation
) -> Build | None:
    places = (1,) if first.type in DIVISIONS else (0, 1)
    for place in places:
        if reader.same(first.inputs[place], second.inputs[place]):
            inner = [each.inputs[1 - place] for each in (first, second)]
            step, factor = _without_common(reader, *inner), first.inputs[place]
            if step is None:
                return None
            return lambda value: raw_kernel(first)(
                [step(value), value(factor)][:: 1 if place else -1]
            )[0]
    return None
