"""What a step of `SafeOptimizer` keeps in memory, read from its graph."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfsafe.graph import bodies
from tfsafe.optimizers import SafeOptimizer, _counters

GRADIENTS = [tf.constant([0.5, -2.0, 1e20]), tf.constant([3.0, 0.25])]


def training(policy, jit_compile=None):
    variables = [tf.Variable([1.0, 2.0, 3.0]), tf.Variable([4.0, 5.0])]
    optimizer = SafeOptimizer(keras.optimizers.Adam(0.1), policy)
    optimizer.build(variables)

    @tf.function(autograph=False, jit_compile=jit_compile)
    def step(*gradients):
        optimizer.apply(gradients, variables)

    return variables, step


@pytest.mark.parametrize("policy", ["replace", "zero_variable"])
@pytest.mark.parametrize("jit_compile", [None, True])
def test_gradients_are_replaced_in_the_branch_that_uses_them(policy, jit_compile):
    _, step = training(policy, jit_compile)
    graph = step.get_concrete_function(*GRADIENTS).graph
    selected = [op for op in graph.get_operations() if op.type == "SelectV2"]
    assert not [op for op in selected if op.outputs[0].dtype.is_floating]


def update_of(step):
    """Returns the writes of the two variables in the branch that updates them."""
    graph = step.get_concrete_function(*GRADIENTS).graph
    found = [
        [op for op in body.get_operations() if op.type == "AssignSubVariableOp"]
        for op in graph.get_operations()
        if op.type.endswith("If")
        for body in bodies(op)
    ]
    (writes,) = filter(None, found)
    return writes


def waits_for(later, earlier):
    seen, queue = set(), [later]
    while queue:
        op = queue.pop()
        if op.name not in seen:
            seen.add(op.name)
            queue += [*op.control_inputs, *(tensor.op for tensor in op.inputs)]
    return earlier.name in seen


def test_large_variables_are_updated_in_turn(monkeypatch):
    first, second = update_of(training("skip")[1])
    assert not waits_for(second, first)
    variables, step = training("skip")
    monkeypatch.setattr(_counters, "_LARGE", 4 * sum(v.shape[0] for v in variables))
    first, second = update_of(step)
    assert waits_for(second, first)


@pytest.mark.parametrize("policy", ["replace", "zero_variable", "skip"])
def test_the_order_of_updates_changes_no_value(policy, monkeypatch):
    results = []
    for large in (2**26, 0):
        monkeypatch.setattr(_counters, "_LARGE", large)
        variables, step = training(policy)
        step(*GRADIENTS)
        step(tf.ones([3]), tf.ones([2]))
        results.append([each.numpy() for each in variables])
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])
