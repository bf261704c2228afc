"""Finds where a function makes integers that it returns of floating numbers."""

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from tfsafe.debugging.values import chosen_by, is_float, passed_on
from tfsafe.graph import Value, earlier, is_call, results_in_bodies, total_of

_NONE: Sequence[tf.Operation] = ()


def returned_by(graph: tf.Graph) -> Mapping[tf.Operation, Sequence[int]]:
    """Returns what makes integers of numbers that a graph returns in each case.

    Returns:
      Operations, those in the bodies of loops, branches and calls included, each with
      the indices of these outputs.
    """
    found: dict[tf.Operation, list[int]] = {}
    # The calls of a body, by its `id`.
    calls: dict[int, list[tf.Operation]] = {}
    queue = [each for each in graph.outputs if not is_float(each)]
    seen = set(map(id, queue))
    for tensor in queue:
        op = tensor.op
        new: list[tf.Tensor] = []
        if is_call(op):
            for each in results_in_bodies(op, tensor.value_index):
                calls.setdefault(id(each.graph), []).append(op)
                new.append(each)
        elif op.type == "Placeholder":
            places = [i for i, x in enumerate(op.graph.inputs) if x is tensor]
            for call in calls.get(id(op.graph), _NONE):
                new += [each for i in places for each in earlier(call, i)]
        elif chosen_by(op.type, op.inputs, tensor) is None:
            new += passed_on(op.type, op.inputs, tensor)
        else:
            found.setdefault(op, []).append(tensor.value_index)
        new = [each for each in new if id(each) not in seen]
        seen.update(map(id, new))
        queue += new
    return found


def number(
    op: tf.Operation, index: int, value: Value, outputs: Sequence[Any]
) -> tf.Tensor:
    """Returns a number that is finite only if an output is good: integers of no NaN."""
    numbers = chosen_by(op.type, op.inputs, op.outputs[index])
    if numbers is None:
        return total_of(op, index, value, outputs)
    return tf.where(tf.reduce_any(tf.math.is_nan(value(numbers))), float("nan"), 0.0)
