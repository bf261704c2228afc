"""Takes the angle of parallel vectors."""

import tensorflow as tf


@tf.function
def angle(a, b):
    return tf.acos(tf.reduce_sum(a * b) * 1.000001)  # here


angle(tf.constant([0.6, 0.8]), tf.constant([0.6, 0.8]))
