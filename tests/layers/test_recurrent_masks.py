"""NaN in padding, samples that nothing asks for, and all-zero frames."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.layers import recurrent
from tests.support import modes
from tfsafe import layers


class TestMasks:
    @recurrent.every_kind
    @pytest.mark.parametrize("loop", ["ours", "keras"])
    def test_nan_in_padding_leaks_neither_into_values_nor_gradients(self, kind, loop):
        layer = recurrent.built(kind, return_sequences=True)
        if loop == "keras":
            layer = recurrent.plain(layer)
        mask = tf.constant(recurrent.MASK)
        hidden = np.where(recurrent.MASK[..., np.newaxis], recurrent.INPUTS, np.nan)
        # Outputs at masked steps repeat those before them: all of them may count.
        got = recurrent.run(layer, hidden, "graph", mask=mask)
        truth = recurrent.run(layer, recurrent.INPUTS, "graph", mask=mask)
        recurrent.close(got, truth, 8)
        _, (slope, *_) = got
        assert np.all(slope.numpy()[~recurrent.MASK] == 0)

    def test_infinity_in_padding_under_xla(self):
        layer = recurrent.built(layers.LayerNormLSTM)
        hidden = np.where(recurrent.MASK[..., np.newaxis], recurrent.INPUTS, np.inf)
        mask = tf.constant(recurrent.MASK)
        got = recurrent.run(layer, hidden, "xla", mask=mask)
        recurrent.close(got, recurrent.run(layer, recurrent.INPUTS, "eager", mask=mask))

    def test_the_same_padding_ruins_the_layer_of_keras(self):
        layer = keras.layers.LSTM(6)
        hidden = np.where(recurrent.MASK[..., np.newaxis], recurrent.INPUTS, np.nan)
        _, gradients = recurrent.run(
            layer, hidden, "graph", mask=tf.constant(recurrent.MASK)
        )
        assert any(np.isnan(gradient).any() for gradient in gradients)

    @pytest.mark.parametrize(
        ("kind", "mode"),
        [(kind, mode) for kind in recurrent.BOTH for mode in modes.MODES]
        + [(kind, "graph") for kind in recurrent.KINDS[2:]],
    )
    def test_a_sample_that_nothing_asks_for_may_hold_nan(self, kind, mode):
        layer = recurrent.built(kind)
        broken = recurrent.INPUTS.copy()
        broken[1, 2] = np.nan
        upstream = np.ones((3, 6), np.float32)
        upstream[1] = 0
        _, got = recurrent.run(layer, broken, mode, upstream)
        _, truth = recurrent.run(layer, recurrent.INPUTS, "eager", upstream)
        recurrent.close(got, truth)

    @recurrent.both
    def test_nan_behind_the_last_step_that_counts_is_not_differentiated(self, kind):
        layer = recurrent.built(kind, return_sequences=True)
        broken = recurrent.INPUTS.copy()
        broken[:, 3:] = np.nan
        upstream = np.zeros((3, 5, 6), np.float32)
        upstream[:, :3] = 1
        _, got = recurrent.run(layer, broken, "graph", upstream)
        _, truth = recurrent.run(layer, recurrent.INPUTS, "graph", upstream)
        recurrent.close(got, truth)

    @pytest.mark.parametrize(
        ("kind", "mode"),
        [
            (layers.LayerNormLSTM, "eager"),
            (layers.LayerNormGRU, "graph"),
            (layers.LayerNormLSTM, "xla"),
        ],
    )
    def test_nan_that_counts_comes_out(self, kind, mode):
        broken = recurrent.INPUTS.copy()
        broken[1, 2, 0] = np.nan
        value, _ = recurrent.run(recurrent.built(kind), broken, mode)
        assert np.isnan(value[1]).all()
        assert np.isfinite(value.numpy()[[0, 2]]).all()


def _largest_gradients(layer, counts):
    """Returns the largest slope in a weight at initialisation, for leading zeros."""
    shape = (4, 60, 8)
    layer.build(shape)

    @tf.function(autograph=False)
    def largest(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(layer(x))
        weights = [weight.value for weight in layer.trainable_weights]
        slopes = tape.gradient(loss, weights)
        return tf.reduce_max(tf.stack([tf.reduce_max(tf.abs(x)) for x in slopes]))

    result = []
    for count in counts:
        x = np.random.default_rng(count).normal(size=shape).astype("float32")
        x[:, :count] = 0
        result.append(float(largest(x)))
    return np.array(result)


class TestZeroFrames:
    """Pre-padding with zeros: the state has no spread, and is not to be amplified."""

    @recurrent.every_kind
    @pytest.mark.parametrize("epsilon", [1e-5, 1e-12])
    def test_leading_zero_frames_leave_the_gradients_bounded(self, kind, epsilon):
        keras.utils.set_random_seed(1)
        layer = kind(16, epsilon=epsilon)
        largest = _largest_gradients(layer, range(31))
        assert np.all((largest > 1e-3) & (largest < 10)), largest

    def test_the_textbook_form_blows_up(self):
        keras.utils.set_random_seed(1)
        layer = keras.layers.RNN(_TextbookCell(16, use_bias=False))
        none, many = _largest_gradients(layer, [0, 10])
        assert 1e-3 < none < 10
        assert not many < 1e10

    @pytest.mark.parametrize(
        ("kind", "mode"),
        [
            (layers.LayerNormLSTM, "eager"),
            (layers.LayerNormGRU, "graph"),
            (layers.LayerNormGRU, "xla"),
        ],
    )
    def test_nothing_but_zero_frames(self, kind, mode):
        layer = kind(6, norm_shift_initializer=keras.initializers.Constant(0.3))
        x = np.zeros((2, 7, 3), np.float32)
        _, gradients = recurrent.run(layer, x, mode)
        assert all(np.all(np.abs(gradient) < 100) for gradient in gradients)


class _TextbookCell(keras.layers.LSTMCell):
    """The cell of `tf.contrib`, as written."""

    def call(self, inputs, states, training=False):
        def norm(x):
            centred = x - tf.reduce_mean(x, -1, keepdims=True)
            variance = tf.reduce_mean(centred**2, -1, keepdims=True)
            return centred * tf.math.rsqrt(variance + 1e-5)

        h, c = states
        total = tf.matmul(inputs, self.kernel) + tf.matmul(h, self.recurrent_kernel)
        i, f, g, o = (norm(x) for x in tf.split(total, 4, -1))
        c = norm(c * tf.sigmoid(f + 1) + tf.sigmoid(i) * tf.tanh(g))
        h = tf.tanh(c) * tf.sigmoid(o)
        return h, [h, c]
