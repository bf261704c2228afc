"""Compares with a vector of zeros."""

import tensorflow as tf


@tf.function
def cosine(a, b):
    return tf.reduce_sum(a * b) / (tf.norm(a) * tf.norm(b))  # here


cosine(tf.zeros([3]), tf.ones([3]))
