"""Reductions over replicas, run again on one thread."""

import numpy as np
import pytest
import tensorflow as tf

from tfsafe.graph import Replay, UnreadableError

VALUES = [1.0, 2.0], [4.0, -3.0]
RESULTS = {
    ("Add", "Id"): [5.0, -1.0],
    ("Add", "Div"): [2.5, -0.5],
    ("Max", "Id"): [4.0, 2.0],
    ("Min", "Id"): [1.0, -3.0],
    ("Mul", "Id"): [4.0, -6.0],
}


def reduced(x, device, size=2, merge="Add", final="Id"):
    with tf.device(f"/job:localhost/replica:0/task:0/device:CPU:{device}"):
        return tf.raw_ops.CollectiveReduceV2(
            input=x,
            group_size=size,
            group_key=1,
            instance_key=1,
            ordering_token=[],
            merge_op=merge,
            final_op=final,
        )


def replay(function, *values):
    """Runs a function from the inside; returns its outputs and the types it met."""
    values = [tf.constant(each) for each in values]
    graph = tf.function(function, autograph=False).get_concrete_function(*values).graph
    types = []
    outputs = Replay(lambda executed: types.append(executed.op.type)).run(graph, values)
    return [each.numpy().tolist() for each in outputs], types


@pytest.mark.parametrize(("merge", "final"), RESULTS, ids="-".join)
def test_all_replicas_get_the_same(merge, final):
    def run(x, y):
        # The first result is used before the second reduction is made.
        one = reduced(x, 0, merge=merge, final=final) * 2.0
        other = reduced(y * 1.0, 1, merge=merge, final=final)
        return one, other

    (one, other), types = replay(run, *VALUES)
    expected = RESULTS[merge, final]
    assert other == expected
    assert one == (2 * np.array(expected)).tolist()
    assert types.count("CollectiveReduceV2") == 1


def test_the_first_meets_the_first_and_the_second_the_second():
    def run(x, y):
        first = reduced(x, 0), reduced(y, 1)
        return reduced(first[0] + 1.0, 0), reduced(first[1] + 1.0, 1)

    outputs, _ = replay(run, *VALUES)
    assert outputs == [[12.0, 0.0]] * 2


@pytest.mark.parametrize("size", [2, 3])
def test_a_reduction_that_waits_for_others_cannot_be_run(size):
    def run(x, y):
        if size == 2:
            return reduced(x, 0), y
        return reduced(x, 0, size), reduced(y, 1, size)

    with pytest.raises(UnreadableError, match="waits for replicas elsewhere"):
        replay(run, *VALUES)
