"""Feeds a model from a tf.data pipeline with a cache, a map and weights."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers, losses, optimizers

keras.utils.set_random_seed(21)
x = np.random.rand(24, 4).astype("float32")
y = np.arange(24) % 2


def prepare(x, y):
    x = (x - tf.reduce_mean(x)) / tf.math.reduce_std(x)
    return tf.math.log(1.0 + tf.nn.relu(x)), y, tf.cast(y, tf.float32) + 0.5


data = tf.data.Dataset.from_tensor_slices((x, y)).cache().shuffle(24, seed=3)
data = data.map(prepare, tf.data.AUTOTUNE, deterministic=True).batch(8).prefetch(2)
model = keras.Sequential([keras.Input((4,)), layers.Dense(1, activation="sigmoid")])
model.compile(optimizers.Adam(0.01), losses.BinaryCrossentropy())
history = model.fit(data, epochs=2, steps_per_epoch=3, verbose=0)
print([f"{v:.4f}" for v in history.history["loss"]])
