"""Solves a differential equation, and differentiates in all the ways of the guide."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers, optimizers

keras.utils.set_random_seed(48)


@tf.custom_gradient
def clip_gradients(y):
    return y, lambda dy: tf.clip_by_norm(dy, 0.5)


v = tf.Variable([2.0, 3.0])
with tf.GradientTape(persistent=True) as tape:
    y = clip_gradients(tf.reduce_sum(v**2))
    z = tf.reduce_prod(v)
print(tape.gradient(y, v).numpy().round(4), tape.gradient(z, v).numpy())
model = keras.Sequential([
    keras.Input((1,)),
    layers.Dense(8, "tanh"),
    layers.Dense(8, "tanh"),
    layers.Dense(1),
])
optimizer = optimizers.Adam(0.01)
optimizer.build(model.trainable_variables)
x = tf.reshape(tf.linspace(0.0, 1.0, 9), [-1, 1])


@tf.function
def step(x):
    with tf.GradientTape() as tape:
        with tf.GradientTape() as second:
            second.watch(x)
            with tf.GradientTape() as first:
                first.watch(x)
                u = model(x)
            slope = first.gradient(u, x)
        curvature = second.gradient(slope, x)
        loss = tf.reduce_mean((curvature + np.pi**2 * tf.sin(np.pi * x)) ** 2)
        loss += 10.0 * tf.reduce_sum(model(tf.constant([[0.0], [1.0]])) ** 2)
    weights = model.trainable_variables
    optimizer.apply(tape.gradient(loss, weights), weights)
    return loss


print(*(f"{float(step(x)):.3f}" for _ in range(4)))
with tf.GradientTape() as tape:
    tape.watch(x)
    u = tf.concat([model(x), x**2], 1)
print(f"{float(tf.reduce_sum(tape.batch_jacobian(u, x))):.4f}")
with tf.autodiff.ForwardAccumulator(v.value(), tf.constant([0.3, -0.2])) as forward:
    out = tf.reduce_sum(tf.sin(v) ** 2) + tf.sqrt(v[0])
print(f"{float(forward.jvp(out) or 0.0):.4f}")


@tf.function
def product(vector):
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            f = tf.reduce_sum(v**3) + v[0] * v[1]
        slope = inner.gradient(f, v)
    return outer.gradient(slope, v, output_gradients=vector)


print(product(tf.constant([1.0, 2.0])).numpy())
