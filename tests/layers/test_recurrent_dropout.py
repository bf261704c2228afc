"""Recurrent dropout without memory loss."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.layers import recurrent
from tests.support import modes
from tfsafe import layers


class TestDropout:
    @recurrent.both
    @pytest.mark.parametrize("mask", ["step", "sequence"])
    @pytest.mark.parametrize("fused", [False, True])
    def test_it_acts_on_the_candidate_alone(self, kind, mask, fused):
        layer = kind(
            6,
            return_sequences=True,
            fused=fused,
            dtype="float64",
            recurrent_dropout=0.4,
            recurrent_dropout_mask=mask,
            seed=3,
        )
        layer.build(recurrent.INPUTS.shape)
        weights = recurrent.randomise(layer)
        before = layer.cell.seed_generator.state.numpy()
        value = layer(recurrent.INPUTS, training=True)
        layer.cell.seed_generator.state.assign(before)
        factors = layer.cell.candidate_mask(tf.zeros([3, 6], tf.float64), [5]).numpy()
        layer.cell.reset_recurrent_dropout_mask()
        assert set(np.unique(factors)) == {0.0, 1 / 0.6}
        truth = recurrent.reference(
            layer, recurrent.INPUTS.astype(float), weights, factors
        )
        recurrent.close(value, truth)

    @recurrent.both
    def test_masks_per_step_are_fresh_at_every_step_and_call(self, kind, mode):
        cell = kind(64, recurrent_dropout=0.5, seed=1).cell
        cell.build((None, 4))

        def draw():
            return cell.candidate_mask(tf.zeros([8, 64]), [20])

        draw = modes.compile_for(mode, draw)
        one, other = draw().numpy(), draw().numpy()
        assert one.shape == (20, 8, 64)
        assert abs(one.mean() - 1) < 0.05
        # Of 10240 pairs of coins, a half agree.
        assert abs(np.mean(one == other) - 0.5) < 0.05
        assert abs(np.mean(one[1:] == one[:-1]) - 0.5) < 0.05

    @recurrent.both
    def test_one_mask_per_sequence_is_drawn_for_each_call(self, kind, mode):
        layer = kind(32, recurrent_dropout=0.5, recurrent_dropout_mask="sequence")
        layer.build(recurrent.INPUTS.shape)
        call = modes.compile_for(mode, lambda: layer(recurrent.INPUTS, training=True))
        assert not np.array_equal(call(), call())

    @recurrent.both
    @pytest.mark.parametrize("mask", ["step", "sequence"])
    def test_nothing_is_dropped_outside_of_training(self, kind, mask):
        layer = kind(6, recurrent_dropout=0.5, recurrent_dropout_mask=mask, dropout=0.5)
        layer.build(recurrent.INPUTS.shape)
        plain = kind(6)
        plain.build(recurrent.INPUTS.shape)
        plain.set_weights(layer.get_weights()[: len(plain.get_weights())])
        np.testing.assert_array_equal(layer(recurrent.INPUTS), plain(recurrent.INPUTS))
        dropped = layer(recurrent.INPUTS, training=True)
        assert np.abs(dropped - plain(recurrent.INPUTS)).max() > 0.01

    @recurrent.both
    @pytest.mark.parametrize("mask", ["step", "sequence"])
    @pytest.mark.parametrize("mode", ["graph", "xla"])
    def test_the_cell_drops_in_the_loop_of_keras(self, kind, mask, mode):
        layer = kind(16, recurrent_dropout=0.5, recurrent_dropout_mask=mask)
        plain = keras.layers.RNN(layer.cell)
        plain.build(recurrent.INPUTS.shape)
        call = modes.compile_for(mode, lambda: plain(recurrent.INPUTS, training=True))
        one, other = call().numpy(), call().numpy()
        assert np.all(np.isfinite(one))
        assert not np.array_equal(one, other)

    @recurrent.both
    def test_dropout_of_the_inputs_keeps_one_mask_for_all_steps(self, kind):
        layer = kind(6, dropout=0.5, seed=5, return_sequences=True)
        layer.build(recurrent.INPUTS.shape)
        before = layer.cell.seed_generator.state.numpy()
        value = layer(recurrent.INPUTS, training=True)
        layer.cell.seed_generator.state.assign(before)
        factors = layer.cell.get_dropout_mask(tf.ones([3, 4])).numpy()
        layer.cell.reset_dropout_mask()
        truth = layer(recurrent.INPUTS * factors[:, np.newaxis])
        recurrent.close(value, truth, 8)
        # And in the loop of Keras.
        layer.cell.seed_generator.state.assign(before)
        recurrent.close(recurrent.plain(layer)(recurrent.INPUTS, training=True), truth)

    def test_all_masks_are_drawn_before_the_loop(self):
        layer = layers.LayerNormLSTM(6, recurrent_dropout=0.5)
        layer.build(recurrent.INPUTS.shape)
        function = tf.function(
            lambda: layer(recurrent.INPUTS, training=True), autograph=False
        )
        graph = function.get_concrete_function().graph.as_graph_def()
        bodies = {
            node.attr["body"].func.name for node in graph.node if "While" in node.op
        }
        assert bodies
        for inner in graph.library.function:
            if inner.signature.name in bodies:
                assert not any("Random" in node.op for node in inner.node_def)
