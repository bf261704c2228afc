"""Draws the next token by the shares of counts, in a loop."""

import tensorflow as tf


@tf.function
def decode(counts):
    tokens = tf.TensorArray(tf.int64, 3)
    token = tf.constant(0, tf.int64)
    for i in tf.range(3):
        shares = counts[token] / tf.reduce_sum(counts[token])  # here
        token = tf.argmax(shares)
        tokens = tokens.write(i, token)
    return tokens.stack()


decode(tf.constant([[0.0, 1.0, 2.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]))
