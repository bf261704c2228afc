"""Tags every token of a padded sentence."""

import keras
import numpy as np
from keras import layers, losses, metrics, optimizers

keras.utils.set_random_seed(3)
x = np.array([[1, 2, 3, 0, 0], [3, 2, 1, 4, 0], [1, 1, 2, 2, 3], [4, 0, 0, 0, 0]])
y = x % 3
model = keras.Sequential([
    keras.Input((5,), dtype="int32"),
    layers.Embedding(5, 4, mask_zero=True),
    layers.LSTM(4, return_sequences=True),
    layers.TimeDistributed(layers.Dense(3)),
])
model.compile(
    optimizers.Adam(0.01),
    losses.SparseCategoricalCrossentropy(from_logits=True),
    weighted_metrics=[metrics.SparseCategoricalAccuracy(name="accuracy")],
)
history = model.fit(x, y, batch_size=2, epochs=2, shuffle=False, verbose=0)
for name, values in history.history.items():
    print(name, [f"{value:.4f}" for value in values])
