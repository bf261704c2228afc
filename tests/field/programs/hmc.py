"""Samples a distribution by Hamiltonian Monte Carlo."""

import tensorflow as tf


def log_density(x):
    return -0.5 * tf.reduce_sum(x**2) - tf.math.log1p(tf.reduce_sum(x**2))


def gradient(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = log_density(x)
    return tape.gradient(value, x)


@tf.function
def sample(x, seed):
    p = tf.random.stateless_normal([2], seed)
    start = log_density(x) - 0.5 * tf.reduce_sum(p**2)
    new = x
    for _ in tf.range(5):
        p += 0.1 * gradient(new)
        new += 0.2 * p
        p += 0.1 * gradient(new)
    end = log_density(new) - 0.5 * tf.reduce_sum(p**2)
    accept = tf.math.log(tf.random.stateless_uniform([], seed + 1, 1e-6)) < end - start
    return tf.where(accept, new, x)


x = tf.constant([1.0, -1.0])
for i in range(4):
    x = sample(x, tf.constant([i, 5]))
    print(*(f"{v:.4f}" for v in x.numpy()))
