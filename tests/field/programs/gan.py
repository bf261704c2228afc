"""Trains a generator against a discriminator."""

import keras
import tensorflow as tf
from keras import layers, losses, optimizers

keras.utils.set_random_seed(6)
generator = keras.Sequential([
    keras.Input((3,)),
    layers.Dense(6),
    layers.LeakyReLU(0.2),
    layers.BatchNormalization(),
    layers.Dense(4, activation="tanh"),
])
discriminator = keras.Sequential([
    keras.Input((4,)),
    layers.Dense(6),
    layers.LeakyReLU(0.2),
    layers.Dense(1),
])
cross_entropy = losses.BinaryCrossentropy(from_logits=True)
g_optimizer, d_optimizer = optimizers.Adam(1e-3), optimizers.Adam(1e-3)


@tf.function
def step(images, noise):
    with tf.GradientTape() as g_tape, tf.GradientTape() as d_tape:
        real = discriminator(images, training=True)
        fake = discriminator(generator(noise, training=True), training=True)
        g_loss = cross_entropy(tf.ones_like(fake), fake)
        d_loss = cross_entropy(tf.ones_like(real), real)
        d_loss += cross_entropy(tf.zeros_like(fake), fake)
    g_variables = generator.trainable_variables
    d_variables = discriminator.trainable_variables
    g_optimizer.apply_gradients(zip(g_tape.gradient(g_loss, g_variables), g_variables))
    d_optimizer.apply_gradients(zip(d_tape.gradient(d_loss, d_variables), d_variables))
    return g_loss, d_loss


g_optimizer.build(generator.trainable_variables)
d_optimizer.build(discriminator.trainable_variables)
for i in range(3):
    noise = tf.random.stateless_normal((8, 3), (i, 1))
    images = tf.random.stateless_uniform((8, 4), (i, 2), -1.0)
    print(*(f"{loss.numpy():.4f}" for loss in step(images, noise)))
