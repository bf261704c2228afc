"""Whitens features of which two are the same: rounding makes an eigenvalue negative."""

import numpy as np
import tensorflow as tf

x = np.random.default_rng(1).normal(size=(20, 3)).astype("float32")
x[:, 2] = x[:, 0]


@tf.function
def whitened(x):
    x = x - tf.reduce_mean(x, 0)
    covariance = tf.matmul(x, x, transpose_a=True) / 19.0 - 1e-4 * tf.eye(3)
    values, vectors = tf.linalg.eigh(covariance)
    return x @ vectors @ tf.linalg.diag(values**-0.5)  # here


print(whitened(x))
