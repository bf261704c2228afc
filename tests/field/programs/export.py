"""Exports a SavedModel and serves it."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers, losses, optimizers

keras.utils.set_random_seed(24)
x = np.random.rand(8, 4).astype("float32")
model = keras.Sequential([keras.Input((4,)), layers.Dense(2, activation="softmax")])
model.compile(optimizers.Adam(0.01), losses.CategoricalCrossentropy())
model.fit(x, np.eye(2)[np.arange(8) % 2], shuffle=False, verbose=0)
model.export("served", verbose=False)
served = tf.saved_model.load("served")
print(f"{served.serve(x).numpy()[:, 0].sum():.4f}")


class Adder(tf.Module):
    def __init__(self):
        self.total = tf.Variable(0.0)

    @tf.function(input_signature=[tf.TensorSpec([None])])
    def __call__(self, x):
        self.total.assign_add(tf.reduce_sum(x))
        return tf.math.log1p(tf.exp(x)) + self.total


adder = Adder()
adder(tf.constant([1.0, 2.0]))
tf.saved_model.save(adder, "adder")
print(*(f"{v:.4f}" for v in tf.saved_model.load("adder")(tf.constant([3.0])).numpy()))
