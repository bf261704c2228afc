"""Predicts amounts of money as they are."""

import keras
import numpy as np

keras.utils.set_random_seed(0)
income = np.exp(np.random.normal(size=(64, 1)) + 28.0).astype("float32")
x = np.log(income) + np.random.normal(size=(64, 4)).astype("float32")
layers = [keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1)]
model = keras.Sequential([keras.Input((4,)), *layers])
model.compile(keras.optimizers.SGD(0.01), "mse")
y = income * 1.0
model.fit(x / 30.0, y, epochs=3, verbose=0)  # here
