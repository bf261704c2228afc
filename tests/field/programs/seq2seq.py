"""Translates with an encoder whose state starts the decoder."""

import keras
import numpy as np
from keras import layers, losses, optimizers

keras.utils.set_random_seed(4)
source = np.eye(5, dtype="float32")[np.arange(24).reshape(6, 4) % 5]
target = np.eye(6, dtype="float32")[np.arange(30).reshape(6, 5) % 6]
encoder_in = keras.Input((None, 5))
_, h, c = layers.LSTM(4, return_state=True)(encoder_in)
decoder_in = keras.Input((None, 6))
sequence = layers.LSTM(4, return_sequences=True)(decoder_in, initial_state=[h, c])
model = keras.Model([encoder_in, decoder_in], layers.Dense(6, "softmax")(sequence))
model.compile(optimizers.RMSprop(), losses.CategoricalCrossentropy())
data = ([source, target[:, :-1]], target[:, 1:])
history = model.fit(*data, batch_size=3, epochs=2, shuffle=False, verbose=0)
print([f"{v:.4f}" for v in history.history["loss"]])
print(f"{model.predict(data[0], verbose=0).sum():.4f}")
