"""Adds an epsilon to an exponential under a logarithm."""

import math

import tensorflow as tf

x = tf.constant([[1.0, 2.0], [0.5, 2.5], [-1.0, 0.2]])
w = tf.Variable([[3.0], [40.0]])


@tf.function
def step():
    with tf.GradientTape() as tape:
        rate = x @ w
        loss = tf.reduce_mean(tf.math.log(tf.exp(rate) + 1e-6))  # here
    w.assign_sub(1e-3 * tape.gradient(loss, w))
    return loss


step()
print(math.isfinite(step()))
