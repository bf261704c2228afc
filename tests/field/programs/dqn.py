"""Learns the values of actions from stored transitions."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers, losses, optimizers

keras.utils.set_random_seed(27)


def network():
    return keras.Sequential([
        keras.Input((4,)),
        layers.Dense(8, activation="relu"),
        layers.Dense(2),
    ])


model, target = network(), network()
target.set_weights(model.get_weights())
optimizer, huber = optimizers.Adam(0.01, clipnorm=1.0), losses.Huber()
random = np.random.RandomState(0)
for _ in range(3):
    states, following = random.rand(2, 8, 4).astype("float32")
    actions, rewards = random.randint(0, 2, 8), random.rand(8).astype("float32")
    future = target.predict(following, verbose=0)
    wanted = rewards + 0.99 * tf.reduce_max(future, axis=1)
    with tf.GradientTape() as tape:
        chosen = tf.reduce_sum(model(states) * tf.one_hot(actions, 2), axis=1)
        loss = huber(wanted, chosen)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    print(f"{loss.numpy():.4f}")
