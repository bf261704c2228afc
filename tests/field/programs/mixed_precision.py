"""Trains in float16 with a scaled loss."""

import keras
import numpy as np
from keras import layers, losses, optimizers

keras.config.set_dtype_policy("mixed_float16")
keras.utils.set_random_seed(18)
x = np.random.rand(16, 4).astype("float32")
y = np.arange(16) % 3
model = keras.Sequential([
    keras.Input((4,)),
    layers.Dense(8, activation="relu"),
    layers.LayerNormalization(),
    layers.Dense(3),
    layers.Activation("softmax", dtype="float32"),
])
model.compile(optimizers.SGD(0.01), losses.SparseCategoricalCrossentropy())
history = model.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0)
print([f"{v:.3f}" for v in history.history["loss"]])
