"""An error of a custom loop names its step, the learning rate and the loss scale."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.support import modes
from tfsafe.debugging.explain.training import optimizer as training
from tfsafe.debugging.models import loss_scale


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


def test_each_of_two_optimizers_has_its_step(tmp_path):
    """The generator's optimizer is applied in each second step."""
    weights = [keras.Variable([2.0], name=name) for name in ("g", "d")]
    optimizers = [
        keras.optimizers.SGD(rate, name=name)
        for name, rate in (("of_generator", 0.125), ("of_critic", 0.5))
    ]
    for optimizer, weight in zip(optimizers, weights, strict=True):
        optimizer.build([weight])

    @tfsafe.checked
    @tf.function
    def step(y, both):
        with tf.GradientTape(persistent=True) as tape:
            losses = [tf.reduce_sum(each * tf.math.log(y)) for each in weights]
        slopes = [
            tape.gradient(loss, each.value)
            for loss, each in zip(losses, weights, strict=True)
        ]
        optimizers[1].apply([slopes[1]], [weights[1]])
        if both:
            optimizers[0].apply([slopes[0]], [weights[0]])
        return losses

    step(tf.constant([1.0]), tf.constant(True))
    step(tf.constant([1.0]), tf.constant(False))
    with pytest.raises(tfsafe.NumericsError) as caught:
        step(tf.constant([0.0]), tf.constant(True))
    error = caught.value
    expected = ("of_critic", 2, 0.5), ("of_generator", 1, 0.125)
    assert (error.step, error.optimizers) == (None, expected)
    words = (
        "when:  step 2 of of_critic (learning rate 0.5), step 1 of of_generator "
        "(learning rate 0.125)"
    )
    assert words in str(error).replace("\n" + " " * 9, " ")
    assert error.facts["optimizer"] == "SGD, SGD"
    error.save(tmp_path / "nan.zip")
    assert tfsafe.debugging.replay(tmp_path / "nan.zip").optimizers == expected


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


@pytest.mark.parametrize("at_once", [1, 2])
def test_fit_names_epoch_and_batch_under_the_switch(at_once):
    model = keras.Sequential([keras.Input([1]), keras.layers.Dense(1, name="unit")])
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.0))
    model.compile(optimizer, "mse", steps_per_execution=at_once)
    x = np.ones([6, 1], "float32")
    tfsafe.enable_check_numerics()
    try:
        model.fit(x, x, batch_size=2, verbose=0)
        x[3] = np.nan
        with pytest.raises(tfsafe.NumericsError) as caught:
            model.fit(x, x, 2, epochs=5, initial_epoch=3, verbose=0, shuffle=False)
    finally:
        tfsafe.disable_check_numerics()
    error = caught.value
    assert error.epoch == 3
    # The second one, of its call as well.
    assert error.batch == 1
    assert error.facts["optimizer"] == "LossScaleOptimizer(SGD)"
    text = str(error)
    assert "loss/total" not in text


class Pair(keras.Model):
    """Two weights, each with an optimizer of its own; that of `compile` has no part."""

    def __init__(self):
        super().__init__()
        self.first, self.second = (keras.layers.Dense(1, name=n) for n in "ab")
        self.optimizers = [
            keras.optimizers.SGD(0.25, name="of_a"),
            keras.optimizers.Adam(0.5, name="of_b"),
        ]

    def call(self, x):
        return self.first(x) + self.second(x)

    def train_step(self, data):
        x, _ = data
        with tf.GradientTape(persistent=True) as tape:
            loss = tf.reduce_mean(tf.math.log(x) * self(x))
        for layer, optimizer in zip(
            [self.first, self.second], self.optimizers, strict=True
        ):
            weights = layer.trainable_variables
            optimizer.apply(tape.gradient(loss, weights), weights)
        return {"loss": loss}


