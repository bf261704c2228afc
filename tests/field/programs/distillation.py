"""Trains a student on the softened outputs of a teacher."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers, losses, optimizers

keras.utils.set_random_seed(41)
x = np.random.rand(12, 4).astype("float32")
y = np.arange(12) % 3
teacher = keras.Sequential([
    keras.Input((4,)),
    layers.Dense(8, activation="relu"),
    layers.Dense(3),
])
student = keras.Sequential([keras.Input((4,)), layers.Dense(3)])
hard = losses.SparseCategoricalCrossentropy(from_logits=True)
soft = losses.KLDivergence()
optimizer = optimizers.Adam(0.01)
for _ in range(3):
    with tf.GradientTape() as tape:
        logits = student(x, training=True)
        distance = soft(tf.nn.softmax(teacher(x) / 4.0), tf.nn.softmax(logits / 4.0))
        loss = 0.1 * hard(y, logits) + 0.9 * distance * 16.0
    variables = student.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    print(f"{loss.numpy():.4f}")
