"""Saves a model, loads it, and trains on."""

import keras
import numpy as np
from keras import layers, losses, optimizers

keras.utils.set_random_seed(23)
x = np.random.rand(12, 4).astype("float32")
y = x.sum(1, keepdims=True)
model = keras.Sequential([
    keras.Input((4,)),
    layers.Dense(4, activation="tanh"),
    layers.LayerNormalization(),
    layers.Dense(1),
])
model.compile(optimizers.Adam(0.01), losses.MeanSquaredError())
model.fit(x, y, batch_size=4, shuffle=False, verbose=0)
model.save("model.keras")
loaded = keras.models.load_model("model.keras")
history = loaded.fit(x, y, batch_size=4, shuffle=False, verbose=0)
print([f"{v:.4f}" for v in history.history["loss"]], int(loaded.optimizer.iterations))
