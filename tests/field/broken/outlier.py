"""Fits a mixture to numbers of which one is far from both of its parts."""

import tensorflow as tf

numbers = tf.constant([0.1, 0.3, 40.0])
means = tf.Variable([0.0, 1.0])
for _ in range(3):
    with tf.GradientTape() as tape:
        log_p = -0.5 * (numbers[:, None] - means[None]) ** 2
        likelihood = tf.math.log(tf.reduce_sum(tf.exp(log_p), axis=1))  # here
        loss = -tf.reduce_mean(likelihood)
    means.assign_sub(0.1 * tape.gradient(loss, means))
