"""Draws classes by the Gumbel trick, from numbers of which some are 0."""

import tensorflow as tf

tf.random.set_seed(1)
logits = tf.Variable(tf.zeros([4], tf.float16))


@tf.function
def relaxed():
    u = tf.random.uniform([4000, 4], dtype=tf.float16)
    noise = -tf.math.log(-tf.math.log(u))  # here
    p = tf.nn.softmax(logits + noise, axis=0)
    return tf.reduce_mean(p * noise)


with tf.GradientTape() as tape:
    value = relaxed()
slope = tape.gradient(value, logits)
logits.assign_sub(slope)
