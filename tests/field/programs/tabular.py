"""Reads columns of numbers, words and counts, each with its preprocessing."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers, losses, metrics, optimizers

keras.utils.set_random_seed(10)
age = np.array([[20.0], [30.0], [40.0], [51.0]] * 3, "float32")
word = tf.constant([["a"], ["b"], ["c"], ["a"]] * 3)
y = np.array([[0], [1], [1], [0]] * 3)
normalization = layers.Normalization()
normalization.adapt(age)
lookup = layers.StringLookup(vocabulary=["a", "b", "c"], output_mode="one_hot")
age_in, word_in = keras.Input((1,)), keras.Input((1,), dtype="string")
h = layers.Concatenate()([normalization(age_in), lookup(word_in)])
h = layers.Dense(4, activation="relu")(h)
model = keras.Model([age_in, word_in], layers.Dense(1, activation="sigmoid")(h))
model.compile(
    optimizers.Adam(0.01),
    losses.BinaryCrossentropy(),
    metrics=[metrics.AUC(name="auc")],
)
data = tf.data.Dataset.from_tensor_slices(((age, word), y)).batch(4)
history = model.fit(data, epochs=2, verbose=0)
for name, values in history.history.items():
    print(name, [f"{value:.4f}" for value in values])
