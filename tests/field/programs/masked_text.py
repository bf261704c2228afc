"""Classifies padded sequences of tokens with an LSTM under a mask."""

import keras
import numpy as np
from keras import layers, losses, optimizers

keras.utils.set_random_seed(2)
x = np.array([[1, 2, 3, 0], [4, 5, 0, 0], [2, 2, 1, 1], [3, 0, 0, 0]] * 2)
y = np.array([0, 1, 0, 1] * 2)
inputs = keras.Input((4,), dtype="int32")
h = layers.Embedding(6, 4, mask_zero=True)(inputs)
h = layers.Bidirectional(layers.LSTM(3))(h)
h = layers.Dropout(0.2, seed=1)(h)
model = keras.Model(inputs, layers.Dense(1, activation="sigmoid")(h))
model.compile(optimizers.RMSprop(0.01), losses.BinaryCrossentropy())
history = model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0)
print([f"{v:.4f}" for v in history.history["loss"]])
print(f"{model.evaluate(x, y, verbose=0):.4f}")
