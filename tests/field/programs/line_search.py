"""Minimises with conjugate gradients and a line search on flat parameters."""

import tensorflow as tf
from keras import Sequential, layers, losses

model = Sequential([layers.Dense(6, activation="softplus"), layers.Dense(1)])
model.build((None, 2))
for i, w in enumerate(model.trainable_variables):
    w.assign(0.5 * tf.random.stateless_normal(w.shape, (i, 8)))
shapes = [w.shape for w in model.trainable_variables]
sizes = [int(tf.reduce_prod(s)) for s in shapes]
x = tf.random.stateless_normal((20, 2), (3, 3))
y = tf.reduce_sum(x**2, 1, keepdims=True)
loss_fn = losses.LogCosh()


def assign(flat):
    for w, part, shape in zip(model.trainable_variables, tf.split(flat, sizes), shapes):
        w.assign(tf.reshape(part, shape))


@tf.function
def value_and_gradient(flat):
    assign(flat)
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x, training=True))
    grads = tape.gradient(loss, model.trainable_variables)
    return loss, tf.concat([tf.reshape(g, [-1]) for g in grads], 0)


@tf.function
def minimise(flat, steps):
    value, grad = value_and_gradient(flat)
    direction = -grad
    for _ in tf.range(steps):
        rate, slope = tf.constant(1.0), tf.tensordot(grad, direction, 1)
        new, new_grad = value_and_gradient(flat + rate * direction)
        while new > value + 1e-4 * rate * slope and rate > 1e-6:
            rate = rate * 0.5
            new, new_grad = value_and_gradient(flat + rate * direction)
        flat = flat + rate * direction
        beta = tf.maximum(
            tf.tensordot(new_grad, new_grad - grad, 1) / tf.tensordot(grad, grad, 1),
            0.0,
        )
        direction = -new_grad + beta * direction
        value, grad = new, new_grad
    return flat, value


flat = tf.concat([tf.reshape(w, [-1]) for w in model.trainable_variables], 0)
for _ in range(3):
    flat, value = minimise(flat, tf.constant(4))
    print(f"{float(value):.3f}")
