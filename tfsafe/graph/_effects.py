"""Whether an operation does more than compute its outputs."""

import tensorflow as tf

from tfsafe.graph import _functions
from tfsafe.graph._op_facts import OpFact, op_types

# The random kernels advance a state of their own, which nothing can read; TensorFlow
# prunes them too where their value is not needed.
_VALUES_ONLY = op_types(OpFact.DRAWS, OpFact.NO_EFFECT)


def has_effect(op: tf.Operation) -> bool:
    """Returns whether an operation must run even if its outputs are not needed.

    Reading a variable counts, so that a read stays between the writes around it; the
    bodies of a call count by what they write.
    """
    if _functions.is_call(op):
        return any(
            _writes(inner)
            for graph in _functions.bodies(op)
            for inner in graph.get_operations()
        )
    return op.op_def.is_stateful and op.type not in _VALUES_ONLY


def _writes(op: tf.Operation) -> bool:
    return op.type != "ReadVariableOp" and has_effect(op)
