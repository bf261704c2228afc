"""What is to blame is named: one of two rates, an infinite weight, an array's row."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.support import modes


def caught_in(run):
    with pytest.raises(tfsafe.NumericsError) as caught:
        run()
    return caught.value


@pytest.mark.parametrize("is_eager", [False, True], ids=["traced", "eager"])
@pytest.mark.parametrize(
    ("first", "second", "named"),
    [
        (("SGD", 0.01), ("SGD", 50.0), "lower the learning rate 50 of second first"),
        (("SGD", 50.0), ("SGD", 0.01), "lower the learning rate 50 of first first"),
        (("SGD", 50.0), ("SGD", 20.0), ""),
        (("Adagrad", 0.01), ("SGD", 50.0), ""),
    ],
)
def test_of_two_optimizers_the_far_larger_rate_is_to_be_lowered(
    first, second, named, is_eager
):
    optimizers = [
        getattr(keras.optimizers, kind)(rate, name=name)
        for (kind, rate), name in ((first, "first"), (second, "second"))
    ]
    variables = [tf.Variable(1.0), tf.Variable(1.0)]
    for optimizer, variable in zip(optimizers, variables, strict=True):
        optimizer.build([variable])

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.square(variables[0] * variables[1] * x - 1.0)
        gradients = tape.gradient(loss, variables)
        for each, *pair in zip(optimizers, gradients, variables, strict=True):
            each.apply_gradients([pair])
        return loss

    def train():
        run = step if is_eager else tf.function(step)
        with tfsafe.debugging.check_numerics():
            for _ in range(50):
                run(tf.constant(3.0))

    finding = caught_in(train).findings[0]
    assert "overflows" in finding.cause
    if named:
        assert finding.suggestion.startswith(named)
    else:
        assert " of first first" not in finding.suggestion
        assert " of second first" not in finding.suggestion


def test_an_underflow_is_not_put_down_to_the_rate_of_an_update():
    w, x = tf.Variable([0.5]), tf.constant([300.0])

    def train():
        with tfsafe.debugging.check_numerics():
            with tf.GradientTape() as tape:
                loss = -tf.reduce_sum(tf.math.log(tf.exp(-tf.square(w * x))))
            w.assign_sub(0.05 * tape.gradient(loss, w))

    error = caught_in(train)
    assert "underflows" in error.findings[0].cause
    assert "learning rate" not in str(error)


WEIGHT = "a weight is infinite as 1 / 0, that of a class without samples"


@pytest.mark.parametrize("mode", modes.MODES)
@pytest.mark.parametrize(
    ("weights", "is_weight"),
    [
        ([0.5, 2.0, np.inf], True),
        ([0.0, np.inf, 3.0], True),
        # A mask, the score of one, and an infinity alone.
        ([0.0, 0.0, np.inf], False),
        ([1.0, 2.0, -np.inf], False),
        ([-1.0, 2.0, np.inf], False),
    ],
)
def test_an_infinite_weight_is_told_from_a_mask(weights, is_weight, mode):
    weights = np.array(weights)

    def loss(hot):
        return tf.reduce_sum(hot * tf.cast(weights, tf.float32))

    run = tfsafe.checked(modes.compile_for(mode, loss))
    finding = caught_in(lambda: run(tf.constant([0.0, 0.0, 0.0]))).findings[0]
    assert finding.op_type == "Mul"
    assert finding.cause.startswith("0 * ")
    assert finding.suggestion.startswith(WEIGHT) == is_weight
    assert ("a weight is infinite, others are" in finding.cause) == is_weight


def test_weights_without_an_infinity_have_the_loss_of_their_fix():
    counts = np.array([2.0, 0.0])
    weights = 1 / np.maximum(counts, 1)
    run = tfsafe.checked(lambda hot: tf.reduce_sum(hot * weights))
    assert run(tf.constant([[1.0, 0.0]], tf.float64)).numpy() == 0.5


@pytest.fixture
def step():
    weights = tf.Variable(tf.ones([3, 1]))

    @tfsafe.checked
    @tf.function
    def step(x):
        return tf.reduce_mean((x @ weights) ** 2)

    return step


def table_with_nan():
    table = np.random.RandomState(0).randn(50, 3)
    table[31, 1] = np.nan
    return table


@pytest.mark.parametrize(
    "batch_of",
    [
        lambda table: tf.constant(table[30:40], tf.float32),
        lambda table: tf.constant(table[[5, 31, 7]].astype("float32")),
        lambda table: tf.gather(tf.constant(table, tf.float32), [31, 2]),
    ],
    ids=["slice", "choice", "gather"],
)
def test_a_batch_is_traced_back_to_the_row_of_an_array(batch_of, step):
    features = table_with_nan()
    finding = caught_in(lambda: step(batch_of(features))).findings[0]
    assert finding.cause.endswith("It is row 31 of `features`.")
    code = 'tfsafe.data.check_finite(features, policy="report")'
    assert finding.suggested_code == code
    assert len(features) == 50


def test_of_two_arrays_the_one_that_is_nearer_is_named(step):
    data = table_with_nan()
    train = data[10:]
    finding = caught_in(lambda: step(tf.constant(train[20:30], tf.float32))).findings[0]
    assert finding.cause.endswith("It is row 21 of `train`.")
    assert len(data) == 50


@pytest.mark.parametrize(
    "batch_of",
    [
        lambda table: tf.constant(table[30:40] * 2.0, tf.float32),
        lambda table: tf.fill([4, 3], np.float32(np.nan)),
        lambda table: tf.constant(table, tf.float32),
    ],
    ids=["changed", "NaN alone", "all"],
)
def test_an_array_that_does_not_have_the_row_is_not_named(batch_of, step):
    features = table_with_nan()
    finding = caught_in(lambda: step(batch_of(features))).findings[0]
    assert "`features`" not in finding.cause
    assert len(features) == 50
