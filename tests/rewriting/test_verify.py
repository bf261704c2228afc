"""`verify=True`: both forms on the first arguments, and a judge in float64."""

import warnings

import numpy as np
import pytest
import tensorflow as tf

from tests.support.oracle import assert_close
from tests.support.warned import ours
from tfsafe.rewriting import stabilize
from tfsafe.rewriting.engine.rule import Rule
from tfsafe.rewriting.rules import table


def log_softmax(x):
    return tf.math.log(tf.nn.softmax(x))


def wrong_match(op, reader):
    x = op.inputs[0]
    return lambda value: tf.math.log(value(x) + 1e-2)


def nan_match(op, reader):
    x = op.inputs[0]
    return lambda value: tf.sqrt(-value(x))


def wrong(name, match):
    return Rule(
        name=name,
        before="log(x)",
        after="log(x + 0.01)",
        fails_when="",
        reference="",
        op_types=("Log",),
        match=match,
    )


@pytest.fixture
def rule(monkeypatch):
    def use(match):
        rules = [wrong("wrong-log", match)]
        monkeypatch.setattr(table, "_RULES", rules)

    return use


def test_forms_that_agree_are_let_through(dtype):
    function = stabilize(log_softmax, verify=True)
    x = tf.constant([[0.0, -200.0], [1.0, 2.0]], dtype)
    value = function(x)
    assert value.dtype == dtype
    assert np.isfinite(value).all()


def test_a_wrong_rewrite_is_named_with_its_values_and_not_made(rule):
    rule(wrong_match)
    function = stabilize(log_softmax, verify=True)
    x = tf.constant([[0.0, -5.0]])
    message = (
        r"`log_softmax` and its stable form differ where both should agree\. output 0 "
        r"at \(0, 0\): -0\.00671\d+ as written, 0\.0033\d+ stabilised, -0\.00671\d+ "
        r"as written in float64 \(2 of 2 values\); gradient .*\. Behind it: "
        r"'wrong-log' at .*test_verify\.py:\d+\. This formula runs as written"
    )
    with pytest.warns(RuntimeWarning, match=message) as caught:
        value = function(x)
    assert ours(caught)[0].filename == __file__
    assert_close(value, log_softmax(x), 71, why="the logarithm of a probability near 1")
    assert not len(stabilize.report(function, x))


def test_a_nan_in_place_of_a_number_is_wrong(rule):
    rule(nan_match)
    function = stabilize(tf.math.log, verify=True)
    with pytest.warns(RuntimeWarning, match=r"output 0: 0.6931\d+ as written, nan"):
        value = function(tf.constant(2.0))
    assert_close(value, np.log(2))


def test_what_the_naive_form_got_wrong_is_no_difference():
    # Cancellation: 0 as written, 5e-9 in float64.
    function = stabilize(lambda x: tf.exp(x) - 1.0, verify=True)
    assert_close(function(tf.constant(5e-9)), 5e-9)


# Slopes or values that are 0, as a rounding of terms that cancel; and
# arguments that leave the domain when they are multiplied by 10.
CONSTANT = {
    "the sum of a softmax": lambda x: tf.reduce_sum(
        tf.exp(x) / tf.reduce_sum(tf.exp(x))
    ),
    "the length of a unit vector": lambda x: tf.reduce_sum((x / tf.norm(x)) ** 2),
    "the sum of a normalised row": lambda x: tf.reduce_sum(
        (x - tf.reduce_mean(x))
        / tf.sqrt(tf.reduce_mean(x * x) - tf.reduce_mean(x) ** 2 + 1e-6)
    ),
    "an inverse cosine": lambda x: tf.acos(tf.reduce_sum(x * x)),
    "a logarithm": lambda x: tf.math.log(1.0 - x),
}


