"""Takes the density of a Gaussian whose covariance begins at 0."""

import tensorflow as tf


@tf.function
def negative_log_density(x, factor):
    covariance = tf.matmul(factor, factor, transpose_b=True)
    lower = tf.linalg.cholesky(covariance)  # here
    z = tf.linalg.triangular_solve(lower, x)
    return tf.reduce_sum(z * z) / 2.0 + tf.reduce_sum(
        tf.math.log(tf.linalg.diag_part(lower))
    )


negative_log_density(tf.ones((3, 1)), tf.zeros((3, 3)))
