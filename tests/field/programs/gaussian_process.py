"""Fits the length scale of a Gaussian process by its likelihood."""

import numpy as np
import tensorflow as tf

x = tf.constant(np.linspace(0, 3, 8)[:, None])
y = tf.sin(x)
scale, noise = tf.Variable(0.1, dtype=tf.float64), tf.Variable(-1.0, dtype=tf.float64)


@tf.function
def negative_log_likelihood():
    squares = tf.square(x - tf.transpose(x))
    kernel = tf.exp(-squares / (2 * tf.exp(2 * scale)))
    kernel += tf.exp(noise) * tf.eye(8, dtype=tf.float64)
    factor = tf.linalg.cholesky(kernel)
    solved = tf.linalg.triangular_solve(factor, y)
    half_log_det = tf.reduce_sum(tf.math.log(tf.linalg.diag_part(factor)))
    return 0.5 * tf.reduce_sum(solved**2) + half_log_det


for _ in range(3):
    with tf.GradientTape() as tape:
        loss = negative_log_likelihood()
    for variable, gradient in zip([scale, noise], tape.gradient(loss, [scale, noise])):
        variable.assign_sub(0.05 * gradient)
    print(f"{loss.numpy():.4f} {scale.numpy():.4f} {noise.numpy():.4f}")
