"""Learns distances with a contrastive loss."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers, optimizers

keras.utils.set_random_seed(7)


def contrastive(y_true, y_pred):
    near = tf.square(y_pred)
    far = tf.square(tf.maximum(1.0 - y_pred, 0.0))
    return tf.reduce_mean((1.0 - y_true) * near + y_true * far)


def distance(pair):
    squares = tf.reduce_sum(tf.square(pair[0] - pair[1]), axis=1, keepdims=True)
    return tf.sqrt(tf.maximum(squares, 1e-7))


tower = keras.Sequential([keras.Input((6,)), layers.Dense(4, activation="tanh")])
left, right = keras.Input((6,)), keras.Input((6,))
apart = layers.Lambda(distance, output_shape=(1,))([tower(left), tower(right)])
model = keras.Model([left, right], layers.BatchNormalization()(apart))
model.compile(optimizers.RMSprop(), contrastive)
a, b = np.random.rand(2, 12, 6).astype("float32")
y = (np.arange(12) % 2).astype("float32")[:, None]
history = model.fit([a, b], y, batch_size=4, epochs=2, shuffle=False, verbose=0)
print([f"{v:.4f}" for v in history.history["loss"]])