@pytest.mark.parametrize("name", CONSTANT)
def test_roundings_of_0_and_arguments_outside_the_domain_agree(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stabilize(CONSTANT[name], verify=True)(tf.constant([0.3, -0.2, 0.7]))


def twice(x):
    return tf.math.log(x + 1.0) + tf.math.log(x + 2.0)


def test_only_the_single_wrong_rewrite_is_not_made(rule):
    def match(op, reader):
        x = op.inputs[0]
        # Twice the slope, and the same value; and only of the second logarithm.
        if reader.constant(x.op.inputs[1]) != 2.0:
            return lambda value: tf.math.log(value(x))
        return lambda value: (
            2 * tf.math.log(value(x)) - tf.stop_gradient(tf.math.log(value(x)))
        )

    rule(match)
    function = stabilize(twice, verify=True)
    message = r"gradient of input 0: .* Behind it: 'wrong-log' at .*py:\d+\. This"
    with pytest.warns(RuntimeWarning, match=message) as caught:
        function(tf.constant(1.0))
    assert len(ours(caught)) == 1
    assert len(stabilize.report(function, tf.constant(1.0))) == 1
    with tf.GradientTape() as tape:
        x = tf.Variable(1.0)
        value = function(x)
    assert_close(tape.gradient(value, x), 1 / 2 + 1 / 3)


@pytest.mark.parametrize("scale", [10.0, 0.1])
def test_arguments_of_other_sizes_are_verified_too(rule, scale):
    def match(op, reader):
        x = op.inputs[0]

        def build(value):
            is_near = tf.abs(value(x) - scale) < 0.01
            return tf.where(is_near, 7.0, tf.math.log(value(x)))

        return build

    rule(match)
    function = stabilize(tf.math.log, verify=True)
    with pytest.warns(RuntimeWarning, match=f"With its arguments times {scale}: `log`"):
        function(tf.constant(1.0))
    assert_close(function(tf.constant(scale)), np.log(scale))


def test_gradients_in_variables_are_verified(rule):
    def match(op, reader):
        return lambda value: tf.stop_gradient(tf.math.log(value(op.inputs[0])))

    rule(match)
    weight = tf.Variable(2.0, name="weight")
    function = stabilize(lambda x: x + tf.math.log(weight), verify=True)
    with pytest.warns(RuntimeWarning, match=r"gradient of variable `weight:0`: 0\.5 "):
        function(tf.constant(1.0))


def test_only_the_first_call_is_verified(rule):
    rule(wrong_match)
    function = stabilize(tf.math.log, verify=True)
    function(tf.constant(1e6))
    function(tf.constant(1e-3))


def test_the_bias_of_a_guard_is_a_remark():
    def guarded(x):
        return tf.math.log(tf.nn.softmax(x) + 1e-7)

    function = stabilize(guarded, verify=True)
    with pytest.warns(RuntimeWarning, match="This is the bias of a guard") as caught:
        value = function(tf.constant([[0.0, -18.0]]))
    assert ours(caught)[0].filename == __file__
    assert_close(value, [[0.0, -18.0]], 0.5, scale=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stabilize(guarded, exclude="log-of-guarded-probability", verify=True)(
            tf.constant([[0.0, -18.0]])
        )


class Model(tf.Module):
    def __init__(self):
        super().__init__()
        self.weights = tf.Variable([[0.5, -1.0], [2.0, 0.25]])
        self.calls = tf.Variable(0)

    def step(self, x):
        self.calls.assign_add(1)
        with tf.GradientTape() as tape:
            loss = -tf.reduce_mean(log_softmax(x @ self.weights)[:, 1])
        self.weights.assign_sub(0.1 * tape.gradient(loss, self.weights))
        return {"loss": loss, "none": None}


@pytest.mark.parametrize("jit_compile", [False, True])
def test_variables_are_written_once_and_compared(jit_compile):
    module, other = Model(), Model()
    x = tf.constant([[1.0, -0.5]])
    step = stabilize(tf.function(module.step, jit_compile=jit_compile), verify=True)
    assert step(x)["none"] is None
    other.step(x)
    assert int(module.calls) == 1
    assert_close(module.weights, other.weights)


def test_a_variable_that_differs_is_named(rule):
    rule(wrong_match)
    total = tf.Variable(0.0, name="total")

    def function(x):
        total.assign_add(tf.math.log(x))

    with pytest.warns(RuntimeWarning, match=r"variable `total:0`: -4\.60\d+ as wri"):
        stabilize(function, verify=True)(tf.constant(0.01))
    assert_close(total, np.log(0.01))


def test_loops_and_branches_are_judged_in_float64():
    def function(x):
        def body(i, y):
            y = tf.cond(i > 0, lambda: log_softmax(y), lambda: y * 2.0)
            return i + 1, tf.ensure_shape(y, [1, 2])

        total = tf.while_loop(lambda i, _: i < 3, body, (tf.constant(0), x))[1]
        return (
            total
            + tf.cast(tf.size(x), tf.float32)
            + tf.random.stateless_normal([2], [1, 2])
        )

    assert stabilize(function, verify=True)(tf.constant([[1.0, 2.0]])).shape == [1, 2]


def test_mixed_precision_is_judged_in_float64():
    def function(x):
        half = tf.cast(tf.nn.softmax(x), tf.float16)
        return tf.cast(tf.math.log(half), tf.float32), tf.argmax(half, -1)

    value, index = stabilize(function, verify=True)(tf.constant([[1.0, 2.0]]))
    assert_close(value, [[-1.3132617, -0.3132617]])
    assert index.numpy().tolist() == [1]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: x + tf.random.normal([]), "returns something else each time"),
        (lambda x: tf.py_function(abs, [x], tf.float32), "may do anything"),
    ],
    ids=["random", "python"],
)
def test_what_cannot_be_run_twice_is_not_verified(function, reason):
    with pytest.warns(RuntimeWarning, match=f"was not verified: .*{reason}"):
        stabilize(function, verify=True)(tf.constant(1.0))


def test_a_method_is_verified():
    class Head:
        scale = 2.0

        @stabilize(verify=True)
        def loss(self, x):
            return log_softmax(x * self.scale)

    head = Head()
    assert_close(head.loss(tf.constant([[0.0, -100.0]])), [[0.0, -200.0]], 0.5)
    assert head.loss.__name__ == "loss"


def test_within_another_function_nothing_is_verified(rule):
    rule(wrong_match)
    function = stabilize(tf.math.log, verify=True)
    value = tf.function(lambda x: function(x))(tf.constant(0.01))
    assert_close(value, np.log(0.02))
