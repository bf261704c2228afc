"""Trains under MirroredStrategy on one device."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers, losses, optimizers

keras.utils.set_random_seed(34)
x = np.random.rand(12, 4).astype("float32")
y = x.sum(1, keepdims=True)
with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
    model = keras.Sequential([
        keras.Input((4,)),
        layers.Dense(4, activation="relu"),
        layers.Dense(1),
    ])
    model.compile(optimizers.Adam(0.01), losses.MeanSquaredError())
history = model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0)
print([f"{v:.4f}" for v in history.history["loss"]])
print(f"{model.predict(x, verbose=0).sum():.4f}")
