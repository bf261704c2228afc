"""An error of a custom loop names its step, the learning rate and the loss scale."""

import keras
import pytest
import tensorflow as tf

import tfsafe
from tests.support import modes
from tfsafe.debugging.explain import training


class Loop:
    """A training of one weight, whose third batch has a label of 0."""

    def __init__(self, mode, optimizer):
        self.weight = keras.Variable([2.0])
        self.optimizer = optimizer
        optimizer.build([self.weight])
        self.step = modes.compile_for(mode, self._step)

    def _step(self, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(self.weight * tf.math.log(y))
        gradient = tape.gradient(loss, self.weight.value)
        self.optimizer.apply([gradient], [self.weight])
        return loss

    def run(self, step):
        for y in (1.0, 2.0, 0.0, 1.0):
            step(tf.constant([y]))


@pytest.mark.parametrize("mode", modes.MODES)
def test_a_custom_loop_counts_by_the_iterations_of_its_optimizer(mode):
    # Others that are alive are not meant.
    others = [keras.optimizers.SGD(0.5), keras.optimizers.Adam()]
    for other in others:
        other.build([keras.Variable([1.0])])
    loop = Loop(mode, keras.optimizers.SGD(0.125))
    with pytest.raises(tfsafe.NumericsError) as caught:
        loop.run(tfsafe.checked(loop.step))
    error = caught.value
    assert (error.step, error.learning_rate, error.loss_scale) == (2, 0.125, None)
    assert "\n  when:  step 2, learning rate 0.125\n" in str(error)
    assert len(others) == 2


def test_the_loss_scale_is_named():
    inner = tfsafe.SafeOptimizer(keras.optimizers.SGD(0.125))
    scaled = keras.optimizers.LossScaleOptimizer(inner, initial_scale=64.0)
    loop = Loop("graph", scaled)
    with pytest.raises(tfsafe.NumericsError) as caught:
        loop.run(tfsafe.checked(loop.step))
    assert caught.value.loss_scale == 64.0
    assert "step 2, learning rate 0.125, loss scale 64\n" in str(caught.value)


def test_a_call_that_trains_nothing_has_no_step():
    Loop("graph", keras.optimizers.SGD(0.125))
    with pytest.raises(tfsafe.NumericsError) as caught:
        tfsafe.checked(tf.function(tf.math.log))(tf.constant([0.0]))
    assert caught.value.step is None
    assert "when:" not in str(caught.value)


@pytest.mark.parametrize("patience", [0.0, 600.0])
def test_a_long_replay_is_announced(patience, monkeypatch, capsys):
    monkeypatch.setattr(training, "_PATIENCE", patience)
    loop = Loop("graph", keras.optimizers.SGD(0.125))
    with pytest.raises(tfsafe.NumericsError):
        loop.run(tfsafe.checked(loop.step))
    line = "tfsafe: -Inf at step 2; replaying the step to find where\n"
    assert capsys.readouterr().err == ("" if patience else line)
