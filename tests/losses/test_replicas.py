"""Under two replicas a mean is shared out as Keras shares its own."""

import pytest

from tests.support import forks

PROGRAM = """
import keras, numpy as np, tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
two = [tf.config.LogicalDeviceConfiguration()] * 2
tf.config.set_logical_device_configuration(cpu, two)
from tests.support.oracle import assert_close
from tfsafe import losses, metrics

def fit(loss, labels, activation="softmax", judge=None):
    with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        dense = keras.layers.Dense(3, activation)
        model = keras.Sequential([keras.Input((2,)), dense])
        model.set_weights([np.full([2, 3], 0.3), np.zeros(3)])
        model.compile(keras.optimizers.SGD(0.1), loss, metrics=[judge] if judge else [])
        x = np.arange(8.0, dtype="float32").reshape(4, 2)
        history = model.fit(x, labels, batch_size=4, verbose=0, shuffle=False)
        return *model.get_weights(), history.history[judge.name if judge else "loss"]

def same(ours, theirs):
    for a, b in zip(ours, theirs):
        assert_close(np.float32(a), np.float32(b), scale=1.0)
    assert np.abs(ours[0] - 0.3).max() > 1e-3

indices = np.array([0, 1, 2, 0])
keras_loss = keras.losses.SparseCategoricalCrossentropy
for reduction in ("sum_over_batch_size", "sum"):
    ours = losses.StableCrossEntropy(reduction=reduction)
    same(fit(ours, indices), fit(keras_loss(reduction=reduction), indices))

targets = np.arange(12.0, dtype="float32").reshape(4, 3) / 12
ours, theirs = losses.MeanSquaredError(), keras.losses.MeanSquaredError()
same(fit(ours, targets, "sigmoid"), fit(theirs, targets, "sigmoid"))

for name in ("MeanSquaredError", "AUC", "R2Score"):
    labels = (targets > 0.5).astype("float32")
    ours, theirs = getattr(metrics, name)(), getattr(keras.metrics, name)()
    same(fit("mse", labels, "sigmoid", ours), fit("mse", labels, "sigmoid", theirs))

strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
rng = np.random.default_rng(0)
y = 1.7e9 + 100 * rng.normal(size=(24, 1))
p = y + 10 * rng.normal(size=(24, 1))
with strategy.scope():
    score, rows = metrics.R2Score(dtype="float64"), keras.metrics.Sum()
    score.update_state(y, p)
    score.reset_state()

def update_both(y, p):
    score.update_state(y, p)
    rows.update_state(tf.ones_like(y))

data = tf.data.Dataset.from_tensor_slices((y, p)).batch(8)
update = tf.function(lambda y, p: strategy.run(update_both, (y, p)))
for batch in strategy.experimental_distribute_dataset(data):
    update(*batch)
# The metrics of Keras 3.3 show the rows of the first replica alone.
assert rows.result() == 24 or keras.__version__.startswith("3.3.")
shown = np.arange(24) % 8 < rows.result() / 3
y, p = y[shown], p[shown]
truth = 1 - np.sum((y - p) ** 2) / np.sum((y - y.mean()) ** 2)
assert_close(score.result(), truth, 2e5, why="labels of 1.7e9 that differ by 100")
print("the same")
"""


@pytest.mark.slow
def test_two_replicas_train_as_with_keras_own_loss():
    result = forks.run("-c", PROGRAM)
    assert result.stdout.strip().endswith("the same"), result.stderr
