"""Prints a cross-entropy that is computed eagerly, from probabilities."""

import tensorflow as tf

labels = tf.constant([0.0, 0.0, 1.0])
scores = tf.constant([0.25, 1.0, 0.75])
other = (1.0 - labels) * tf.math.log(1.0 - scores)  # here
print(float(-tf.reduce_mean(labels * tf.math.log(scores) + other)))
