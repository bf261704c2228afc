"""Learns to align characters, with the loss of connectionist classification."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers, optimizers

keras.utils.set_random_seed(23)
strips = np.random.rand(8, 12, 4).astype("float32")
labels = tf.constant(np.random.randint(1, 5, (8, 3)))
model = keras.Sequential([
    keras.Input((12, 4)),
    layers.Conv1D(8, 3, padding="same", activation="relu"),
    layers.Bidirectional(layers.LSTM(4, return_sequences=True)),
    layers.Dense(5),
])
optimizer = optimizers.Adam(0.01)
optimizer.build(model.trainable_variables)


@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        logits = model(x, training=True)
        lengths = tf.fill([8], 12)
        losses = tf.nn.ctc_loss(y, logits, tf.fill([8], 3), lengths, False)
        loss = tf.reduce_mean(losses)
    variables = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss


print([f"{float(step(strips, labels)):.4f}" for _ in range(4)])
