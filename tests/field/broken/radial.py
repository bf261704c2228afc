"""Interpolates by radial functions, far from all of their centers."""

import tensorflow as tf

places = tf.constant([[0.1, 0.5], [40.0, 40.0], [0.9, 0.2]])
centers = tf.constant([[0.0, 0.0], [0.5, 0.5], [1.0, 1.0]])
heights = tf.constant([1.0, 0.0, 0.5])
weights = tf.Variable(tf.zeros(3))


def features(x):
    distance = tf.reduce_sum((x[:, None, :] - centers[None]) ** 2, axis=-1)
    phi = tf.exp(-distance)
    return phi / tf.reduce_sum(phi, axis=1, keepdims=True)  # here


for _ in range(3):
    with tf.GradientTape() as tape:
        height = tf.linalg.matvec(features(places), weights)
        loss = tf.reduce_mean((height - heights) ** 2)
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
