"""Trains the angle between rotations whose product is rounded above 1."""

import tensorflow as tf

turns = tf.Variable([[0.6, 0.8, 0.0, 0.0], [1.0001, 0.0, 0.0, 0.0]])
target = tf.constant([[0.8, 0.6, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])


@tf.function
def step():
    with tf.GradientTape() as tape:
        cosine = tf.abs(tf.reduce_sum(turns * target, axis=-1))
        loss = tf.reduce_mean(2.0 * tf.acos(cosine))  # here
    turns.assign_sub(0.1 * tape.gradient(loss, turns))
    return loss


step()
