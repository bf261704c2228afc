"""The row of the batch is known behind loops, lists, slices and time-major tensors."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.support import modes

X = np.random.default_rng(0).uniform(0.1, 1.0, (6, 4, 5)).astype("float32")
X[3, 2, 1] = -1.0
GRU = keras.layers.GRU(5)


def row_of(function, x=X, mode="graph"):
    with pytest.raises(tfsafe.NumericsError) as caught:
        tfsafe.checked(modes.compile_for(mode, function))(tf.constant(x))
    return caught.value.findings[0].row


class Cell(keras.layers.Layer):
    """Adds up square roots."""

    state_size = 5

    def call(self, x, states):
        state = states[0] + tf.sqrt(x)
        return state, [state]


@pytest.mark.parametrize("is_reversed", [False, True])
def test_the_row_is_known_in_the_loop_of_a_recurrent_layer(is_reversed, mode):
    layer = keras.layers.RNN(Cell(), go_backwards=is_reversed)
    assert row_of(lambda x: layer(x), mode=mode) == 3


def test_the_row_is_known_in_the_gradient_of_a_loop():
    layer = keras.layers.RNN(Cell())

    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            total = tf.reduce_sum(layer(x))
        return tape.gradient(total, x)

    assert row_of(slope, np.where(X < 0, 0.0, X).astype("float32")) == 3


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tf.sqrt(GRU(x) * 0.0 + x[:, 2]),
        lambda x: tf.sqrt(tf.transpose(x, [1, 0, 2])[2]),
        lambda x: tf.sqrt(tf.transpose(x, [1, 2, 0]) + 0.0),
        lambda x: tf.sqrt(tf.stack(tf.unstack(x, axis=1), axis=0)),
        lambda x: tf.sqrt(tf.split(x, 5, axis=2)[1]),
        lambda x: tf.sqrt(x[..., 1, tf.newaxis]),
        lambda x: tf.sqrt(x[tf.newaxis, :, 1:]),
        lambda x: tf.sqrt(tf.reverse(tf.expand_dims(x, 0), [2])),
        lambda x: tf.sqrt(tf.einsum("btf,tg->tbf", x, tf.eye(4))),
        lambda x: tf.sqrt(tf.gather(tf.transpose(x, [1, 0, 2]), [1, 2], axis=0)),
        lambda x: tf.sqrt(tf.reduce_min(tf.transpose(x, [1, 0, 2]), 0)),
    ],
)
def test_the_row_is_followed(function):
    assert row_of(function) == 3


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tf.sqrt(tf.reduce_min(x, 0)),
        lambda x: tf.sqrt(x[1:4]),
        lambda x: tf.sqrt(tf.reverse(x, [0])),
        lambda x: tf.sqrt(tf.einsum("btf,bc->ctf", x, tf.eye(6))),
        lambda x: tf.sqrt(tf.gather(x, [3, 2, 1, 0, 4, 5])),
    ],
)
def test_a_tensor_without_the_rows_has_none(function):
    assert row_of(function) is None


def test_the_parts_of_a_ragged_tensor_are_not_the_batch():
    bags = tf.ragged.constant([[1.0, 2.0], [], [3.0]])

    @tfsafe.checked
    @tf.function
    def share(bags, y):
        return tf.reduce_sum(bags, 1) / y

    with pytest.raises(tfsafe.NumericsError) as caught:
        share(bags, tf.constant([1.0, 1.0, 0.0]))
    assert caught.value.findings[0].row == 2
