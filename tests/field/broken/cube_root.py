"""Takes the cube root of negative numbers by a power."""

import tensorflow as tf

w = tf.Variable([2.0, -0.5])
x = tf.constant([[1.0, 2.0], [1.0, 8.0]])


@tf.function
def step():
    with tf.GradientTape() as tape:
        volume = tf.linalg.matvec(x, w)
        loss = tf.reduce_mean((volume ** (1 / 3) - 1.0) ** 2)  # here
    w.assign_sub(1e-3 * tape.gradient(loss, w))
    return loss


step()
