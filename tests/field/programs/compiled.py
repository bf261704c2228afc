"""Trains with jit_compile."""

import keras
import numpy as np
from keras import layers, losses, optimizers

keras.utils.set_random_seed(19)
x = np.random.rand(16, 4).astype("float32")
y = np.arange(16) % 3
model = keras.Sequential([
    keras.Input((4,)),
    layers.Dense(8, activation="gelu"),
    layers.BatchNormalization(),
    layers.Dense(3),
])
loss = losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizers.Adam(0.01), loss, jit_compile=True)
history = model.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0)
print([f"{v:.4f}" for v in history.history["loss"]])
