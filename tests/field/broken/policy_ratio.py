"""Compares a policy with one that never took the action."""

import tensorflow as tf


@tf.function
def surrogate(log_new, log_old, advantage):
    ratio = tf.exp(log_new - log_old)  # here
    clipped = tf.clip_by_value(ratio, 0.8, 1.2)
    return -tf.reduce_mean(tf.minimum(ratio * advantage, clipped * advantage))


surrogate(
    tf.constant([-0.1, -0.2]), tf.constant([-0.3, -400.0]), tf.constant([1.0, -1.0])
)
