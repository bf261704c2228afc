"""Counts the fraction of no samples."""

import tensorflow as tf


@tf.function
def accuracy(right):
    return tf.reduce_sum(right) / tf.cast(tf.size(right), tf.float32)  # here


accuracy(tf.zeros([0]))
