"""Under two replicas a mean is shared out as Keras shares its own."""

import subprocess
import sys

import pytest

PROGRAM = """
import keras, numpy as np, tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
two = [tf.config.LogicalDeviceConfiguration()] * 2
tf.config.set_logical_device_configuration(cpu, two)
from tfsafe.losses import StableCrossEntropy

def fit(loss):
    with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3, "softmax")])
        model.set_weights([np.ones([2, 3]), np.zeros(3)])
        model.compile(keras.optimizers.SGD(1.0), loss)
        x = np.arange(8.0, dtype="float32").reshape(4, 2)
        model.fit(x, np.array([0, 1, 2, 0]), batch_size=4, verbose=0, shuffle=False)
        return model.get_weights()

keras_loss = keras.losses.SparseCategoricalCrossentropy
for reduction in ("sum_over_batch_size", "sum"):
    ours = fit(StableCrossEntropy(reduction=reduction))
    theirs = fit(keras_loss(reduction=reduction))
    for a, b in zip(ours, theirs):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
        assert not np.allclose(a, 1)
print("the same")
"""


@pytest.mark.slow
def test_two_replicas_train_as_with_keras_own_loss():
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert result.stdout.strip().endswith("the same"), result.stderr
