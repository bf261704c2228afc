"""Gives a schedule a negative decay, so that its divisor runs to 0."""

import keras
import tensorflow as tf

keras.utils.set_random_seed(0)
rate = keras.optimizers.schedules.InverseTimeDecay(0.05, 1, decay_rate=-0.05)
model = keras.Sequential([keras.Input((5,)), keras.layers.Dense(1)])
model.compile(keras.optimizers.SGD(rate), "mse")
x = tf.random.stateless_normal((256, 5), (0, 0))
model.fit(x, tf.reduce_sum(x, 1), batch_size=8, verbose=0)  # here
