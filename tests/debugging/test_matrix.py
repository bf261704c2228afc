"""Every kind of failure in every mode: the right operation and the right line."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.debugging import programs
from tests.support import modes

CASES = [
    ("forward_nan", "Sqrt", False),
    ("forward_inf", "Log", False),
    ("backward_nan", "SqrtGrad", True),
    ("backward_masked", "Reciprocal", True),
    ("in_loop", "Sqrt", False),
    ("in_loop_gradient", "SqrtGrad", True),
    ("in_nested", "RealDiv", False),
    ("in_nested_gradient", "SqrtGrad", True),
    ("in_branch", "Log", False),
    ("in_branch_gradient", "SqrtGrad", True),
    ("in_map", "Reciprocal", False),
    ("in_custom_gradient", "RealDiv", True),
]


def failure(function, *args):
    with pytest.raises(tfsafe.NumericsError) as caught:
        function(*args)
    return caught.value


@pytest.mark.parametrize(("name", "op", "is_gradient"), CASES, ids=lambda each: each)
def test_the_first_nonfinite_operation_and_its_line_are_named(
    mode, name, op, is_gradient
):
    function = modes.compile_for(mode, getattr(programs, name))
    error = failure(tfsafe.checked(function), programs.X)
    finding = error.findings[0]
    assert finding.op_type == op
    assert programs.is_at(finding.site, name), str(finding.site)
    assert finding.is_gradient == is_gradient
    assert finding.cause
    assert finding.suggestion


@pytest.mark.parametrize("autograph", [False, True])
def test_a_lambda_is_called_one(autograph):
    function = tf.function(lambda x: tf.math.log(x), autograph=autograph)
    error = failure(tfsafe.checked(function), tf.zeros([1]))
    assert error.findings[0].site.function == "<lambda>"


def test_a_nan_that_came_in_is_named_by_argument_row_and_index(mode):
    x = tf.constant([[1.0, 2.0], [3.0, float("nan")]])
    error = failure(tfsafe.checked(modes.compile_for(mode, programs.passes_on)), x)
    finding = error.findings[0]
    assert finding.origin == "argument `x`"
    assert (finding.kind, finding.count, finding.size) == ("NaN", 1, 4)
    assert (finding.index, finding.row) == ((1, 1), 1)
    origins = [link.origin for link in finding.chain]
    assert origins == ["argument `x`", "", "", "output"]
    assert not finding.op_type


def test_the_iteration_of_a_loop_is_reported(mode):
    # 0.75 - 0.5 is 0.25, whose root is 0.5; the next round takes the root of 0.
    error = failure(
        tfsafe.checked(modes.compile_for(mode, programs.in_loop)), programs.X + 0.2
    )
    # An eager loop is Python's, of which nothing is known.
    assert error.findings[0].iteration == (() if mode == "eager" else (1,))


@pytest.mark.parametrize("layer", ["rnn", "lstm"])
def test_a_failure_inside_a_recurrent_layer_is_named(mode, layer):
    if layer == "rnn":
        model = keras.layers.RNN(programs.Cell(), name="steps")
        mark, op = "in_cell", "Log"
    else:
        model = keras.Sequential([programs.Standardise(), keras.layers.LSTM(3)])
        mark, op = "standardise", "RealDiv"
    x = tf.constant([[[1.0, 2.0, 3.0], [1.0, 1.0, 1.0]]])
    model(x)

    def predict(x):
        return model(x)

    error = failure(tfsafe.checked(modes.compile_for(mode, predict)), x)
    assert error.findings[0].op_type == op
    assert programs.is_at(error.findings[0].site, mark)
    assert model.name in error.findings[0].scope


def test_the_gradient_of_a_gradient_is_followed(mode):
    def run(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = x**1.5
            slope = inner.gradient(y, x)
        return outer.gradient(slope, x)

    function = tfsafe.checked(modes.compile_for(mode, run))
    error = failure(function, tf.constant([4.0, 0.0]))
    assert error.findings[0].is_gradient
    assert error.findings[0].site.source == "y = x**1.5"


def test_the_sum_of_two_gradients_belongs_to_no_forward_operation(mode):
    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(x * 3e38) + tf.reduce_sum(x * 3e38)
        return tape.gradient(y, x)

    error = failure(tfsafe.checked(modes.compile_for(mode, run)), tf.zeros([2]))
    finding = error.findings[0]
    assert finding.op_type in {"AddN", "AddV2"}
    assert finding.is_gradient
    assert finding.site.source == "return tape.gradient(y, x)"
    assert "overflows float32" in finding.cause


def test_a_failure_that_only_xla_has_is_found_with_the_kernels_of_xla():
    # The plain kernel of SqrtGrad gives 0 for an incoming gradient of 0; XLA 0 * inf.
    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.where(x > 0, tf.sqrt(x), tf.zeros_like(x))
        return tape.gradient(y, x)

    x = tf.constant([0.0, 4.0])
    assert tfsafe.checked(tf.function(run))(x).numpy().tolist() == [0.0, 0.25]
    error = failure(tfsafe.checked(tf.function(run, jit_compile=True)), x)
    assert error.findings[0].op_type == "SqrtGrad"
    assert error.findings[0].forward_op == "Sqrt"
    assert "tf.sqrt(x)" in error.findings[0].site.source


def test_a_nan_made_of_intended_infinities_is_named_where_it_arises(mode):
    def attend(scores):
        masked = tf.where(scores > 0, scores, tf.constant(-float("inf")))
        return tf.nn.softmax(masked)

    function = tfsafe.checked(modes.compile_for(mode, attend))
    assert function(tf.constant([[1.0, -1.0]])).numpy().tolist() == [[1.0, 0.0]]
    error = failure(function, tf.constant([[1.0, 1.0], [-1.0, -1.0]]))
    assert error.findings[0].op_type == "Softmax"
    assert error.findings[0].cause == "1 row of only -inf (at (1,))."


def test_a_constant_that_the_program_writes_is_named_as_such(mode):
    function = modes.compile_for(mode, lambda x: x + tf.constant(float("inf")))
    finding = failure(tfsafe.checked(function), tf.constant([1.0])).findings[0]
    if mode == "eager":
        # An eager constant is no operation.
        assert finding.origin == "a constant, or a tensor from outside"
        assert f"test_matrix.py:{finding.site.line} in <lambda> (which reads" in str(
            finding
        )
        assert "x + tf.constant(" in finding.site.source
        assert finding.cause == "no operation of the call made it."
    else:
        assert finding.op_type == "Const"
        assert finding.cause == "the program writes this constant."
        assert not finding.suggestion


@pytest.mark.parametrize("mode", ["graph", "xla"])
def test_a_constant_beyond_float16_is_told_where_that_ends(mode):
    # A scale of the loss that is infinite in half precision.
    with np.errstate(over="ignore"):
        scale = np.float16(2.0**16)
    function = modes.compile_for(mode, lambda loss: loss * scale)
    finding = failure(tfsafe.checked(function), tf.constant([1.0], tf.float16))
    (finding,) = finding.findings
    assert finding.op_type == "Const"
    assert finding.suggestion.startswith("float16 ends at 65504")
    assert "LossScaleOptimizer" in finding.suggestion


def test_of_two_failures_the_one_that_reaches_the_result_is_reported(mode):
    def run(x):
        lost = tf.math.log(x) * 2.0
        kept = tf.sqrt(x - 3.0)
        return kept + tf.where(tf.math.is_finite(lost), lost, tf.zeros_like(lost))

    error = failure(tfsafe.checked(modes.compile_for(mode, run)), tf.constant([0.0]))
    assert error.findings[0].op_type == "Sqrt"


def test_an_elementwise_operation_is_reported_from_what_was_nonfinite_before(mode):
    def run(x):
        low = tf.math.log(x)
        return tf.sqrt(low)

    # Element 0: log(0) and then sqrt(-inf). Element 1: sqrt(log(0.5)) alone.
    x = tf.constant([0.0, 0.5, 2.0])
    error = failure(tfsafe.checked(modes.compile_for(mode, run)), x)
    assert [each.op_type for each in error.findings] == ["Log", "Sqrt"]
    assert [each.index for each in error.findings] == [(0,), (1,)]


def test_an_update_that_overflows_a_variable_is_named(mode):
    weight = tf.Variable([3e38, 1.0])

    def step(x):
        weight.assign_add(x)
        return x

    checked = tfsafe.checked(modes.compile_for(mode, step))
    error = failure(checked, tf.constant([3e38, 1.0]))
    assert error.findings[0].op_type == "AssignAddVariableOp"
    assert error.findings[0].kind == "+Inf"
    assert "variable `Variable`" in str(error)


def test_a_variable_that_was_nonfinite_before_is_named(mode):
    weight = tf.Variable([1.0, float("nan")], name="weight")
    function = tfsafe.checked(modes.compile_for(mode, lambda x: x * weight))
    error = failure(function, tf.constant([1.0, 1.0]))
    assert error.findings[0].origin == "variable `weight`"
    assert error.findings[0].cause == "it was non-finite before the call."
