"""Large variables: checked and written without a second copy of their new values."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.support import modes
from tfsafe.debugging.state import update_part

COMPILED = ("graph", "xla")


@pytest.fixture
def all_are_large(monkeypatch):
    monkeypatch.setattr(update_part, "LARGE", 0)


class Training:
    """One step of a small model with Adam, and the state that it writes."""

    def __init__(self, mode, *, checks="watch", ema=False):
        self.kernel = tf.Variable([[0.5, -0.25], [1.0, 2.0]])
        self.bias = tf.Variable([0.125, 0.5])
        self.weights = [self.kernel, self.bias]
        self.optimizer = keras.optimizers.AdamW(0.1, use_ema=ema)
        self.optimizer.build(self.weights)
        compiled = modes.compile_for(mode, self._step)
        self.step = tfsafe.checked(compiled, checks=checks) if checks else compiled

    def _step(self, x, factor):
        with tf.GradientTape() as tape:
            y = tf.tanh(x @ self.kernel) + self.bias
            loss = tf.reduce_sum(tf.square(y)) * factor
        self.optimizer.apply(tape.gradient(loss, self.weights), self.weights)
        return loss

    def state(self):
        values = [*self.weights, *self.optimizer.variables]
        return [np.array(each) for each in values]


X = tf.constant([[1.0, -2.0], [0.5, 0.25]])


@pytest.mark.usefixtures("all_are_large")
@pytest.mark.parametrize("ema", [False, True])
@pytest.mark.parametrize("mode", COMPILED)
def test_a_finite_step_writes_what_the_plain_one_writes(mode, ema):
    checked = Training(mode, ema=ema)
    plain = Training(mode, checks=None, ema=ema)
    for _ in range(3):
        assert checked.step(X, 1.0) == plain.step(X, 1.0)
    for mine, other in zip(checked.state(), plain.state(), strict=True):
        np.testing.assert_allclose(mine, other, rtol=0 if mode == "graph" else 1e-6)


@pytest.mark.usefixtures("all_are_large")
@pytest.mark.parametrize(
    ("factor", "op_type"), [(float("nan"), "argument"), (1e25, "Square")]
)
@pytest.mark.parametrize("mode", COMPILED)
def test_a_failed_step_writes_nothing(mode, factor, op_type):
    training = Training(mode)
    training.step(X, tf.constant(1.0))
    before = training.state()
    with pytest.raises(tfsafe.NumericsError) as caught:
        training.step(X, tf.constant(factor))
    for old, new in zip(before, training.state(), strict=True):
        np.testing.assert_array_equal(old, new)
    # The gradients of 1e25 are finite; the square in Adam is not.
    first = caught.value.findings[0]
    assert op_type in (first.op_type or first.origin)


@pytest.mark.usefixtures("all_are_large")
def test_the_update_waits_for_the_flags_of_what_it_uses():
    training, plain = Training("graph", checks="full"), Training("graph", checks=None)
    one = tf.constant(1.0)
    assert training.step(X, one) == plain.step(X, one)
    for mine, other in zip(training.state(), plain.state(), strict=True):
        np.testing.assert_array_equal(mine, other)
    made = operations(training)
    roots = [op for op in made if op.type == "Sqrt" and op.outputs[0].shape.rank]
    users = [op.outputs[0].consumers() for op in roots]
    looks = [next(op for op in each if op.type == "Sum") for each in users]
    uses = [next(op for op in each if op.type == "AddV2") for each in users]
    assert len(roots) == len(training.weights)
    assert all(map(waits, uses, looks))
    # A quotient waits for the check of its denominator.
    (*_, quotient) = [op for op in made if op.type == "RealDiv"]
    assert any(op.type == "Any" and waits(quotient, op) for op in made)


def waits(op, other):
    """Returns whether an operation waits for another one that it need not read."""
    awaited = op.control_inputs
    return any(each.name == other.name or waits(each, other) for each in awaited)


def operations(training):
    function = training.step._compiled._watched
    return function.get_concrete_function(X, tf.constant(1.0)).graph.get_operations()


def branch_inputs(training):
    """Returns how many tensors like the kernel the branch that writes takes."""
    (branch,) = [op for op in operations(training) if op.type.endswith("If")]
    floats = [each for each in branch.inputs if each.dtype == tf.float32]
    return sum(each.shape == [2, 2] for each in floats)


def test_a_small_variable_and_its_slots_are_kept():
    training = Training("graph")
    training.step(X, tf.constant(1.0))
    assert branch_inputs(training) == 3


@pytest.mark.usefixtures("all_are_large")
def test_of_a_large_variable_only_the_gradient_is_kept():
    training = Training("graph")
    training.step(X, tf.constant(1.0))
    assert branch_inputs(training) == 1


@pytest.mark.usefixtures("all_are_large")
@pytest.mark.parametrize("mode", COMPILED)
def test_a_variable_whose_new_value_is_a_result_is_kept(mode):
    total, last = tf.Variable([0.0]), tf.Variable([0.0])

    def step(x):
        last.assign(x * 2)
        total.assign_add(x)
        return total * 2, last.read_value()

    checked = tfsafe.checked(modes.compile_for(mode, step))
    for _ in range(2):
        result = checked(tf.constant([3.0]))
    assert result[0].numpy() == [12.0]
    assert result[1].numpy() == last.numpy() == [6.0]
    with pytest.raises(tfsafe.NumericsError):
        checked(tf.constant([np.inf]))
    assert (total.numpy(), last.numpy()) == ([6.0], [6.0])
