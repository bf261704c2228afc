"""Standardizes a column that is constant."""

import tensorflow as tf


@tf.function
def standardize(x):
    mean, variance = tf.nn.moments(x, axes=[0])
    return (x - mean) / tf.sqrt(variance)  # here


standardize(tf.constant([[1.0, 5.0], [2.0, 5.0]]))
