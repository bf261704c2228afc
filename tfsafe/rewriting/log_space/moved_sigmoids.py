"""Recognises sigmoids behind slices, gathers and the ends that are joined to them."""

import math

import tensorflow as tf

from tfsafe.rewriting.engine.rule import Build, Value
from tfsafe.rewriting.log_space.form import LogForms, with_inputs
from tfsafe.rewriting.log_space.probabilities import sigmoid_of

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
        return lambda value: tf.fill(
            tf.shape(value(tensor)), tf.constant(logit, tensor.dtype)
        )
    return moved_sigmoid_of(logs.reader.op(tensor), logs, depth - 1)
