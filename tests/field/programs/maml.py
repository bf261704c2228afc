"""Adapts a model inside a step and takes the gradient through the adaptation."""

import tensorflow as tf
from keras import optimizers


def forward(weights, x):
    w1, b1, w2, b2 = weights
    return tf.tanh(x @ w1 + b1) @ w2 + b2


def loss_of(weights, x, y):
    return tf.reduce_mean(tf.square(forward(weights, x) - y))


weights = [
    tf.Variable(tf.random.stateless_normal((1, 8), (1, 1))),
    tf.Variable(tf.zeros(8)),
    tf.Variable(0.3 * tf.random.stateless_normal((8, 1), (1, 2))),
    tf.Variable(tf.zeros(1)),
]
optimizer = optimizers.Adam(0.01)
optimizer.build(weights)


def adapted_loss(task):
    phase, seed = task
    x = tf.random.stateless_uniform((10, 1), (seed, 0), -3.0, 3.0)
    y = tf.sin(x + phase)
    with tf.GradientTape() as inner:
        current = [tf.identity(w) for w in weights]
        inner.watch(current)
        loss = loss_of(current, x[:5], y[:5])
    grads = inner.gradient(loss, current)
    fast = [w - 0.1 * g for w, g in zip(current, grads)]
    return loss_of(fast, x[5:], y[5:])


@tf.function
def step(phases, seeds):
    with tf.GradientTape() as tape:
        losses = tf.map_fn(
            adapted_loss, (phases, seeds), fn_output_signature=tf.float32
        )
        loss = tf.reduce_mean(losses)
    grads = tape.gradient(loss, weights)
    optimizer.apply(grads, weights)
    return loss


for i in range(4):
    phases = tf.random.stateless_uniform((4,), (i, 7), 0.0, 3.0)
    print(f"{float(step(phases, tf.range(4 * i, 4 * i + 4))):.4f}")
