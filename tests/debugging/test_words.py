"""What a finding calls things: arguments, variables, rows of the batch, the way."""

import gc
import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.support import modes
from tfsafe.debugging.tracing import batch_rows, provenance
from tfsafe.debugging.tracing.replay import follow

NAN = float("nan")


def finding_of(function, *args):
    with pytest.raises(tfsafe.NumericsError) as caught:
        function(*args)
    return caught.value.findings[0]


def names(finding):
    return [each.name for each in finding.inputs]


def test_arguments_and_variables_are_called_by_their_names(mode):
    scale = tf.Variable([1.0, 0.0], name="scale")

    def ratio(x):
        return x / scale

    checked = tfsafe.checked(modes.compile_for(mode, ratio))
    finding = finding_of(checked, tf.constant([1.0, 2.0]))
    assert names(finding) == ["argument `x`", "variable `scale`"]


def test_a_variable_that_nobody_can_reach_by_name_is_asked_for_on_the_stack():
    weights = {"w": tf.Variable(0.0, name="hidden")}

    @tfsafe.checked
    def step(x, get):
        return x / get()

    finding = finding_of(step, tf.constant(1.0), lambda: weights["w"])
    assert names(finding) == ["argument `x`", "variable `hidden`"]


def test_a_value_of_the_iteration_before_is_called_by_what_made_it():
    def shrink(i, y):
        return i + 1, tf.math.log(y)

    @tfsafe.checked
    @tf.function(autograph=False)
    def loop(x):
        return tf.while_loop(lambda i, _: i < 4, shrink, [tf.constant(0), x])[1]

    finding = finding_of(loop, tf.constant([2.0]))
    assert (finding.iteration, names(finding)) == ((2,), ["Log"])


class Log(keras.layers.Layer):
    """Takes the logarithm of the data as they come."""

    def call(self, x):
        return tf.math.log(x)


