"""Takes the density of an action that tanh has squashed, where tanh is 1."""

import math

import keras
import tensorflow as tf

keras.utils.set_random_seed(11)


class Actor(keras.Model):
    def __init__(self):
        super().__init__()
        self.mean, self.log_std = keras.layers.Dense(2), keras.layers.Dense(2)

    def call(self, state):
        mean = self.mean(state)
        log_std = tf.clip_by_value(self.log_std(state), -5.0, 2.0)
        noise = tf.random.stateless_normal(tf.shape(mean), (1, 2))
        u = mean + tf.exp(log_std) * noise
        a = tf.tanh(u)
        log_p = -0.5 * noise**2 - log_std - 0.5 * math.log(2.0 * math.pi)
        return a, tf.reduce_sum(log_p - tf.math.log(1 - a**2), axis=-1)  # here


actor = Actor()
optimizer = keras.optimizers.Adam(3e-4)


@tf.function
def update(states):
    with tf.GradientTape() as tape:
        a, log_p = actor(states)
        loss = tf.reduce_mean(0.2 * log_p + tf.reduce_sum((a - 0.3) ** 2, -1))
    variables = actor.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))


for _ in range(3):
    update(tf.random.stateless_normal((64, 3), (0, 1)) * 20.0)
