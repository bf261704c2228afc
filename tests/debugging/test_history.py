"""An error shows whether the loss grew before, or failed out of the blue."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe._report import text as _text
from tfsafe.debugging.explain.training import history


def failure_after(losses, mode="graph"):
    step = tfsafe.checked(modes.compile_for(mode, lambda x: tf.exp(x)))
    for each in np.log(losses):
        step(tf.constant(each, tf.float32))
    with pytest.raises(tfsafe.NumericsError) as caught:
        step(tf.constant(1000.0))
    return caught.value


@pytest.mark.parametrize("mode", ["graph", "xla"])
def test_a_loss_that_grew(mode):
    losses = [1.0, 1.1, 0.9, 1.0, 1.2, 30.0, 1e3, 1e5]
    error = failure_after(losses, mode)
    assert_close(
        error.losses,
        losses,
        6,
        why="exponentials of rounded logarithms",
        dtype="float32",
    )
    assert "\n  since: ▁▁▁▁▁▃▅█ grew over 3 steps, from 1.2 to 1e+05: the" in str(error)
    assert "clip the gradients (clipnorm=1.0)" in str(error).replace(
        "\n" + " " * 9, " "
    )


def test_a_loss_that_runs_to_minus_infinity_is_not_blamed_on_the_learning_rate():
    step = tfsafe.checked(tf.function(lambda x: -tf.square(x)))
    for each in (0.5, 1.0, 0.9, 1.1, 1.0, 10.0, 1e3, 1e6):
        step(tf.constant(each))
    with pytest.raises(tfsafe.NumericsError) as caught:
        step(tf.constant(1e20))
    text = str(caught.value).replace("\n" + " " * 9, " ")
    assert "fell over 3 steps, from -1 to -1e+12: the loss seems to have" in text
    assert "  fix:   check the sign of the loss and of each of its terms" in text
    assert "ower the learning rate" not in text


def test_a_loss_that_leaves_0_is_not_said_to_have_no_bound():
    # That of a policy, before its first step.
    step = tfsafe.checked(tf.function(lambda x: tf.reduce_mean(x)))
    step(tf.constant([-1e-9, 0.0]))
    step(tf.constant([-0.02, -0.01]))
    with pytest.raises(tfsafe.NumericsError) as caught:
        step(tf.constant([np.nan, 1.0]))
    assert "since:" not in str(caught.value)


def test_a_failure_out_of_the_blue():
    text = str(failure_after([1.0, 1.1, 0.9, 1.0, 1.2]))
    assert "out of the blue: the loss before was 1.2. Look for one unusual row" in text
    assert text.index("  since:") < text.index("  reach:")


def test_an_overflow_of_one_batch_is_not_blamed_on_the_learning_rate():
    step = tfsafe.checked(tf.function(lambda x: tf.reduce_mean(tf.square(x))))
    for _ in range(5):
        step(tf.ones([4]))
    with pytest.raises(tfsafe.NumericsError) as caught:
        step(tf.constant([1.0, 1.0, 1e30, 1.0]))
    finding = caught.value.findings[0]
    assert finding.cause.endswith(
        "It came out of the blue: the steps before were steady."
    )
    look = "Look for what is unusual in row 2 of `error.inputs`"
    words = f"values of 1.0e+30 came with this batch. {look}, and clip the inputs."
    assert finding.suggestion.startswith(words)
    text = str(caught.value).replace("\n" + " " * 9, " ")
    assert f"{look}, or a formula" in text
    assert "learning rate" not in text


def test_few_steps_say_nothing():
    assert "since:" not in str(failure_after([1.0, 1.1, 0.9, 1.0]))


def test_in_the_first_step_no_learning_rate_is_to_blame():
    model = keras.Sequential([keras.Input([2]), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    x = np.full([4, 2], 1e25, "float32")
    checked = tfsafe.checked(model)
    with pytest.raises(tfsafe.NumericsError) as caught:
        checked.fit(x, np.ones([4, 1]), batch_size=4, verbose=0)
    (suggestion,) = {each.suggestion for each in caught.value.findings[:1]}
    assert caught.value.step == 0
    assert "e+2" in suggestion
    assert "before any training: scale the inputs and the targets down" in suggestion
    assert "lower the learning rate" not in suggestion


def test_two_steps_are_enough_to_see_that_a_loss_exploded():
    text = str(failure_after([40.0, 1e30]))
    assert "grew over 1 step, from 40 to 1e+30: the" in text


def test_a_batch_that_was_bad_itself_is_blamed():
    step = tfsafe.checked(tf.function(tf.reduce_sum))
    for _ in range(5):
        step(tf.ones([2]))
    with pytest.raises(tfsafe.NumericsError) as caught:
        step(tf.constant([1.0, np.nan]))
    text = str(caught.value).replace("\n" + " " * 9, " ")
    assert "the loss before was 2. It is this batch: `error.inputs` has" in text


def test_only_the_last_steps_are_kept():
    losses = history.LastSteps()
    for each in range(60):
        losses.add({"loss": tf.constant(float(each)), "accuracy": tf.constant(0.0)})
    assert losses.values() == [float(each) for each in range(10, 60)]


def test_what_is_no_loss_is_ignored():
    losses = history.LastSteps()
    for each in (tf.zeros([2]), tf.constant(1), None, {}, (), {"loss": "x"}):
        losses.add(each)
    assert losses.values() == []


def fit(model, x, y, callbacks=()):
    model.fit(x, y, batch_size=1, shuffle=False, verbose=0, callbacks=callbacks)


def fit_monitored(model, x, y):
    fit(model, x, y, [tfsafe.callbacks.NumericsMonitor()])


def train_on_batches(model, x, y):
    for each in range(len(x)):
        model.train_on_batch(x[each : each + 1], y[each : each + 1])


@pytest.mark.parametrize("train", [fit, fit_monitored, train_on_batches])
def test_training_gives_the_losses_of_the_batches(train):
    """Keras shows running means, which start again with each epoch."""
    model = keras.Sequential([keras.Input([1]), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.0), "mse")
    x = np.zeros([8, 1], "float32")
    y = np.arange(1.0, 9.0)[:, None]
    y[7] = np.nan
    with tfsafe.check_numerics():
        train(model, x[:7], y[:7])
        with pytest.raises(tfsafe.NumericsError) as caught:
            train(model, x, y)
    squares = [each**2 for each in range(1, 8)]
    assert_close(caught.value.losses[-7:], squares, dtype="float32")


@pytest.mark.parametrize(
    ("values", "line"),
    [([1.0, 1.000001], "▁▁"), ([0.0, 7.0, 1.0], "▁█▂"), ([1.0, 1e2, 1e4, 1e7], "▁▃▅█")],
)
def test_sparklines(values, line):
    assert _text.sparkline(values) == line


def diverged(rate, steps=20):
    """Trains on a loss that is bounded, until an exponential overflows."""
    keras.utils.set_random_seed(0)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=[64, 10]).astype("float32"), rng.integers(0, 3, 64)
    layers = [keras.layers.Dense(32, "relu") for _ in range(2)]
    model = keras.Sequential([keras.Input([10]), *layers, keras.layers.Dense(3)])
    optimizer = keras.optimizers.SGD(rate)

    @tfsafe.checked
    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            e = tf.exp(model(x))
            p = e / tf.reduce_sum(e, -1, keepdims=True)
            loss = tf.reduce_mean(1 - tf.gather(p, y, batch_dims=1))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(
            zip(gradients, model.trainable_variables, strict=True)
        )
        return loss

    for _ in range(steps):
        step(x, y)
    # A batch that is large, after steps that were not.
    step(100 * x, y)


@pytest.mark.parametrize("rate", [100.0, 1000.0])
def test_weights_that_grew_blame_the_learning_rate_though_the_loss_is_bounded(rate):
    with pytest.raises(tfsafe.NumericsError) as caught:
        diverged(rate)
    (first,) = caught.value.findings[:1]
    assert "The weights grew " in first.cause
    assert "out of the blue" not in str(caught.value)
    assert first.suggestion.startswith(f"lower the learning rate {rate:.0f} first: ")
    assert "Otherwise tfsafe.ops.softmax(" in first.suggestion
    assert not first.suggested_code


def test_weights_that_kept_their_size_blame_nothing():
    with pytest.raises(tfsafe.NumericsError) as caught:
        diverged(0.01)
    (first,) = caught.value.findings[:1]
    assert first.cause.endswith("out of the blue: the steps before were steady.")
    assert first.suggested_code.startswith("tfsafe.ops.softmax(")
