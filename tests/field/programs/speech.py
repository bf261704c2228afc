"""Recognises sequences with the CTC loss."""

import keras
import numpy as np
from keras import layers, losses, optimizers

keras.utils.set_random_seed(39)
x = np.random.rand(4, 8, 3).astype("float32")
y = np.array([[1, 2, 0], [2, 0, 0], [1, 1, 2], [3, 1, 0]])
model = keras.Sequential([
    keras.Input((8, 3)),
    layers.SimpleRNN(6, return_sequences=True),
    layers.Dense(4),
])
model.compile(optimizers.Adam(0.01), losses.CTC())
history = model.fit(x, y, batch_size=2, epochs=2, shuffle=False, verbose=0)
print([f"{v:.3f}" for v in history.history["loss"]])
