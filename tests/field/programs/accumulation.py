"""Accumulates gradients, and keeps an average of the weights."""

import keras
import numpy as np
from keras import layers, losses, optimizers

x = np.random.RandomState(0).rand(16, 3).astype("float32")
y = x.sum(1, keepdims=True)
for options in (
    {"gradient_accumulation_steps": 2},
    {"use_ema": True, "ema_momentum": 0.5},
):
    keras.utils.set_random_seed(17)
    model = keras.Sequential([keras.Input((3,)), layers.Dense(1)])
    model.compile(optimizers.Adam(0.01, **options), losses.MeanSquaredError())
    history = model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0)
    print([f"{v:.4f}" for v in history.history["loss"]])
    print(f"{model.predict(x, verbose=0).sum():.4f}")
