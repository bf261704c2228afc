"""Differentiates a root at 0."""

import tensorflow as tf

w = tf.Variable([0.0, 1.0])


@tf.function
def step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(w**0.5)  # here
    w.assign_sub(tape.gradient(loss, w))
    return loss


step()