def test_the_optimizer_of_compile_is_not_named_where_a_step_has_others():
    model = Pair()
    model.compile(keras.optimizers.RMSprop(0.125), jit_compile=False)
    x = np.ones([6, 1], "float32")
    x[5] = 0.0
    with pytest.raises(tfsafe.NumericsError) as caught:
        tfsafe.checked(model).fit(x, x, 2, verbose=0, shuffle=False)
    error = caught.value
    assert (error.batch, error.step, error.learning_rate) == (2, None, None)
    assert error.optimizers == (("of_a", 2, 0.25), ("of_b", 2, 0.5))
    assert "RMSprop" not in error.facts["optimizer"]
    assert "0.125" not in str(error)


@pytest.mark.parametrize("is_function", [False, True])
def test_an_eager_loop_knows_its_optimizers_among_all(is_function):
    weights = [keras.Variable([2.0]), keras.Variable([2.0])]
    optimizers = [keras.optimizers.SGD(0.25, name=name) for name in ("of_a", "of_b")]
    other = keras.optimizers.SGD(0.5)
    other.build([keras.Variable([1.0])])

    def step(x):
        for weight, optimizer in zip(weights, optimizers, strict=True):
            with tf.GradientTape() as tape:
                loss = tf.math.log(x) * weight
            optimizer.apply(tape.gradient(loss, [weight.value]), [weight])

    run = tfsafe.checked(step) if is_function else step

    def loop():
        with tfsafe.check_numerics():
            for x in (1.0, 1.0, 0.0):
                run(tf.constant([x]))

    with pytest.raises(tfsafe.NumericsError) as caught:
        loop()
    assert caught.value.optimizers == (("of_a", 2, 0.25), ("of_b", 2, 0.25))


def test_an_eager_loop_without_an_optimizer_has_none_of_another_model():
    other = keras.optimizers.SGD(0.5)
    other.build([keras.Variable([1.0])])
    weight = tf.Variable([2.0])

    def loop():
        with tfsafe.check_numerics(), tf.GradientTape() as tape:
            # TensorFlow reads the variable without an operation that can be seen.
            loss = tf.reduce_sum(tf.exp(100.0 * tf.square(weight)))
            tape.gradient(loss, weight)

    with pytest.raises(tfsafe.NumericsError) as caught:
        loop()
    assert caught.value.learning_rate is None


def of_tiny_losses(scale):
    """Returns a model whose gradients are 0, so that its loss scale only grows."""
    model = keras.Sequential([keras.Input([1]), keras.layers.Dense(1, name="unit")])
    optimizer = keras.optimizers.LossScaleOptimizer(
        keras.optimizers.SGD(0.1), initial_scale=scale, dynamic_growth_steps=1
    )
    model.compile(optimizer, lambda y, p: 1e-4 + 0.0 * p, jit_compile=False)
    return model


def test_a_loss_scale_that_ran_away_is_the_cause():
    model = of_tiny_losses(2.0**120)
    x = np.ones([16, 1], "float32")
    with pytest.raises(tfsafe.NumericsError) as caught:
        tfsafe.checked(model).fit(x, x, batch_size=1, verbose=0)
    finding = caught.value.findings[0]
    assert finding.cause.startswith("the loss scale ran away: it doubles")
    assert "initial_scale=2.0**15" in finding.suggestion
    assert caught.value.loss_scale == 2.0**127
    text = str(caught.value).replace("\n" + " " * 9, " ")
    assert "▁▁▁▁▁▁▁ the loss was steady at 0.0001: only the loss scale grew." in text


def test_a_loss_scale_that_fell_far_is_reported_at_the_end():
    model = of_tiny_losses(2.0**100)
    assert loss_scale.fallen_scale() == ""
    x = np.ones([4, 1], "float32")
    model.fit(x, x, batch_size=4, verbose=0)
    assert loss_scale.fallen_scale() == ""
    model.optimizer.dynamic_scale.assign(2.0**90)
    words = loss_scale.fallen_scale()
    assert words.startswith("LossScaleOptimizer skipped at least 10 steps, in which")
    assert words.endswith("to 1.238e+27. Begin lower: initial_scale=2.0**90.")
