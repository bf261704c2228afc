"""Weighs classes and samples."""

import keras
import numpy as np
from keras import layers, losses, metrics, optimizers

x = np.random.RandomState(0).rand(16, 4).astype("float32")
y = np.arange(16) % 3
for weights in ({"class_weight": {0: 1.0, 1: 2.0, 2: 0.0}}, {"sample_weight": x[:, 0]}):
    keras.utils.set_random_seed(22)
    model = keras.Sequential([keras.Input((4,)), layers.Dense(3, activation="softmax")])
    model.compile(
        optimizers.Adagrad(0.1),
        losses.SparseCategoricalCrossentropy(),
        weighted_metrics=[metrics.SparseCategoricalCrossentropy()],
    )
    history = model.fit(
        x, y, batch_size=8, epochs=2, shuffle=False, verbose=0, **weights
    )
    for name, values in history.history.items():
        print(name, [f"{value:.4f}" for value in values])
