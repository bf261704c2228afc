"""Trains with a learning rate whose warm-up has no steps."""

import keras
import tensorflow as tf


class Warmup(keras.optimizers.schedules.LearningRateSchedule):
    def __init__(self, rate, steps):
        self.rate = rate
        self.steps = steps

    def __call__(self, step):
        part = tf.cast(step, tf.float32) / self.steps  # here
        return self.rate * tf.minimum(part, 1.0)


model = keras.Sequential([keras.Input([2]), keras.layers.Dense(1)])
model.compile(keras.optimizers.Adam(Warmup(1e-3, 0)), "mse")
model.fit(tf.ones([4, 2]), tf.ones([4, 1]), verbose=0)
