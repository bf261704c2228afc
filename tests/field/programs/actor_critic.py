"""Plays an episode and follows the policy's gradient."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers, losses, optimizers

keras.utils.set_random_seed(28)
inputs = keras.Input((4,))
common = layers.Dense(8, activation="relu")(inputs)
actor = layers.Dense(2, activation="softmax")(common)
model = keras.Model(inputs, [actor, layers.Dense(1)(common)])
optimizer, huber = optimizers.Adam(0.01), losses.Huber()
random = np.random.RandomState(0)
for _ in range(2):
    rewards, logs, values = [], [], []
    with tf.GradientTape() as tape:
        for _ in range(5):
            probabilities, value = model(tf.constant(random.rand(1, 4), tf.float32))
            action = random.randint(2)
            logs.append(tf.math.log(probabilities[0, action]))
            values.append(value[0, 0])
            rewards.append(float(action))
        returns = np.cumsum(rewards[::-1])[::-1]
        returns = (returns - returns.mean()) / (returns.std() + 1e-7)
        loss = 0.0
        for log, value, wanted in zip(logs, values, returns):
            loss += -log * (wanted - value) + huber([wanted], [value])
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    print(f"{float(loss):.4f}")
