"""The counters of the wrapper, and `max_consecutive`."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.support import modes
from tfsafe import NumericsError
from tfsafe.graph import bodies
from tfsafe.optimizers import SafeOptimizer

NAN = float("nan")
GOOD, BAD = (1.0, 1.0), (1.0, NAN)


class Steps:
    """Two variables and a step in one mode."""

    def __init__(self, mode: str, policy: str = "skip", **arguments):
        self.variables = [keras.Variable([1.0], name=n) for n in ("first", "second")]
        self.optimizer = SafeOptimizer("adam", policy, **arguments)
        self.optimizer.build(self.variables)
        self._step = modes.compile_for(
            mode, lambda *g: self.optimizer.apply(list(g), self.variables)
        )

    def take(self, *steps) -> SafeOptimizer:
        for first, second in steps:
            self._step(tf.constant([first]), tf.constant([second]))
        return self.optimizer


def test_nothing_is_counted_before_the_first_step():
    optimizer = SafeOptimizer("adam")
    assert optimizer.steps == optimizer.nonfinite_steps == 0
    assert optimizer.last_nonfinite_step == 0
    assert optimizer.last_nonfinite_variables == ()
    assert not optimizer.was_nonfinite


@pytest.mark.parametrize("policy", ["replace", "zero_variable", "skip"])
def test_nonfinite_steps_are_counted_on_the_device(mode, policy):
    steps = Steps(mode, policy)
    optimizer = steps.take(GOOD, BAD, BAD)
    assert optimizer.was_nonfinite
    assert optimizer.consecutive_nonfinite_steps == 2
    optimizer = steps.take(GOOD, GOOD)
    assert not optimizer.was_nonfinite
    counts = {name: int(value.numpy()) for name, value in optimizer.counters.items()}
    assert counts == {
        "steps": 5,
        "nonfinite_steps": 2,
        "consecutive_nonfinite_steps": 0,
        "last_nonfinite_step": 3,
    }
    assert counts == {name: getattr(optimizer, name) for name in counts}
    assert all(type(getattr(optimizer, name)) is int for name in counts)


def test_the_variables_of_the_last_nonfinite_step_are_named(mode):
    steps = Steps(mode)
    assert steps.take(BAD, GOOD).last_nonfinite_variables == ("second",)
    both = (float("inf"), 1e20)
    assert steps.take(both, GOOD).last_nonfinite_variables == ("first", "second")


def test_nonfinite_steps_are_counted_for_each_variable(mode):
    steps = Steps(mode)
    assert steps.optimizer.nonfinite_steps_by_variable == {}
    steps.take(BAD, GOOD, (NAN, NAN), BAD)
    assert steps.optimizer.nonfinite_steps_by_variable == {"first": 1, "second": 3}


def test_a_finite_step_counts_with_two_writes():
    variable = keras.Variable([1.0])
    optimizer = SafeOptimizer("adam")
    optimizer.build([variable])
    function = tf.function(lambda g: optimizer.apply([g], [variable]), autograph=False)
    graph = function.get_concrete_function(tf.TensorSpec([1])).graph
    counting = [op for op in graph.get_operations() if op.type == "If"][-1]
    assert writes(graph) == 1
    assert sorted(map(writes, bodies(counting))) == [1, 5]


def writes(graph):
    """Returns the number of writes to variables, without those in branches."""
    return sum(op.type.startswith("Assign") for op in graph.get_operations())


@pytest.mark.parametrize("policy", ["replace", "zero_variable", "skip"])
def test_nonfinite_elements_are_counted_on_request(policy, mode):
    variables = [keras.Variable(np.ones((4, 2), "float32"), name=n) for n in "abc"]
    optimizer = SafeOptimizer("sgd", policy, count_elements=True)
    optimizer.build(variables)
    assert optimizer.last_nonfinite_elements == {}
    nan = float("nan")

    def step(dense, values):
        rows = tf.IndexedSlices(values, tf.constant([2]), tf.constant([4, 2]))
        optimizer.apply([dense, rows, tf.ones((4, 2))], variables)

    step = modes.compile_for(mode, step)
    dense = tf.constant([[nan, 1.0], [1e20, -np.inf], [0.0, 0.0], [nan, 1.0]])
    step(dense, tf.constant([[1.0, nan]]))
    step(tf.ones((4, 2)), tf.ones((1, 2)))
    assert optimizer.last_nonfinite_elements == {"a": 4, "b": 1}
    assert optimizer.last_nonfinite_variables == ("a", "b")


def test_nonfinite_elements_that_are_not_counted_are_not_reported():
    with pytest.raises(RuntimeError, match="optimizer with `count_elements=True`"):
        _ = SafeOptimizer("sgd").last_nonfinite_elements


def test_counters_can_be_used_in_compiled_code():
    steps = Steps("eager")
    total = steps.optimizer.counters["nonfinite_steps"]
    count = tf.function(lambda: total + 1, autograph=False, jit_compile=True)
    steps.take(BAD)
    assert int(count()) == 2


def test_the_counts_are_refused_while_a_function_is_traced():
    optimizer = SafeOptimizer("adam")
    with pytest.raises(RuntimeError, match=r"within a tf\.function.*`counters`"):
        tf.function(lambda: optimizer.nonfinite_steps, autograph=False)()


def test_in_eager_execution_the_last_nonfinite_step_allowed_raises():
    steps = Steps("eager", max_consecutive=3)
    steps.take(BAD, BAD, GOOD, BAD, BAD)
    with pytest.raises(NumericsError, match="The last 3 steps in a row"):
        steps.take(BAD)


@pytest.mark.parametrize("compiled", ["graph", "xla"])
def test_a_compiled_step_leaves_it_to_the_host(compiled):
    steps = Steps(compiled, max_consecutive=2)
    optimizer = steps.take(BAD)
    optimizer.raise_if_stuck()
    steps.take(BAD)
    with pytest.raises(NumericsError, match="The last 2 steps in a row"):
        optimizer.raise_if_stuck()
    steps.take(GOOD)
    optimizer.raise_if_stuck()


def test_without_a_bound_it_never_gives_up():
    optimizer = Steps("eager").take(*[BAD] * 50)
    optimizer.raise_if_stuck()
    assert optimizer.consecutive_nonfinite_steps == 50


def test_the_error_says_how_often_where_and_what_to_do():
    variables = [keras.Variable([1.0], name=f"w{i}") for i in range(6)]
    optimizer = SafeOptimizer("sgd", max_consecutive=1)
    bad = tf.constant([np.nan])
    with pytest.raises(NumericsError) as caught:
        optimizer.apply([tf.constant([1.0]), *[bad] * 5], variables)
    assert str(caught.value) == (
        "The last step had gradients that are NaN, infinite or above the limit: step "
        "1, in 5 of 6 variables (w1, w2, w3 and 2 more). Put `@tfsafe.checked` on the "
        "training step to see which operation makes the first non-finite value, and "
        "fix it or the data; where gradients grow from step to step, lower the "
        "learning rate or clip them. (max_consecutive=1)"
    )
