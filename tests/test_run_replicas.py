"""`python -m tfsafe run` of programs under `MirroredStrategy`: they do the same."""

import textwrap

import pytest

from tests.support import forks

# TensorFlow splits the CPU at start-up only.
PROGRAM = textwrap.dedent("""
    import keras
    import numpy as np
    import tensorflow as tf

    cpu = tf.config.list_physical_devices("CPU")[0]
    two = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(cpu, two)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    keras.utils.set_random_seed(0)
    x = np.random.RandomState(0).randn(16, 3).astype("float32")
    y = x[:, :1] - x[:, 1:2]

    with strategy.scope():
        weights = tf.Variable([[1.0], [2.0], [3.0]])
        optimizer = keras.optimizers.Adam(0.1)
        model = keras.Sequential([
            keras.Input([3]),
            keras.layers.Dense(4, "relu"),
            keras.layers.BatchNormalization(),
            keras.layers.Dense(1),
        ])
        model.compile(keras.optimizers.Adam(0.01), "mse", metrics=["mae"])
        optimizer.build([weights])
        optimizer.learning_rate.assign(0.01)
    weights.assign([[1.0], [1.0], [1.0]])
    print(optimizer.learning_rate.numpy(), weights.numpy().ravel())

    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ weights - y) ** 2) / 2.0
        gradients = tape.gradient(loss, [weights])
        optimizer.apply_gradients(zip(gradients, [weights]))
        return loss

    @tf.function
    def train(x, y):
        return strategy.reduce("sum", strategy.run(step, args=(x, y)), axis=None)

    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(8)
    for batch in strategy.experimental_distribute_dataset(data):
        print("%.5f" % train(*batch))
    for batch in strategy.experimental_distribute_dataset(data):
        losses = strategy.run(step, args=batch)
        print("%.5f" % strategy.reduce("sum", losses, axis=None))

    options = {"batch_size": 8, "verbose": 0}
    fit = model.fit(x, y, validation_data=(x, y), shuffle=False, epochs=2, **options)
    for name, values in fit.history.items():
        print(name, ["%.5f" % value for value in values])
    print("%.5f" % model.evaluate(x, y, **options)[0])
    print("%.5f" % np.sum(model.predict(x, **options)))
""")


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("replicas") / "script.py"
    path.write_text(PROGRAM)
    return path


def output(script, *options):
    result = forks.run(*options, script, cwd=script.parent)
    assert result.returncode == 0, result.stderr
    return result.stdout, result.stderr


@pytest.fixture(scope="module")
def plain(script):
    return output(script)[0]


# The checks of the other levels are among those of `full`.
@pytest.mark.slow
def test_a_program_on_two_replicas_prints_the_same(script, plain):
    options = ["--checks", "full", "--stabilize"]
    printed, warned = output(script, "-m", "tfsafe", "run", *options)
    assert printed == plain
    assert "RuntimeWarning" not in warned
