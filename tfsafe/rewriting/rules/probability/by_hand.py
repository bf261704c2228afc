"""Recognises sigmoids and hyperbolic tangents that are written by hand."""

from collections.abc import Callable

import tensorflow as tf

from tfsafe import ops
from tfsafe.rewriting.engine.rule import Build, Value
from tfsafe.rewriting.facts.tensors import Reader, both_ways
from tfsafe.rewriting.log_space import probabilities
from tfsafe.rewriting.log_space.analysis import logarithms
from tfsafe.rewriting.log_space.pairs import both
from tfsafe.rewriting.match.arithmetic import is_sum


def match_sigmoid(op: tf.Operation, reader: Reader) -> Build | None:
    """Returns how to build a sigmoid; None for another formula."""
    if op.type == "Sigmoid":
        return _written_otherwise(ops.sigmoid, op, reader)
    x = probabilities.sigmoid_by_hand(op, logarithms(reader))
    return None if x is None else lambda value: ops.sigmoid(x(value))


def _written_otherwise(
    function: Callable[[tf.Tensor], tf.Tensor], op: tf.Operation, reader: Reader
) -> Build | None:
    """Returns how to build a function that the program writes by hand."""
    (x,), result = op.inputs, op.outputs[0]
    is_by_hand = reader.written(result) is not result
    return (lambda value: function(value(x))) if is_by_hand else None


def match_tanh(op: tf.Operation, reader: Reader) -> Build | None:
    """Returns how to build a hyperbolic tangent; None for another formula."""
    if op.type == "Tanh":
        return _written_otherwise(ops.tanh, op, reader)
    x, y = op.inputs
    tanh = _tanh(reader, x, y)
    if tanh is not None:
        return tanh
    for factor, top in both_ways(reader.op(x), "Mul"):
        tanh = _tanh(reader, top, y)
        if tanh is not None:
            return _times(factor, tanh)
    return None


def _times(factor: tf.Tensor, tanh: Build) -> Build:
    return lambda value: value(factor) * tanh(value)


def _tanh(reader: Reader, top: tf.Tensor, bottom: tf.Tensor) -> Build | None:
    """Reads `(a - b) / (a + b)` of exponentials; one may be a number."""
    logs = logarithms(reader)
    difference, total = reader.op(top), reader.op(bottom)
    if difference.type != "Sub" or not is_sum(total):
        return None
    x, y = difference.inputs
    if not any(
        (_same(reader, x, a) and _same(reader, y, b)) for a, b in both_ways(total)
    ):
        return None
    a, b = logs.parts(x), logs.parts(y)
    is_usable = a.is_pure and b.is_pure and not a.is_partial and not b.is_partial
    if not is_usable or not (a.has_exp or b.has_exp):
        return None

    def build(value: Value) -> tf.Tensor:
        first, second = both(a, b, value)
        return ops.tanh((first - second) / 2)

    return build


def _same(reader: Reader, a: tf.Tensor, b: tf.Tensor) -> bool:
    both_one = reader.is_number(a, 1) and reader.is_number(b, 1)
    return both_one or reader.same(a, b)
