"""Which softmax or sigmoid the losses see through, and which they do not."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.losses.samples import close
from tests.support import modes
from tfsafe import layers, losses
from tfsafe.keras_formulas import logit_recovery

FAR = np.array([[0.0, 200.0]], "float32")
ONE_HOT = np.array([[1.0, 0.0]], "float32")


def grow(p):
    return tf.transpose(tf.expand_dims(p, 0), [1, 0, 2])


SEEN_THROUGH = {
    "nothing": lambda p: p,
    "identity": tf.identity,
    "cast": lambda p: tf.cast(p, tf.float64),
    "reshape": lambda p: tf.reshape(p, [-1, 2]),
    "squeeze": lambda p: tf.squeeze(tf.expand_dims(p, 1), 1),
    "two transpositions": lambda p: tf.transpose(tf.transpose(p)),
    "mask": lambda p: tf.where([[True, True]], p, 0.0),
    "mask times": lambda p: tf.cast([[True, True]], p.dtype) * p,
    "times mask": lambda p: p * tf.cast([[True, True]], p.dtype),
    "Keras layers": lambda p: keras.layers.Flatten()(keras.layers.Reshape((1, 2))(p)),
}


# XLA compiles what was found already when the function was traced.
MODES = [(name, "graph") for name in SEEN_THROUGH] + [("mask", "xla")]


@pytest.mark.parametrize(("name", "mode"), MODES)
@pytest.mark.parametrize(
    "softmax", [tf.nn.softmax, keras.activations.softmax, layers.Softmax()]
)
def test_a_traced_softmax_is_seen_through(name, softmax, mode):
    def loss(z):
        return losses.CategoricalCrossentropy()(ONE_HOT, SEEN_THROUGH[name](softmax(z)))

    value, (slope,) = modes.value_and_gradients(loss, [tf.constant(FAR)], mode)
    close(value, 200)
    close(slope, [[-1, 1]])


@pytest.mark.parametrize(("name", "mode"), MODES)
def test_a_traced_sigmoid_is_seen_through(name, mode):
    def loss(z):
        return losses.BinaryCrossentropy()(ONE_HOT, SEEN_THROUGH[name](tf.sigmoid(z)))

    z = tf.constant([[-200.0, 50.0]])
    value, (slope,) = modes.value_and_gradients(loss, [z], mode)
    close(value, 125)
    close(slope, [[-0.5, 0.5]])


NOT_SEEN_THROUGH = {
    "another axis": lambda z: tf.nn.softmax(z, 0),
    "another activation": tf.sigmoid,
    "a product": lambda z: 1.0 * tf.nn.softmax(z),
    "a stopped gradient": lambda z: tf.stop_gradient(tf.nn.softmax(z)),
    "rows torn apart": lambda z: tf.reshape(tf.nn.softmax(z), [3, 2]),
    "a mask that puts ones": lambda z: tf.where(z > -9, tf.nn.softmax(z), 1.0),
    "a mask that puts one in a place": lambda z: tf.where(
        z > -9, tf.nn.softmax(z), [0.0, 1.0, 0.0]
    ),
    "a mask that puts a sum": lambda z: tf.where(
        z > -9, tf.nn.softmax(z), tf.reduce_sum(z)
    ),
    "weights": lambda z: tf.cast([1, 2, 1], z.dtype) * tf.nn.softmax(z),
    "an axis before the last": lambda z: tf.reshape(tf.nn.softmax(z), [1, 2, 3]),
    "a softmax along the axis before": lambda z: tf.transpose(tf.nn.softmax(z)),
    "an unknown order": lambda z: tf.transpose(
        tf.nn.softmax(z), tf.random.shuffle([0, 1])
    ),
}


@pytest.mark.parametrize("name", list(NOT_SEEN_THROUGH))
def test_what_is_not_the_result_of_a_softmax_has_no_logits(name):
    @tf.function(input_signature=[tf.TensorSpec([2, 3], tf.float32)], autograph=False)
    def traced(z):
        probs = NOT_SEEN_THROUGH[name](z)
        assert logit_recovery.logits_behind(probs, 1) is None
        return probs

    traced.get_concrete_function()


def test_a_row_of_unknown_size_is_not_seen_through_a_reshape():
    @tf.function(
        input_signature=[tf.TensorSpec([2, None], tf.float32)], autograph=False
    )
    def traced(z):
        probs = tf.reshape(tf.nn.softmax(z), [4, -1])
        assert logit_recovery.logits_behind(probs, 1) is None
        assert logit_recovery.logits_behind(tf.nn.softmax(z), 1) is not None
        return probs

    traced.get_concrete_function()


def test_eager_probabilities_have_the_logits_that_keras_attached():
    z = tf.constant([[0.0, 200.0], [3.0, 1.0]])
    assert logit_recovery.logits_behind(keras.activations.softmax(z), 1) is z
    assert logit_recovery.logits_behind(tf.nn.softmax(z), 1) is None
    assert (
        logit_recovery.logits_behind(tf.reshape(keras.activations.softmax(z), [4]), 0)
        is None
    )
    # Attached by the other activation, or for another axis.
    assert logit_recovery.logits_behind(keras.activations.sigmoid(z), 1) is None
    assert logit_recovery.logits_behind(keras.activations.softmax(z), None) is None
    assert logit_recovery.logits_behind(keras.activations.softmax(z, axis=0), 1) is None


def test_a_masked_class_costs_the_most_and_the_others_split_the_rest(mode):
    keep = np.array([[True, False, True], [False, False, False]])

    def loss(z):
        probs = tf.where(keep, tf.nn.softmax(tf.where(keep, z, -1e9)), 0.0)
        return losses.CategoricalCrossentropy(reduction="sum")(
            [[0.0, 0.0, 1.0], [0.0, 0.0, 0.0]], probs
        )

    z = tf.constant([[1.0, 5.0, 1.0], [1.0, 2.0, 3.0]])
    value, (slope,) = modes.value_and_gradients(loss, [z], mode)
    close(value, np.log(2))
    close(slope, [[0.5, 0, -0.5], [0, 0, 0]])


def test_an_unknown_number_of_axes_has_no_last_one():
    shape = tf.TensorSpec(None, tf.float32)
    traced = tf.function(losses.kl_divergence, autograph=False)
    run = traced.get_concrete_function(shape, shape)
    close(run(tf.constant([[1.0, 0.0]]), tf.constant([[0.5, 0.5]])), [np.log(2)])


def test_logits_that_come_from_a_softmax_are_taken_and_called_out():
    probs = keras.activations.softmax(tf.constant(FAR))
    with pytest.warns(
        UserWarning, match="`from_logits=True`, but `y_pred` is the output"
    ):
        value = losses.CategoricalCrossentropy(from_logits=True)(ONE_HOT, probs)
    close(value, 200)


@pytest.mark.parametrize(
    ("policy", "reshape", "jit_compile"),
    [
        ("float32", True, False),
        ("mixed_float16", False, False),
        ("mixed_float16", True, True),
        ("mixed_bfloat16", True, False),
        ("mixed_bfloat16", False, True),
    ],
)
def test_one_confident_and_wrong_sample_moves_the_bias_in_fit(
    policy, reshape, jit_compile
):
    dense = keras.layers.Dense(
        1, "sigmoid", kernel_initializer="zeros", bias_initializer=bias, dtype=policy
    )
    layers = [keras.Input((1,)), dense]
    if reshape:
        layers.append(keras.layers.Reshape((1,), dtype=policy))
    model = keras.Sequential(layers)
    model.compile(
        keras.optimizers.SGD(0.01), losses.BinaryCrossentropy(), jit_compile=jit_compile
    )
    history = model.fit(np.ones([1, 1]), np.ones([1, 1]), verbose=0).history["loss"]
    close(history, [20])
    close(dense.get_weights()[1], [-19.99])


def bias(shape, dtype=None):
    return tf.constant(-20.0, dtype, shape)
