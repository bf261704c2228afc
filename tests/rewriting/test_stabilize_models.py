"""A stabilised model when it is called, exported or trained on several replicas."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.rewriting.test_stabilize_keras import CLASSES, X, Y, model
from tests.support import forks, modes
from tests.support.oracle import assert_close
from tfsafe.rewriting import stabilize


class Scores(keras.Model):
    """Returns log-probabilities, and adds losses in both ways that Keras has."""

    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(CLASSES, activity_regularizer="l2")
        self.dropout = keras.layers.Dropout(0.5, seed=1)

    def call(self, inputs):
        hidden = self.dropout(self.dense(inputs))
        self.add_loss(tf.reduce_sum(hidden))
        return tf.math.log(tf.nn.softmax(hidden))


def scores():
    keras.utils.set_random_seed(0)
    made = Scores()
    made(X)
    return made


def test_a_call_of_the_model_is_stable(mode):
    made = scores()
    right = tf.nn.log_softmax(made.dense(X))
    assert not np.isfinite(made(X)).all()
    losses = [float(each) for each in made.losses]
    call = modes.compile_for(mode, stabilize(made))
    for _ in range(2):
        assert_close(
            call(X), right, 11, why="differences of logits of up to 1000", scale=1.0
        )
    with tf.GradientTape() as tape:
        value = tf.reduce_sum(call(X) * Y)
    kernel, bias = tape.gradient(value, made.trainable_variables)
    assert np.isfinite(kernel).all()
    assert np.isfinite(bias).all()
    if mode == "eager":
        assert_close([float(x) for x in made.losses], losses, dtype="float32")
        # Another trace: `training` reaches the dropout without an argument of `call`.
        assert np.abs(made(X, training=True) - right).max() > 1


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_a_functional_model_is_stable_for_an_array(dtype):
    inputs = keras.Input([2])
    naive = keras.layers.Lambda(lambda x: tf.math.log(1 + tf.exp(x)))(inputs)
    made = keras.Model(inputs, naive)
    x = np.asarray([[100, 1]], dtype)
    assert np.isinf(made(x)).any()
    stable = stabilize(made)(x)
    assert stable.dtype == tf.float32
    assert_close(stable, np.logaddexp(0, x))


def test_a_call_keeps_what_keras_attaches_to_the_output():
    probs = stabilize(model())(X)
    assert keras.losses.CategoricalCrossentropy()(Y, probs) > 100
    made = keras.Sequential([
        keras.layers.Masking(),
        keras.layers.LSTM(2, return_sequences=True),
    ])
    steps = tf.constant([[[1.0, 2.0], [0.0, 0.0]]])
    plain = made(steps)
    stable = stabilize(made)(steps)
    assert_close(stable, plain)
    np.testing.assert_array_equal(stable._keras_mask, [[True, False]])
    assert stabilize(model())(keras.Input([4])).shape == (None, CLASSES)


def test_a_call_that_cannot_be_traced_is_made_as_written():
    class Eager(keras.Model):
        def call(self, inputs):
            return inputs * 2 if float(inputs[0, 0]) < 9 else inputs

    made = stabilize(Eager())
    with pytest.warns(RuntimeWarning, match="because the trace of one failed"):
        assert float(made(tf.ones([1, 1]))[0, 0]) == 2
    assert float(made(tf.fill([1, 1], 9.0))[0, 0]) == 9


LOAD = """
import sys
import numpy as np
import tensorflow as tf

x = tf.constant(np.load(sys.argv[1] + "/x.npy"))
for name in ("exported", "saved"):
    loaded = tf.saved_model.load(f"{sys.argv[1]}/{name}")
    with tf.GradientTape() as tape:
        tape.watch(x)
        (y,) = tf.nest.flatten(loaded.signatures["serving_default"](x))
    assert np.isfinite(y).all(), name
    assert np.isfinite(tape.gradient(y, x)).all(), name
assert "tfsafe" not in sys.modules
"""


@pytest.mark.slow
def test_an_exported_stable_model_runs_in_plain_tensorflow(tmp_path):
    made = stabilize(scores())
    made.export(str(tmp_path / "exported"))
    tf.saved_model.save(made, str(tmp_path / "saved"))
    np.save(tmp_path / "x.npy", X)
    done = forks.run("-c", LOAD, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]


# TensorFlow splits the CPU at start-up only.
REPLICAS = """
import keras
import numpy as np
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
two = [tf.config.LogicalDeviceConfiguration()] * 2
tf.config.set_logical_device_configuration(cpu, two)

import tfsafe
from tests.rewriting.test_stabilize_keras import X, Y, naive
from tests.support.oracle import assert_close

def trained(activation, loss, wrap):
    keras.utils.set_random_seed(0)
    with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        model = keras.Sequential([
            keras.Input([4]),
            keras.layers.BatchNormalization(),
            keras.layers.Rescaling(300.0),
            keras.layers.Dropout(0.1, seed=1),
            keras.layers.Dense(3, activation),
        ])
        model.compile("sgd", loss, jit_compile=False)
    model = wrap(model)
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(4)
    fit = model.fit(data, epochs=2, shuffle=False, verbose=0)
    rows = model.predict(X[:8], verbose=0)
    return fit.history["loss"], model.evaluate(data, verbose=0), rows, model.weights

right = keras.losses.CategoricalCrossentropy(from_logits=True)
expected = trained(None, right, lambda model: model)
assert not np.isfinite(trained("softmax", naive, lambda model: model)[0]).all()
got = trained("softmax", naive, tfsafe.stabilize)
assert_close(got[:2], expected[:2], dtype="float32")
assert_close(got[2], tf.nn.softmax(expected[2]), scale=1.0)
assert_close(got[3], expected[3], scale=1.0)
"""


@pytest.mark.slow
def test_a_model_on_two_replicas_trains_where_the_naive_loss_destroys_it():
    done = forks.run("-c", REPLICAS)
    assert done.returncode == 0, done.stderr[-3000:]


def test_a_strategy_of_one_replica_trains_as_without_one():
    def losses_of(strategy, wrap):
        keras.utils.set_random_seed(0)
        with strategy.scope():
            built = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
            built.compile(keras.optimizers.Adam(0.1), "mse")
        x = np.linspace(-1, 1, 32, dtype="float32").reshape(8, 4)
        history = wrap(built).fit(
            x, x.sum(-1, keepdims=True), batch_size=4, epochs=2, verbose=0
        )
        return history.history["loss"]

    one = tf.distribute.MirroredStrategy(["CPU:0"])
    expected = losses_of(tf.distribute.get_strategy(), lambda each: each)
    assert_close(losses_of(one, stabilize), expected, dtype="float32")


@pytest.mark.slow
def test_a_model_is_compiled_again():
    """The variables of the second optimizer are created in a step."""
    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")

    def losses(is_stable):
        keras.utils.set_random_seed(0)
        model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
        if is_stable:
            stabilize(model)
        found = []
        for optimizer in ("adam", "rmsprop"):
            model.compile(optimizer, "mse")
            found += model.fit(x, y, epochs=2, verbose=0).history["loss"]
        return found

    assert_close(losses(is_stable=True), losses(is_stable=False), 0.5, dtype="float32")
