"""Moves an image towards the Gram matrix of another."""

import keras
import tensorflow as tf
from keras import layers, optimizers

keras.utils.set_random_seed(31)
features = keras.Sequential([
    keras.Input((8, 8, 3)),
    layers.Conv2D(4, 3, activation="relu"),
])
style = features(tf.random.stateless_uniform((1, 8, 8, 3), (1, 2)))
image = tf.Variable(tf.random.stateless_uniform((1, 8, 8, 3), (3, 4)))
optimizer = optimizers.Adam(0.02)
optimizer.build([image])


def gram(x):
    return tf.einsum("bijc,bijd->bcd", x, x) / 36.0


@tf.function
def step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((gram(features(image)) - gram(style)) ** 2)
        loss += 1e-3 * tf.reduce_sum(tf.image.total_variation(image))
    optimizer.apply_gradients([(tape.gradient(loss, image), image)])
    image.assign(tf.clip_by_value(image, 0.0, 1.0))
    return loss


for _ in range(3):
    print(f"{step().numpy():.5f}")
