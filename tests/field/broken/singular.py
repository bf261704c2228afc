"""Factors the covariance of two equal columns."""

import tensorflow as tf


@tf.function
def factor(k):
    return tf.reduce_sum(tf.linalg.cholesky(k))  # here


factor(tf.constant([[1.0, 1.0], [1.0, 1.0]]))
