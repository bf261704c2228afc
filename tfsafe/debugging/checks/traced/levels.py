"""Chooses the outputs of a traced function that each level checks."""

import numpy as np
import tensorflow as tf

from tfsafe.graph import OpFact, is_call, op_types

_DOMAIN = op_types(OpFact.SINGULAR)
_MOVES = op_types(OpFact.ADDS_NO_NUMBER)
_STAYS_FINITE = op_types(OpFact.STAYS_FINITE)
_FIRST_ALONE = op_types(OpFact.ONE_RESULT)


def outputs_to_check(op: tf.Operation, level: str) -> list[int]:
    """Returns the indices of the outputs of `op` that a level checks.

    Args:
      op: An operation of a traced function.
      level: `"domain"`, `"full"`, or any other for none.
    """
    if level == "domain":
        is_due = op.type in _DOMAIN
    else:
        is_due = level == "full" and op.type not in _MOVES and not _is_finite(op)
    if not is_due:
        return []
    outputs = op.outputs[:1] if op.type in _FIRST_ALONE else op.outputs
    return [
        index
        for index, tensor in enumerate(outputs)
        if tensor.dtype.is_complex
        or (tensor.dtype.is_floating and not _is_checked_before(op))
    ]


def _is_checked_before(op: tf.Operation) -> bool:
    """Returns whether `op` only fails where an input fails, which is checked itself.

    What comes from outside of the graph is not.
    """
    return op.type in _STAYS_FINITE and not any(
        source.type == "Placeholder" or is_call(source)
        for source in map(_source, op.inputs)
    )


def _source(tensor: tf.Tensor) -> tf.Operation:
    """Returns the operation that a tensor has its numbers from."""
    queue = [tensor]
    while queue[-1].op.type in _MOVES and queue[-1].op.inputs:
        queue.append(queue[-1].op.inputs[0])
    return queue[-1].op


def _is_finite(op: tf.Operation) -> bool:
    """Returns whether `op` is a constant without NaN and Inf."""
    if op.type != "Const":
        return False
    value = tf.make_ndarray(op.get_attr("value"))
    if value.dtype.kind not in "fcV":
        return True
    return bool(np.isfinite(value.astype(np.complex128)).all())
