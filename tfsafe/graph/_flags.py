"""Flags for the outputs of operations: which of them are not finite."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tfsafe import _compat
from tfsafe.graph import _functions
from tfsafe.ops.kernels import sums

# Gives the indices of the outputs of an operation that are to be checked.
Checks = Callable[[tf.Operation], Sequence[int]]
# Gives the number that a flag is made of, for an operation, the index of an output,
# what gives the copies of its inputs, and its new outputs.
Number = Callable[
    [tf.Operation, int, Callable[[tf.Tensor], tf.Tensor], Sequence[Any]], tf.Tensor
]
# An operation and the index of one of its outputs.
Output = tuple[tf.Operation, int]

# Inputs of one operation.
_MANY = 256


def outputs_of(graph: tf.Graph, checks: Checks) -> list[Output]:
    """Returns the outputs that are checked in a graph and in the bodies it calls.

    Those of the graph itself come first, then those of its calls, one after another.
    """
    own: list[Output] = []
    inner: list[Output] = []
    for op in graph.get_operations():
        if _functions.is_call(op):
            inner += within(op, checks)
        else:
            own += [(op, index) for index in checks(op)]
    return own + inner


def within(op: tf.Operation, checks: Checks) -> list[Output]:
    """Returns the outputs that are checked in the bodies of a call."""
    if op.type in _functions.LOOPS:
        return outputs_of(_functions.body(op, "body"), checks)
    return [each for body in _functions.bodies(op) for each in outputs_of(body, checks)]


def summed(tensor: tf.Tensor) -> tf.Tensor:
    """Returns a sum that is finite only if every element of a tensor is.

    In float64 for float64 and complex128, else in float32.
    """
    if tensor.dtype.is_complex:
        tensor = tf.math.real(tensor) + tf.math.imag(tensor)
    if tensor.dtype.size < 4:
        tensor = tf.cast(tensor, tf.float32)
    if sums.takes_product(tensor):
        tensor = sums.sums_of_rows(tf.stop_gradient(tensor))
    if tensor.shape.num_elements() == 0:
        # The vectors that `tf.linalg.svd` does not compute are scalars when it runs.
        return tf.zeros([], tensor.dtype)
    rank = tensor.shape.rank
    if not rank:
        return tensor if rank == 0 else tf.reduce_sum(tensor)
    axes = _axes(rank)
    if tf.executing_eagerly():
        return tf.raw_ops.Sum(input=tensor, axis=axes)
    # It takes a quarter of the time of `tf.reduce_sum` to trace. No tape records it.
    attributes = {"T": _type(tensor.dtype), "Tidx": _type(axes.dtype)}
    return _compat.create_op(
        "Sum", [tensor, axes], [tensor.dtype], attrs=attributes
    ).outputs[0]


# Attribute of a graph: the constants that name all axes of a tensor, by its rank.
_AXES = "tfsafe_axes"


def _axes(rank: int) -> tf.Tensor:
    if tf.executing_eagerly():
        return tf.range(rank)
    graph = tf.compat.v1.get_default_graph()
    known = _compat.graph_attribute(graph, _AXES, dict)
    if rank not in known:
        known[rank] = tf.constant(list(range(rank)))
    return known[rank]


def _type(dtype: tf.DType) -> Any:
    return tf.compat.v1.AttrValue(type=dtype.as_datatype_enum)


def total(tensor: tf.Tensor) -> tf.Tensor:
    """Returns a float32 number that is finite only if every element of a tensor is."""
    result = summed(tensor)
    # A float64 beyond float32 would look infinite.
    is_wide = result.dtype == tf.float64
    return tf.cast(result * 0, tf.float32) if is_wide else result


def total_of(
    op: tf.Operation, index: int, value: Any, outputs: Sequence[Any]
) -> tf.Tensor:
    """Returns the `total` of an output, as a `Number`."""
    del op, value
    return total(outputs[index])


def stacked(numbers: Sequence[Any]) -> tf.Tensor:
    """Returns a vector of numbers, however many there are.

    TensorFlow's graph optimizer takes a time that grows with the square of the inputs
    that one operation has.
    """
    rows = [tf.stack(numbers[i : i + _MANY]) for i in range(0, len(numbers), _MANY)]
    return rows[0] if len(rows) == 1 else tf.concat(rows, 0)


def joined(
    graph: tf.Graph,
    checks: Checks,
    totals: Mapping[tuple[str, int], tf.Tensor],
    inner: Mapping[str, tf.Tensor],
) -> tf.Tensor:
    """Returns the flags of a graph, in the order of `outputs_of`.

    Args:
      graph: The graph.
      checks: The outputs that are checked.
      totals: The `total` of an output by its operation's name and its index; what did
        not run is missing.
      inner: The flags within a call, by its name.
    """
    own: list[Any] = []
    others: list[Any] = []
    for op in graph.get_operations():
        if _functions.is_call(op):
            count = len(within(op, checks))
            if count:
                known = inner.get(op.name)
                others.append(tf.zeros([count], tf.bool) if known is None else known)
        else:
            own += [totals.get((op.name, index), 0.0) for index in checks(op)]
    if own:
        others.insert(0, ~tf.math.is_finite(stacked(own)))
    return tf.concat(others, 0) if others else tf.zeros([0], tf.bool)
