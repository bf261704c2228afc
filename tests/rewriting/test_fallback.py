"""A rewrite that fails leaves the function as TensorFlow runs it, with one warning."""

import numpy as np
import pytest
import tensorflow as tf

from tests.support.oracle import assert_close
from tests.support.warned import ours
from tfsafe import _faults
from tfsafe.rewriting import stabilize
from tfsafe.rewriting.engine import retrace
from tfsafe.rewriting.engine.rule import Rule
from tfsafe.rewriting.rules import table


def match_raises(op, reader):
    raise KeyError("injected")


def build_raises(op, reader):
    def build(value):
        value(op.inputs[0])
        raise KeyError("injected")

    return build


def other_shape(op, reader):
    return lambda value: tf.zeros([7, 7])


def other_dtype(op, reader):
    return lambda value: tf.cast(value(op.inputs[0]), tf.float64)


def kernel_raises(op, reader):
    def build(value):
        x = value(op.inputs[0])
        with tf.control_dependencies([tf.debugging.assert_less(x, 0.0)]):
            return tf.identity(x)

    return build


def kernel_of_gather_raises(op, reader):
    def build(value):
        x = value(op.inputs[0])
        # A GPU gathers 0 from beyond the end.
        with tf.device("CPU:0"):
            return tf.gather(x, tf.range(tf.size(x)) + tf.size(x))

    return build


def rule(match):
    return Rule(
        name="broken",
        before="",
        after="",
        fails_when="",
        reference="",
        op_types=("Log",),
        match=match,
    )


@pytest.fixture(autouse=True)
def forget_faults():
    yield
    _faults.REPORTED.clear()


def counted(wrap, **options):
    """Returns a function, wrapped, and the variable in which it counts its calls."""
    count = tf.Variable(0)

    @wrap
    @tf.function(**options)
    def function(x):
        count.assign_add(1)
        return 2.0 * tf.math.log(x)

    return function, count


X = tf.constant([1.0, 3.0])


@pytest.mark.parametrize("jit_compile", [False, True], ids=["graph", "xla"])
@pytest.mark.parametrize(
    "match", [match_raises, build_raises, other_shape, other_dtype]
)
def test_a_rewrite_that_cannot_be_made_is_not_made(match, jit_compile, monkeypatch):
    monkeypatch.setattr(table, "_RULES", [rule(match)])
    function, count = counted(stabilize, jit_compile=jit_compile)
    with pytest.warns(RuntimeWarning, match="tfsafe failed in the r") as caught:
        value = function(X)
    assert len(ours(caught)) == 1
    assert_close(value, 2 * np.log(X))
    assert_close(function(X), value, 0.5)
    assert int(count) == 2


@pytest.mark.parametrize("match", [kernel_raises, kernel_of_gather_raises])
def test_a_rewrite_that_fails_when_it_runs_is_taken_back(match, monkeypatch):
    monkeypatch.setattr(table, "_RULES", [rule(match)])
    function, count = counted(stabilize)
    with pytest.warns(RuntimeWarning, match="the stable form of `function`") as caught:
        value = function(X)
    assert len(ours(caught)) == 1
    assert_close(value, 2 * np.log(X))
    # The write of the failed attempt was undone.
    assert int(count) == 1
    assert_close(function(X), value, 0.5)
    assert int(count) == 2


def test_a_method_falls_back_too(monkeypatch):
    monkeypatch.setattr(table, "_RULES", [rule(kernel_raises)])

    class Head:
        scale = 2.0

        @stabilize
        def loss(self, x):
            return self.scale * tf.math.log(x)

    head = Head()
    with pytest.warns(RuntimeWarning, match="the stable form of `loss`"):
        assert_close(head.loss(X), 2 * np.log(X))


def test_an_emission_that_breaks_off_does_not_write_twice(monkeypatch):
    class Broken(retrace.Emission):
        def emit(self, *args):
            super().emit(*args)
            raise KeyError("injected")

    monkeypatch.setattr(retrace, "Emission", Broken)
    function, count = counted(stabilize)
    with pytest.warns(RuntimeWarning, match="KeyError: 'injected'"):
        value = function(X)
    assert_close(value, 2 * np.log(X))
    assert int(count) == 1


def test_an_error_of_the_program_when_it_runs_stays_its_own():
    @stabilize
    def function(x):
        count.assign_add(1)
        with tf.control_dependencies([tf.debugging.assert_less(x, 0.0, "mine")]):
            return tf.math.log(tf.nn.softmax(x))

    count = tf.Variable(0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="mine"):
        function(X)
    assert int(count) <= 1
