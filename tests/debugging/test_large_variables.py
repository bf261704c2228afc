"""Large variables: checked and written without a second copy of their new values."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.support import modes
from tests.support.oracle import assert_close
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
    assert_close(checked.state(), plain.state(), 0 if mode == "graph" else 4)


@pytest.mark.usefixtures("all_are_large")
@pytest.mark.parametrize(
    ("factor", "op_type"), [(float("nan"), "argument"), (1e25, "Square")]
)
@pytest.mark.parametrize("mode", COMPILED)
@pytest.mark.parametrize("checks", ["watch", "full"])
def test_a_failed_step_writes_nothing(mode, factor, op_type, checks):
    training = Training(mode, checks=checks)
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
@pytest.mark.parametrize("mode", COMPILED)
@pytest.mark.parametrize("checks", ["domain", "full"])
def test_a_level_that_looks_into_the_step_writes_what_the_plain_one_writes(
    mode, checks
):
    checked, plain = Training(mode, checks=checks), Training(mode, checks=None)
    one = tf.constant(1.0)
    for _ in range(2):
        assert checked.step(X, one) == plain.step(X, one)
    assert_close(checked.state(), plain.state(), 0 if mode == "graph" else 4)


@pytest.mark.usefixtures("all_are_large")
def test_within_the_update_only_the_divisors_have_a_sum_in_a_graph():
    training = Training("graph", checks="full")
    training.step(X, tf.constant(1.0))
    made = operations(training)
    roots = [op for op in made if op.type == "Sqrt" and op.outputs[0].shape.rank]
    assert len(roots) == len(training.weights)
    for root in roots:
        (divisor,) = root.outputs[0].consumers()
        readers = [op.type for op in divisor.outputs[0].consumers()]
        assert sorted(readers) == ["RealDiv", "Sum"]


@pytest.mark.usefixtures("all_are_large")
def test_within_the_update_nothing_has_a_sum_under_xla():
    training = Training("xla", checks="full")
    training.step(X, tf.constant(1.0))
    made = operations(training)
    roots = [op for op in made if op.type == "Sqrt" and op.outputs[0].shape.rank]
    assert len(roots) == len(training.weights)
    for root in roots:
        (divisor,) = root.outputs[0].consumers()
        readers = [op.type for op in divisor.outputs[0].consumers()]
        # The second reader makes the quotient NaN where the divisor is infinite.
        assert sorted(readers) == ["Mul", "RealDiv"]


@pytest.mark.usefixtures("all_are_large")
@pytest.mark.parametrize("division", ["RealDiv", "Rsqrt"])
@pytest.mark.parametrize("mode", COMPILED)
@pytest.mark.parametrize("checks", ["domain", "full"])
def test_an_overflow_that_the_update_absorbs_is_found(mode, checks, division):
    weight = tf.Variable([2.0, 2.0])

    def step(gradient):
        squares = tf.square(gradient) + 1e-12
        if division == "Rsqrt":
            weight.assign_sub(gradient * tf.math.rsqrt(squares))
        else:
            weight.assign_sub(gradient / tf.sqrt(squares))
        return tf.reduce_sum(gradient)

    checked = tfsafe.checked(modes.compile_for(mode, step), checks=checks)
    checked(tf.constant([3.0, -4.0]))
    assert_close(weight, [1.0, 3.0])
    before = weight.numpy()
    with pytest.raises(tfsafe.NumericsError) as caught:
        checked(tf.constant([1e25, 1.0]))
    np.testing.assert_array_equal(weight, before)
    (finding,) = caught.value.findings
    assert finding.op_type == "Square"
    assert f"`{division}` at test_large_variables.py" in finding.cause


@pytest.mark.usefixtures("all_are_large")
@pytest.mark.parametrize("mode", COMPILED)
def test_a_divisor_that_is_meant_to_be_infinite_updates_as_the_plain_step(mode):
    weight = tf.Variable([1.0])

    def step(x):
        weight.assign_add(1.0 / tf.exp(x))
        return x * 2.0

    checked = tfsafe.checked(modes.compile_for(mode, step), checks="full")
    for expected in (1.0, 1.0, 2.0):
        checked(tf.constant([200.0 if expected == 1.0 else 0.0]))
        assert_close(weight, [expected])


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
