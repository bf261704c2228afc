"""Steps whose gradients are all zero after non-finite elements are replaced."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.support import modes
from tfsafe.optimizers import SafeOptimizer

NAN = float("nan")


@pytest.fixture(params=["replace", "zero_variable"])
def policy(request) -> str:
    return request.param


class Steps:
    """Two variables under a momentum that moves on even where the gradient is 0."""

    def __init__(self, policy, mode="eager", dtype="float32", **arguments):
        self.variables = [keras.Variable(tf.ones(2, dtype), dtype=dtype) for _ in "ab"]
        inner = keras.optimizers.SGD(0.25, momentum=0.5, **arguments)
        self.optimizer = SafeOptimizer(inner, policy)
        self.optimizer.build(self.variables)
        self._step = modes.compile_for(
            mode, lambda *grads: self.optimizer.apply(list(grads), self.variables)
        )
        self._dtype = dtype

    def take(self, first, second) -> bool:
        """Takes one step, and returns whether anything but the counters changed."""
        state = self._state()
        self._step(tf.constant(first, self._dtype), tf.constant(second, self._dtype))
        return any(map(np.any, map(np.not_equal, state, self._state())))

    def _state(self):
        of_all = [*self.variables, *self.optimizer.inner_optimizer.variables]
        return [tf.cast(variable.value, "float32").numpy() for variable in of_all]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_it_is_skipped_and_counted(policy, dtype, mode):
    steps = Steps(policy, mode, dtype)
    assert steps.take([1.0, 1.0], [1.0, 1.0])
    assert not steps.take([NAN, -np.inf], [NAN, np.inf])
    # What was good is 0: there is nothing to go by either.
    assert not steps.take([NAN, 0.0], [-0.0, 0.0])
    assert steps.optimizer.nonfinite_steps == 2
    assert steps.optimizer.last_nonfinite_step == 3
    # A good step of zeros is one like any other: the momentum moves on.
    assert steps.take([0.0, 0.0], [0.0, 0.0])


def test_one_element_that_is_left_is_enough(policy):
    steps = Steps(policy)
    assert steps.take([NAN, NAN], [0.0, 1e-30])
    # Here "zero_variable" takes what "replace" leaves.
    assert steps.take([NAN, 1.0], [1.0, NAN]) == (policy == "replace")


def test_gradients_that_are_too_large_count_as_nonfinite(policy):
    assert not Steps(policy).take([1e16, -1e30], [NAN, NAN])


@pytest.mark.parametrize(("left", "is_taken"), [(NAN, False), (1.0, True)])
def test_sparse_and_missing_gradients_are_looked_at(left, is_taken, policy, mode):
    variables = [keras.Variable(tf.ones((4, 2))) for _ in range(3)]
    optimizer = SafeOptimizer("sgd", policy)
    optimizer.build(variables)

    def step(dense, values):
        rows = tf.IndexedSlices(values, tf.constant([1, 3]), tf.constant([4, 2]))
        optimizer.apply([dense, rows, None], variables)

    step = modes.compile_for(mode, step)

    def steps():
        step(tf.ones((4, 2)), tf.ones((2, 2)))
        step(tf.fill((4, 2), NAN), tf.constant([[left, left], [0.0, left]]))

    # Keras says it in each step that it takes as Python.
    with pytest.warns(UserWarning, match="Gradients do not exist for"):
        steps()
    assert int(optimizer.iterations.numpy()) == 1 + is_taken
    assert optimizer.nonfinite_steps == 1


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_such_a_micro_batch_does_not_enter_the_sum(policy, mode):
    steps = Steps(policy, mode, gradient_accumulation_steps=2)
    good, bad = ([1.0, 1.0], [1.0, 1.0]), ([NAN, NAN], [NAN, 0.0])
    steps.take(*good)
    assert not steps.take(*bad)
    assert steps.variables[0].numpy().tolist() == [1.0, 1.0]
    # Another one takes its place.
    steps.take(*good)
    assert steps.variables[0].numpy().tolist() == [0.75, 0.75]


def test_values_that_overwrite_their_variable_are_not_gradients_that_are_left(policy):
    scale, weight = keras.Variable([3.0]), keras.Variable([1.0])
    scale.overwrite_with_gradient = True
    optimizer = SafeOptimizer("sgd", policy)
    optimizer.apply([tf.constant([2.0]), tf.constant([NAN])], [scale, weight])
    assert scale.numpy().tolist() == [3.0]


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_with_a_statistic_of_outliers_it_is_skipped_too(policy, mode):
    variable = keras.Variable([1.0])
    optimizer = SafeOptimizer("adam", policy, outlier_threshold=6.0)
    optimizer.build([variable])
    step = modes.compile_for(mode, lambda g: optimizer.apply([g], [variable]))
    for value in (1.0, NAN, 1.0):
        step(tf.constant([value]))
    assert int(optimizer.iterations.numpy()) == 2
    assert (optimizer.nonfinite_steps, optimizer.outlier_steps) == (1, 0)
