"""Fits the log-odds of fractions, of which one is 0 and one is 1."""

import keras
import numpy as np
import tensorflow as tf


class Odds(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(1)

    def call(self, x):
        return self.dense(x)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, **options):
        target = tf.math.log(y) - tf.math.log(1.0 - y)  # here
        return tf.reduce_mean(tf.square(target - y_pred))


x = np.random.default_rng(1).normal(size=(4, 2)).astype("float32")
model = Odds()
model.compile("adam")
model.fit(
    x, np.array([[0.2], [0.0], [0.5], [1.0]], "float32"), shuffle=False, verbose=0
)
