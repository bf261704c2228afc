"""Freezes a trained base, trains a head, then unfreezes the base."""

import keras
import numpy as np
from keras import layers, losses, optimizers

keras.utils.set_random_seed(12)
base = keras.Sequential([
    keras.Input((8, 8, 3)),
    layers.Conv2D(4, 3),
    layers.BatchNormalization(),
    layers.ReLU(),
])
base.trainable = False
inputs = keras.Input((8, 8, 3))
h = layers.GlobalAveragePooling2D()(base(inputs, training=False))
model = keras.Model(inputs, layers.Dense(1)(h))
x = np.random.rand(12, 8, 8, 3).astype("float32")
y = (x.mean((1, 2, 3)) > 0.5).astype("float32")[:, None]
for rate in (1e-2, 1e-4):
    model.compile(optimizers.Adam(rate), losses.BinaryCrossentropy(from_logits=True))
    history = model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0)
    print(len(model.trainable_weights), [f"{v:.4f}" for v in history.history["loss"]])
    base.trainable = True
