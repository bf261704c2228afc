"""Classifies images with a small convolutional network."""

import keras
import numpy as np
from keras import layers, losses, metrics, optimizers

keras.utils.set_random_seed(1)
x = np.random.rand(16, 8, 8, 1).astype("float32")
y = keras.utils.to_categorical(np.arange(16) % 4, 4)
model = keras.Sequential([
    keras.Input((8, 8, 1)),
    layers.Conv2D(4, 3, activation="relu"),
    layers.MaxPooling2D(2),
    layers.Flatten(),
    layers.Dense(4, activation="softmax"),
])
model.compile(
    optimizers.Adam(),
    losses.CategoricalCrossentropy(),
    metrics=[metrics.CategoricalAccuracy()],
)
history = model.fit(x, y, batch_size=8, epochs=2, validation_split=0.25, verbose=0)
for name, values in history.history.items():
    print(name, [f"{value:.4f}" for value in values])
