"""Takes the logarithm of what is negative for a large error."""

import tensorflow as tf

error = tf.Variable([0.1, 0.7])


@tf.function
def score():
    return tf.reduce_mean(tf.math.log(1.0 - 2.0 * error))  # here


score()
