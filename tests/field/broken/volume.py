"""Takes the logarithm of a determinant that float32 cannot hold."""

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(0)
factors = tf.Variable(1e-3 * np.random.normal(size=(12, 40)).astype("float32"))


@tf.function
def step():
    with tf.GradientTape() as tape:
        covariance = tf.matmul(factors, factors, transpose_b=True) / 40.0
        loss = -tf.math.log(tf.linalg.det(covariance))  # here
    factors.assign_sub(1e-9 * tape.gradient(loss, factors))
    return loss


for _ in range(3):
    step()
