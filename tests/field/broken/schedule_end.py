"""Trains on after the end of a schedule that is a power of what is left."""

import keras
import numpy as np
import tensorflow as tf


class Decay(keras.optimizers.schedules.LearningRateSchedule):
    """Falls from 0.1 to 0 in so many steps."""

    def __init__(self, steps):
        self.steps = steps

    def __call__(self, step):
        done = tf.cast(step, tf.float32)
        return 0.1 * (1.0 - done / self.steps) ** 0.9  # here


keras.utils.set_random_seed(0)
x = np.random.normal(size=(32, 4)).astype("float32")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile(keras.optimizers.SGD(Decay(6)), "mse")
model.fit(x, x.sum(axis=1), batch_size=8, epochs=3, verbose=0)
