"""`checked(look_every=N)`: a look that comes late tells what one at once would."""

import subprocess
import sys
import textwrap

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework.ops import EagerTensor

import tfsafe
from tests.support import modes
from tests.support.oracle import assert_close

GRAPHS = ["graph", pytest.param("xla", marks=pytest.mark.slow)]
GOOD, BAD = np.ones((2, 3), np.float32), np.full((2, 3), -1, np.float32)


class Training:
    """A model of one weight for each feature, with its optimizer."""

    def __init__(self, optimizer=None):
        self.weights = tf.Variable([1.0, 2.0, 3.0])
        self.optimizer = optimizer or keras.optimizers.Adam(0.1)
        self.optimizer.build([self.weights])

    def step(self, x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.sqrt(x) * self.weights**2)
        gradient = tape.gradient(loss, self.weights)
        self.optimizer.apply([gradient], [self.weights])
        return loss

    def state(self):
        return [self.weights.numpy(), *map(np.array, self.optimizer.variables)]


def checked(training, mode="graph", **options):
    return tfsafe.checked(modes.compile_for(mode, training.step), **options)


def raised(call):
    with pytest.raises(tfsafe.NumericsError) as caught:
        call()
    return caught.value


def assert_equal(state, expected):
    for one, other in zip(state, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("mode", GRAPHS)
@pytest.mark.parametrize("checks", ["watch", "domain", "full"])
def test_a_bad_call_among_many_is_the_one_that_is_explained(mode, checks):
    at_once, late = Training(), Training()
    step = checked(at_once, mode, checks=checks)
    for _ in range(2):
        step(GOOD)
    expected = raised(lambda: step(BAD))

    step = checked(late, mode, checks=checks, look_every=32)
    for number in range(31):
        step(BAD if number == 2 else GOOD)
    error = raised(lambda: step(GOOD))
    assert error.findings[0].cause == expected.findings[0].cause
    assert error.findings[0].site == expected.findings[0].site
    assert error.reached == expected.reached
    np.testing.assert_array_equal(error.inputs["x"], BAD)
    assert error.step == 2
    assert "The 29 calls since changed none." in str(error)
    assert_equal(late.state(), at_once.state())

    # The training goes on.
    step(GOOD)
    step.look()
    checked(at_once, mode)(GOOD)
    assert_equal(late.state(), at_once.state())


def test_of_two_bad_calls_the_first_is_explained_and_the_second_another_time():
    training = Training()
    step = checked(training, look_every=8)
    for x in (GOOD, BAD, BAD * 4):
        step(x)
    error = raised(step.look)
    np.testing.assert_array_equal(error.inputs["x"], BAD)
    assert "The call since changed none." in str(error)
    step.look()
    step(BAD * 4)
    error = raised(step.look)
    np.testing.assert_array_equal(error.inputs["x"], BAD * 4)
    assert "since changed none" not in str(error)


def test_an_error_of_the_call_comes_after_what_failed_before():
    training = Training()

    @tf.function
    def step(x, limit):
        tf.debugging.assert_less(tf.reduce_max(x), limit)
        return training.step(x)

    step = tfsafe.checked(step, look_every=8)
    with pytest.raises(tf.errors.InvalidArgumentError):
        step(GOOD, 0.0)
    step(BAD, 2.0)
    error = raised(lambda: step(GOOD, 0.0))
    assert isinstance(error.__context__, tf.errors.InvalidArgumentError)
    np.testing.assert_array_equal(error.inputs["x"], BAD)


def test_two_functions_in_turns_stop_each_for_itself():
    one, other, twin = Training(), Training(), Training()
    steps = [checked(each, look_every=16) for each in (one, other)]
    for number in range(4):
        steps[0](BAD if number == 1 else GOOD)
        steps[1](GOOD)
    raised(steps[0].look)
    steps[1].look()
    for number in range(4):
        checked(twin)(GOOD)
        if number == 0:
            assert_equal(one.state(), twin.state())
    assert_equal(other.state(), twin.state())


@pytest.mark.parametrize("mode", GRAPHS)
def test_what_a_branch_writes_is_put_back(mode):
    weight, calls = tf.Variable(2.0), tf.Variable(0)

    def step(x):
        calls.assign_add(1)
        return tf.cond(
            x > 0, lambda: weight.assign_sub(x), lambda: weight.assign(tf.sqrt(x))
        )

    step = tfsafe.checked(modes.compile_for(mode, step), look_every=8)
    for x in (0.5, -1.0, 0.25, -1.0):
        step(tf.constant(x))
    assert weight.numpy() == 1.5
    error = raised(step.look)
    assert error.findings[0].op_type == "Sqrt"
    assert "call 2" in str(error)
    assert weight.numpy() == 1.5
    assert calls.numpy() == 1


@pytest.mark.parametrize("mode", GRAPHS)
def test_calls_that_did_not_fail_are_made_up_for(mode):
    weight = tf.Variable(1.0)

    def step(x):
        return x * tf.cast(weight.assign_add(1.0) > 0, tf.float64)

    step = tfsafe.checked(modes.compile_for(mode, step), look_every=4)
    huge = tf.fill([8], np.finfo(np.float64).max / 6)
    for x in (huge * 0, huge, huge, huge):
        step(x)
    assert weight.numpy() == 5.0


def test_what_is_excluded_is_no_failure():
    weight = tf.Variable(1.0)

    @tf.function
    def step(x):
        weight.assign_add(1.0)
        return tf.math.log(x)

    step = tfsafe.checked(step, look_every=4, exclude=["op:Log"])
    for x in (1.0, -1.0, 2.0, 3.0):
        step(tf.constant(x))
    assert weight.numpy() == 5.0


def test_strict_stops_at_what_reaches_no_result():
    weight = tf.Variable(1.0)

    @tf.function
    def step(x):
        weight.assign_add(1.0)
        return tf.where(x > 0, tf.math.log(x), 0.0)

    step = tfsafe.checked(step, look_every=8, strict=True)
    for x in (1.0, -1.0, 2.0):
        step(tf.constant(x))
    assert raised(step.look).findings[0].op_type == "Log"
    assert weight.numpy() == 2.0


def test_no_number_is_read_between_two_looks(monkeypatch):
    training, reads = Training(), []
    step = checked(training, look_every=4)
    step(GOOD)
    numpy = EagerTensor.numpy
    monkeypatch.setattr(EagerTensor, "numpy", lambda t: reads.append(t) or numpy(t))
    step(GOOD)
    step(BAD)
    assert not reads
    raised(lambda: step(GOOD))
    assert reads


def test_a_method_has_a_look_for_each_object():
    class Steps:
        def __init__(self):
            self.weight = tf.Variable(1.0)

        @tfsafe.checked(look_every=8)
        @tf.function
        def step(self, x):
            self.weight.assign(tf.sqrt(x))

    good, bad = Steps(), Steps()
    good.step(tf.constant(4.0))
    bad.step(tf.constant(-4.0))
    good.step.look()
    raised(bad.step.look)
    assert (good.weight.numpy(), bad.weight.numpy()) == (2.0, 1.0)


def test_the_losses_before_are_in_the_error():
    training = Training()
    step = checked(training, look_every=16)
    losses = [step(x).numpy() for x in [GOOD] * 8 + [BAD]]
    assert_close([*raised(step.look).losses], losses[:-1], dtype="float32")


@pytest.mark.parametrize("run", [[], ["-m", "tfsafe", "run"]], ids=["python", "run"])
def test_the_end_of_the_program_looks(run, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent("""
        import tensorflow as tf
        import tfsafe

        @tfsafe.checked(look_every=100)
        @tf.function
        def root(x):
            return tf.sqrt(x)

        root(tf.constant(4.0))
        root(tf.constant(-4.0))
        print("done")
        """)
    )
    ended = subprocess.run(
        [sys.executable, *run, str(program)],
        capture_output=True,
        text=True,
        check=False,
    )
    # At the end of `python` it is too late for another exit code.
    assert ended.returncode == (1 if run else 0)
    assert ended.stdout == "done\n"
    assert "sqrt of 1 negative number" in ended.stderr
    assert "call 2 of this function" in ended.stderr
    assert "late.py" not in ended.stderr


@pytest.mark.parametrize(
    ("number", "error", "message"),
    [
        (0, ValueError, "must be at least 1. Received: look_every=0"),
        (1.5, TypeError, "a whole number of calls. Received: look_every=1.5 of type"),
        (True, TypeError, "Received: look_every=True of type bool"),
    ],
)
def test_other_numbers_are_refused(number, error, message):
    with pytest.raises(error, match=message):
        tfsafe.checked(look_every=number)


@pytest.mark.parametrize(
    "target", [abs, keras.Sequential([keras.layers.Dense(1)])], ids=["python", "model"]
)
def test_other_targets_are_refused(target):
    with pytest.raises(ValueError, match=r"needs a `tf.function`.*look_every=2"):
        tfsafe.checked(target, look_every=2)
