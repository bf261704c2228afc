"""Adds positions from a table that is made once, with a division by 0."""

import keras
import tensorflow as tf


class Positions(keras.layers.Layer):
    def __init__(self, length, depth):
        super().__init__()
        position = tf.range(length, dtype=tf.float32)[:, None]
        rate = 1.0 - 10000.0 ** (tf.range(depth, dtype=tf.float32) / depth)
        self.table = tf.sin(position / rate)  # here

    def call(self, x):
        return x + self.table


model = keras.Sequential([keras.Input((6, 4)), Positions(6, 4), keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(tf.ones((8, 6, 4)), tf.ones((8, 6, 1)), verbose=0)
