"""Trains on classes that are numbered from 1."""

import keras
import tensorflow as tf

keras.utils.set_random_seed(0)
model = keras.Sequential([keras.Input([3]), keras.layers.Dense(4)])
optimizer = keras.optimizers.Adam(0.01)
optimizer.build(model.trainable_variables)


@tf.function(jit_compile=True)
def step(x, labels):
    with tf.GradientTape() as tape:
        logits = model(x)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)  # here
        loss = tf.reduce_mean(losses)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    return loss


step(tf.random.stateless_normal([8, 3], [1, 2]), tf.range(8) % 4 + 1)
