"""Normalizes rows without an epsilon."""

import tensorflow as tf


@tf.function
def normalize(x):
    return x / tf.norm(x, axis=1, keepdims=True)  # here


normalize(tf.constant([[3.0, 4.0], [0.0, 0.0]]))
