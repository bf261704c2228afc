"""The options of the recurrent layers, and weights taken over from Keras."""

from typing import ClassVar

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.layers import recurrent
from tests.support.oracle import assert_close
from tfsafe import layers


class TestFromKeras:
    THEIRS: ClassVar = {
        layers.LayerNormLSTM: keras.layers.LSTM,
        layers.LayerNormGRU: keras.layers.GRU,
    }

    def _layer(self, kind, **options):
        layer = self.THEIRS[kind](6, bias_initializer="random_normal", **options)
        layer.build(recurrent.INPUTS.shape)
        return layer

    @recurrent.both
    def test_without_normalisation_it_is_the_same_function(self, kind):
        theirs = self._layer(
            kind, return_sequences=True, go_backwards=True, name="mine"
        )
        ours = kind.from_keras(theirs, layer_norm=False)
        assert ours.name == "mine"
        recurrent.close(ours(recurrent.INPUTS), theirs(recurrent.INPUTS), 8)

    @recurrent.both
    @pytest.mark.parametrize("fused", [False, True])
    def test_with_normalisation_it_starts_from_their_weights(self, kind, fused):
        theirs = self._layer(kind)
        ours = kind.from_keras(theirs, fused=fused)
        kernel, recurrent_kernel, bias = theirs.get_weights()
        np.testing.assert_array_equal(ours.cell.kernel, kernel)
        np.testing.assert_array_equal(ours.cell.recurrent_kernel, recurrent_kernel)
        if fused:
            np.testing.assert_array_equal(ours.cell.bias, bias)
        else:
            place = ours.cell.gate_shift.numpy()
            total = bias.reshape(-1, ours.cell.gates, 6).sum(0)
            assert_close(place, total[: len(place)], scale=1.0)
        assert np.all(np.isfinite(ours(recurrent.INPUTS)))

    @recurrent.both
    def test_a_cell(self, kind):
        theirs = self._layer(kind)
        ours = kind.cell_class.from_keras(theirs.cell, layer_norm=False)
        recurrent.close(
            keras.layers.RNN(ours)(recurrent.INPUTS), theirs(recurrent.INPUTS), 8
        )

    @recurrent.both
    def test_without_a_bias_and_before_it_is_built(self, kind):
        theirs = self._layer(kind, use_bias=False)
        recurrent.close(
            kind.from_keras(theirs, layer_norm=False)(recurrent.INPUTS),
            theirs(recurrent.INPUTS),
            8,
        )
        unbuilt = self.THEIRS[kind](3, dropout=0.1)
        with pytest.warns(UserWarning, match="not built"):
            assert kind.from_keras(unbuilt).cell.dropout == 0.1
        with pytest.warns(UserWarning, match="not built"):
            cell = kind.cell_class.from_keras(unbuilt.cell)
        assert not cell.built

    @recurrent.both
    def test_a_stateful_layer(self, kind):
        theirs = self._layer(kind, stateful=True)
        ours = kind.from_keras(theirs, layer_norm=False)
        recurrent.close(ours(recurrent.INPUTS), theirs(recurrent.INPUTS), 8)

    @recurrent.both
    def test_a_bias_without_a_place_is_skipped(self, kind):
        ours = kind.from_keras(self._layer(kind), layer_norm=False, use_bias=False)
        assert ours.cell.bias is None

    @recurrent.both
    def test_another_layer_is_refused(self, kind):
        message = f"`from_keras` takes a keras.layers.{self.THEIRS[kind].__name__} here"
        with pytest.raises(TypeError, match=message):
            kind.from_keras(keras.layers.SimpleRNN(3))


@recurrent.both
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"dropout": 1.0}, ValueError, "`dropout` must be at least 0 .*dropout=1.0"),
        (
            {"recurrent_dropout": -0.1},
            ValueError,
            "`recurrent_dropout` must be at least 0 and below 1.*=-0.1",
        ),
        (
            {"recurrent_dropout": None},
            TypeError,
            "`recurrent_dropout` must be a number",
        ),
        (
            {"recurrent_dropout_mask": "batch"},
            ValueError,
            "`recurrent_dropout_mask` must be one of 'step', 'sequence'. .*'batch'",
        ),
        ({"layer_norm": "yes"}, ValueError, "`layer_norm` must be one of False, True"),
        ({"fused": None}, ValueError, "`fused` must be one of False, True"),
        (
            {"fused": True, "layer_norm": False},
            ValueError,
            "`fused` is a form of layer normalization. Received: fused=True, layer",
        ),
        ({"epsilon": 0.0}, ValueError, "`epsilon` must be positive .*epsilon=0.0"),
        ({"epsilon": float("nan")}, ValueError, "`epsilon` must be .*epsilon=nan"),
        ({"epsilon": "tiny"}, TypeError, "`epsilon` must be a number"),
        (
            {"implementation": 1},
            TypeError,
            "`implementation` is not an argument of LayerNorm.*Cell. .* Leave it out.",
        ),
        ({"units": 0}, ValueError, "positive integer"),
    ],
)
def test_wrong_options_are_refused(kind, options, error, message):
    options = {"units": 3, **options}
    for make in (kind, kind.cell_class):
        with pytest.raises(error, match=message):
            make(**options)


@pytest.mark.parametrize("activation", ["softmax", "elu"])
@recurrent.both
def test_any_activation_has_the_gradient_of_the_cell(kind, activation):
    """Those other than tanh and sigmoid are not differentiated from their values."""
    layer = recurrent.built(
        kind,
        activation=activation,
        recurrent_activation="hard_sigmoid",
        dtype="float64",
    )
    weights = [weight.value for weight in layer.cell.trainable_weights]
    x = tf.constant(recurrent.INPUTS[:, :2], tf.float64)
    gradients = []
    for unrolled in (False, True):
        with tf.GradientTape() as tape:
            if unrolled:
                states = layer.get_initial_state(len(x))
                for step in tf.unstack(x, axis=1):
                    value, states = _plain_step(layer.cell, step, states)
            else:
                value = layer(x)
            total = tf.reduce_sum(value**3)
        gradients.append(tape.gradient(total, weights))
    recurrent.close(*gradients)


def _plain_step(cell, x, states):
    """Runs a step with the gradients of TensorFlow's own operations."""
    product = tf.matmul(states[0], cell.step_kernel)
    gates = [cell.project(x), product]
    gates = [sum(gates)] if cell.is_joint else gates
    weights = [weight[tf.newaxis] for weight in cell.step_weights()]
    new, _ = cell.advance(gates, states, None, weights)
    return new[0], new


@pytest.mark.slow
@recurrent.both
def test_the_gradient_may_be_outside_of_what_xla_compiled(kind):
    layer = recurrent.built(kind, dtype="float64")
    x = tf.constant(recurrent.INPUTS, tf.float64)
    gradients = []
    for call in (layer, tf.function(layer, jit_compile=True)):
        with tf.GradientTape() as tape:
            total = tf.reduce_sum(call(x) ** 3)
        gradients.append(tape.gradient(total, layer.trainable_weights))
    recurrent.close(*gradients)