def fitted(layer, x, jit_compile):
    model = keras.Sequential([keras.Input(x.shape[1:]), layer, keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=jit_compile)
    options = {"batch_size": 4, "verbose": 0, "shuffle": False}
    return finding_of(
        lambda: tfsafe.checked(model).fit(x, np.ones([len(x), 1]), **options)
    )


@pytest.mark.parametrize("jit_compile", [False, True], ids=["graph", "xla"])
def test_a_step_of_fit_calls_its_batch_x_and_leads_to_the_loss(jit_compile):
    x = np.ones([8, 2], "float32")
    x[6, 1] = 0.0
    finding = fitted(Log(), x, jit_compile)
    assert names(finding) == ["argument `x`"]
    assert finding.row == 2
    assert finding.chain[-1].origin == "output['loss']"


def test_the_way_of_a_nonfinite_argument_begins_with_it():
    x = np.ones([4, 2], "float32")
    x[3, 0] = NAN
    finding = fitted(keras.layers.Dense(3), x, False)
    first, last = finding.chain[0], finding.chain[-1]
    assert (first.origin, first.count) == ("argument `x`", 1)
    assert last.origin == "output['loss']"
    assert "  chain: 1" in finding.explain(chain=True)


def test_the_way_ends_at_the_loss_rather_than_at_other_results():
    weight, count = tf.Variable(1.0), tf.Variable(0.0, trainable=False)

    @tfsafe.checked
    @tf.function(autograph=False)
    def step(x):
        y = tf.math.log(x)
        count.assign_add(tf.reduce_sum(y))
        weight.assign_sub(tf.reduce_sum(y))
        return {"logs": y, "loss": tf.reduce_mean(y * 2.0 - 1.0)}

    finding = finding_of(step, tf.constant([0.0, 1.0]))
    assert finding.chain[-1].origin == "output['loss']"


def test_the_way_ends_at_a_weight_rather_than_at_other_variables():
    weight = tf.Variable(1.0, name="weight")
    count = tf.Variable(0.0, trainable=False, name="count")

    @tfsafe.checked
    @tf.function(autograph=False)
    def step(x):
        y = tf.math.log(x)
        count.assign(y)
        weight.assign((y * 2.0 - 1.0) * 3.0)

    finding = finding_of(step, tf.constant(0.0))
    assert finding.chain[-1].origin == "variable `weight`"


def test_the_way_of_a_nonfinite_variable_begins_with_it_even_if_it_was_written():
    weight = tf.Variable([NAN, 1.0], name="weight")

    @tfsafe.checked
    @tf.function(autograph=False)
    def step(x):
        weight.assign_sub(x)

    finding = finding_of(step, tf.constant([1.0, 1.0]))
    subjects = [each.origin for each in finding.chain]
    assert subjects == ["variable `weight`", "", "variable `weight`"]
    assert finding.row is None


def test_a_weight_as_long_as_the_batch_has_no_rows(mode):
    weight = tf.Variable([[1.0, 0.0], [2.0, 1.0]], name="weight")

    def inverse(x):
        return tf.reduce_sum(x) / weight

    finding = finding_of(
        tfsafe.checked(modes.compile_for(mode, inverse)), tf.ones([2, 3])
    )
    assert (finding.index, finding.row) == ((0, 1), None)


def test_the_row_is_found_behind_layers_that_merge_axes():
    x = np.ones([4, 3, 2], "float32")
    x[2, 1] = -1.0
    dense = keras.layers.Dense(2, kernel_initializer="ones", use_bias=False)
    finding = fitted(keras.Sequential([dense, Log()]), x, False)
    assert (finding.index[0], finding.row) == (2, 2)


BATCH = np.arange(1.0, 13.0, dtype="float32").reshape(4, 3)


@pytest.mark.parametrize(
    ("make", "row"),
    [
        (lambda x: x * 2.0, 2),
        (lambda x: tf.matmul(x, tf.ones([3, 4])), 2),
        (lambda x: tf.matmul(x, tf.ones([4, 4]), transpose_a=True), None),
        (lambda x: tf.matmul(tf.matmul(x, tf.ones([3, 4])), tf.ones([4, 5])), 2),
        (lambda x: tf.matmul(x @ tf.ones([3, 4]), tf.ones([4, 4]), True), None),
        (lambda x: tf.einsum("ij,jk->ik", x, tf.ones([3, 4])), 2),
        (lambda x: tf.einsum("ij,ik->jk", x, tf.ones([4, 3])), None),
        (
            lambda x: tf.nn.conv2d_transpose(
                x[:, None, :, None], tf.ones([1, 3, 2, 1]), [4, 1, 3, 2], 1
            ),
            2,
        ),
        (lambda x: tf.matmul(x[..., None], tf.ones([1, 2])), 2),
        (lambda x: tf.reduce_sum(x, -1), 2),
        (lambda x: tf.reduce_sum(x, 0), None),
        (lambda x: tf.reshape(x, [-1]), 0),
        (lambda x: tf.reshape(x, [2, 6]), None),
        (lambda x: x[:, 1], 2),
        (lambda x: tf.matmul(x, tf.ones([3, 4]))[:, 1], 2),
        (lambda x: tf.matmul(x, tf.ones([3, 4]))[0], None),
        (lambda x: x[::-1], None),
        (lambda x: tf.transpose(x), 0),
        (lambda x: tf.transpose(x[..., None], [0, 2, 1]), 2),
        (lambda x: tf.concat([x, x], -1), 2),
        (lambda x: tf.concat([x, x], 0), None),
        (lambda x: tf.nn.softmax(x), 2),
        (lambda x: tf.argmax(x, -1), None),
        (lambda x: tf.reduce_sum(x), None),
        (lambda x: tf.ones([4, 3]), None),
    ],
)
def test_rows_are_followed_as_far_as_they_are_sure(make, row):
    x = tf.constant(BATCH)
    propagation = provenance.Propagation(lambda _: "")
    propagation.rows = batch_rows.Rows({"": batch_rows.Batch(4)}, [("x", x)])

    @tf.function(autograph=False)
    def function(x):
        return make(x)

    concrete = function.get_concrete_function(x)
    (result,), _ = follow(concrete.graph, [x], propagation)
    index = (2,) + (0,) * max(0, result.shape.rank - 1) if result.shape.rank else ()
    assert propagation.rows.of(result, index) == row


def test_a_lambda_is_no_gradient_function():
    @tfsafe.checked
    def rows(x):
        return tf.map_fn(lambda row: 1.0 / row[0], x)

    finding = finding_of(rows, tf.constant([[1.0], [0.0]]))
    assert not finding.is_gradient


def loop_of(model, optimizer):
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        variables = model.trainable_variables
        optimizer.apply(tape.gradient(loss, variables), variables)

    return step


def test_a_nonfinite_update_in_an_eager_loop_changes_no_variable():
    model = keras.Sequential([
        keras.Input([2]),
        keras.layers.Dense(2, name="first"),
        keras.layers.Dense(1, name="last"),
    ])
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
    step = loop_of(model, optimizer)
    step(tf.ones([4, 2]), tf.zeros([4, 1]))
    # The last kernel is the third to be updated, and the first to overflow.
    optimizer.variables[-2].assign(tf.fill([2, 1], 3e38))
    model.layers[1].kernel.assign(tf.fill([2, 1], 2e38))
    everything = [*model.variables, *optimizer.variables]
    before = [np.array(each) for each in everything]
    with (
        pytest.raises(tfsafe.NumericsError) as caught,
        tfsafe.debugging.check_numerics(),
    ):
        optimizer.apply(
            [tf.ones(v.shape) for v in model.trainable_variables],
            model.trainable_variables,
        )
    for each, value in zip(everything, before, strict=True):
        np.testing.assert_array_equal(np.array(each), value)
    assert "last/kernel" in str(caught.value)
    assert f"{len(everything)} variables were restored" in str(caught.value)


def test_a_checked_model_goes_when_nobody_needs_it():
    model = keras.Sequential([keras.Input([2]), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    tfsafe.checked(model).fit(np.ones([2, 2]), np.ones([2, 1]), verbose=0)
    gone = weakref.ref(model)
    del model
    keras.utils.clear_session()
    gc.collect()
    assert gone() is None
