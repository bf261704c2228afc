"""Matches two clouds of points by entropic optimal transport in log space."""

import tensorflow as tf
from keras import optimizers

points = tf.Variable(tf.random.stateless_normal((12, 2), (0, 0)))
targets = tf.random.stateless_normal((10, 2), (0, 1)) + 2.0
log_a = tf.fill([12], -tf.math.log(12.0))
log_b = tf.fill([10], -tf.math.log(10.0))
optimizer = optimizers.Adam(0.05)


@tf.function
def step():
    with tf.GradientTape() as tape:
        cost = tf.reduce_sum((points[:, None] - targets[None]) ** 2, -1)
        kernel = -cost / 0.5
        f, g = tf.zeros([12]), tf.zeros([10])
        for _ in tf.range(30):
            f = log_a - tf.reduce_logsumexp(kernel + g[None], axis=1)
            g = log_b - tf.reduce_logsumexp(kernel + f[:, None], axis=0)
        plan = tf.exp(f[:, None] + kernel + g[None])
        loss = tf.reduce_sum(plan * cost)
    optimizer.apply_gradients([(tape.gradient(loss, points), points)])
    return loss


losses = [float(step()) for _ in range(20)]
print(f"{losses[0]:.4f} {losses[-1]:.4f} {losses[-1] < losses[0]}")
