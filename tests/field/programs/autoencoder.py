"""Removes noise from images with a convolutional autoencoder."""

import keras
import numpy as np
from keras import layers, losses, optimizers

keras.utils.set_random_seed(8)
clean = np.random.rand(8, 8, 8, 1).astype("float32")
noisy = np.clip(clean + 0.3 * np.random.randn(*clean.shape), 0, 1).astype("float32")
inputs = keras.Input((8, 8, 1))
h = layers.Conv2D(4, 3, activation="relu", padding="same")(inputs)
h = layers.MaxPooling2D(2, padding="same")(h)
h = layers.Conv2DTranspose(4, 3, strides=2, activation="relu", padding="same")(h)
model = keras.Model(
    inputs, layers.Conv2D(1, 3, padding="same", activation="sigmoid")(h)
)
model.compile(optimizers.Adam(), losses.BinaryCrossentropy())
history = model.fit(noisy, clean, batch_size=4, epochs=2, shuffle=False, verbose=0)
print([f"{v:.4f}" for v in history.history["loss"]])
