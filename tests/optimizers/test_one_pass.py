"""The one sum of squares that checks the gradients of a step, and clips them."""

import collections
import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe.graph import bodies
from tfsafe.optimizers import SafeOptimizer

SIZE = 16


def graph_of(**arguments):
    variables = [keras.Variable(np.ones((2, 3), "float32")) for _ in range(3)]
    optimizer = SafeOptimizer(keras.optimizers.SGD(0.1), **arguments)
    optimizer.build(variables)
    step = tf.function(lambda *g: optimizer.apply(list(g), variables), autograph=False)
    return step.get_concrete_function(*[tf.TensorSpec((2, 3))] * 3).graph


def types_in(graph):
    return collections.Counter(op.type for op in graph.get_operations())


@pytest.mark.parametrize("policy", ["replace", "zero_variable", "skip"])
def test_a_finite_step_reads_each_gradient_in_one_operation(policy):
    types = types_in(graph_of(policy=policy))
    assert types["L2Loss"] == 3
    assert types["LessEqual"] == 1
    assert not types["Abs"]


@pytest.mark.parametrize("name", ["clipnorm", "global_clipnorm"])
def test_clipping_reads_no_gradient_for_its_norm(name):
    graph = graph_of(**{name: 1.0})
    branches = [
        types_in(body)
        for op in graph.get_operations()
        if op.type == "If"
        for body in bodies(op)
    ]
    (stepping,) = [types for types in branches if types["StatelessIf"]]
    assert not stepping.keys() & {"L2Loss", "Sum", "Square"}


@pytest.mark.parametrize(
    ("dtype", "limit", "good", "bad"),
    [
        # The squares of the good ones add up to more than that of the limit.
        ("float32", None, 1e15, np.nextafter(np.float32(1e15), np.float32(np.inf))),
        ("float32", math.inf, 3e38, np.inf),
        ("float64", None, 1e150, np.nextafter(1e150, np.inf)),
        # The squares are 0.
        ("float32", 1e-30, 1e-30, 1.1e-30),
        ("float16", None, 6e4, np.inf),
        ("bfloat16", None, 2.0**49, np.nan),
    ],
)
def test_the_sum_of_squares_decides_as_a_test_of_each_element(
    dtype, limit, good, bad, mode
):
    variable = keras.Variable(np.zeros(SIZE), dtype=dtype)
    optimizer = SafeOptimizer(keras.optimizers.SGD(0.0), "skip", limit=limit)
    optimizer.build([variable])
    step = modes.compile_for(mode, lambda g: optimizer.apply([g], [variable]))
    step(tf.fill([SIZE], tf.constant(good, dtype)))
    assert optimizer.nonfinite_steps == 0
    step(tf.concat([tf.zeros([SIZE - 1], dtype), [tf.constant(bad, dtype)]], axis=0))
    assert (optimizer.steps, optimizer.nonfinite_steps) == (2, 1)


@pytest.mark.parametrize("name", ["clipnorm", "global_clipnorm"])
def test_the_norm_is_that_of_the_gradients_after_replacement(name, mode):
    variable = keras.Variable(np.zeros(3, "float32"))
    inner = keras.optimizers.SGD(1.0)
    # Its square is finite, and part of the sum before the replacement.
    optimizer = SafeOptimizer(inner, limit=100.0, **{name: 1.0})
    optimizer.build([variable])
    step = modes.compile_for(mode, lambda g: optimizer.apply([g], [variable]))
    step(tf.constant([3.0, 1000.0, 4.0]))
    assert_close(variable.numpy(), [-0.6, 0.0, -0.8], 2)
