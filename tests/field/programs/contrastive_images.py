"""Learns from pairs of views with a temperature."""

import keras
import tensorflow as tf
from keras import layers, optimizers

keras.utils.set_random_seed(37)
encoder = keras.Sequential([
    keras.Input((6,)),
    layers.Dense(8, activation="relu"),
    layers.Dense(4),
])
optimizer = optimizers.Adam(0.01)
optimizer.build(encoder.trainable_variables)


@tf.function
def step(a, b):
    with tf.GradientTape() as tape:
        u = tf.math.l2_normalize(encoder(a), axis=1)
        v = tf.math.l2_normalize(encoder(b), axis=1)
        similarities = tf.matmul(u, v, transpose_b=True) / 0.1
        labels = tf.range(tf.shape(a)[0])
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, similarities)
        loss = tf.reduce_mean(each)
    variables = encoder.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss


x = tf.random.stateless_normal((6, 6), (1, 2))
for i in range(3):
    noise = 0.1 * tf.random.stateless_normal((6, 6), (i, 3))
    print(f"{step(x, x + noise).numpy():.4f}")
