"""Prints by how much examples exceed the mean cross-entropy, computed eagerly."""

import tensorflow as tf

labels = tf.constant([0.0, 0.0, 1.0])
scores = tf.constant([0.25, 1.0, 0.75])
other = (1.0 - labels) * tf.math.log(1.0 - scores)  # here
losses = -(labels * tf.math.log(scores) + other)
print((losses - tf.reduce_mean(losses)).numpy())
