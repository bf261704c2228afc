"""Fills in missing values of a table, and tells the network which they were."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers, optimizers

keras.utils.set_random_seed(1)
table = np.random.normal(size=(64, 6)).astype("float32")
table[np.random.uniform(size=table.shape) < 0.2] = np.nan


def filled(row):
    is_known = tf.math.is_finite(row)
    known = tf.where(is_known, row, 0.0)
    features = tf.concat([known, tf.cast(is_known, tf.float32)], 0)
    return features, tf.reduce_sum(known, keepdims=True)


data = tf.data.Dataset.from_tensor_slices(table).map(filled).batch(16)
model = keras.Sequential([layers.Dense(8, activation="relu"), layers.Dense(1)])
model.compile(optimizer=optimizers.Adam(0.01), loss="mse")
history = model.fit(data, epochs=2, verbose=0)
print(f"{history.history['loss'][-1]:.4f}")
