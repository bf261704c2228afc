"""The reductions in which replicas meet, as operations that can be run one by one.

Each replica has an operation of its own, and all of them wait for each other. Run
one after another, the first would wait for ever.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfsafe.graph._functions import UnreadableError

_TYPE = "CollectiveReduceV2"
_MERGE: dict[bytes, Callable[[Any], Any]] = {
    b"Add": tf.math.add_n,
    b"Max": lambda values: tf.math.reduce_max(values, 0),
    b"Min": lambda values: tf.math.reduce_min(values, 0),
    b"Mul": lambda values: tf.math.reduce_prod(values, 0),
}


def meetings(graph: tf.Graph) -> dict[str, list[tf.Operation]]:
    """Finds the reductions that wait for each other.

    TensorFlow launches them in the same order on each device: those that are first
    on theirs meet, then the second, and so on.

    Returns:
      All that take part in a reduction, itself included, by its name.

    Raises:
      UnreadableError: If some that take part are not in the graph.
    """
    by_device: dict[str, list[tf.Operation]] = {}
    for op in graph.get_operations():
        if op.type == _TYPE:
            by_device.setdefault(op.device, []).append(op)
    queues = list(by_device.values())
    if len({len(each) for each in queues}) > 1 or any(
        tf.get_static_value(op.inputs[1]) != len(queues)
        for each in queues
        for op in each
    ):
        raise UnreadableError(f"`{_TYPE}` waits for replicas elsewhere")
    return {op.name: list(parts) for parts in zip(*queues, strict=True) for op in parts}


def kernel(parts: Sequence[tf.Operation]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Returns a function that takes the values of all parts and gives all results."""
    merge = _MERGE[parts[0].get_attr("merge_op")]
    is_mean = parts[0].get_attr("final_op") == b"Div"

    def run(values: Sequence[Any]) -> Sequence[Any]:
        total = merge(values)
        if is_mean:
            total = total / len(values)
        return [total] * len(values)

    return run
