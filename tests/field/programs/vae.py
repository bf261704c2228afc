"""Trains a variational autoencoder with a train_step of its own."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers, metrics, optimizers

keras.utils.set_random_seed(5)
tf.random.set_seed(5)


class Sampling(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.seed_generator = keras.random.SeedGenerator(7)

    def call(self, inputs):
        mean, log_var = inputs
        epsilon = keras.random.normal(tf.shape(mean), seed=self.seed_generator)
        return mean + tf.exp(0.5 * log_var) * epsilon


class VAE(keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden = layers.Dense(8, activation="relu")
        self.mean, self.log_var = layers.Dense(2), layers.Dense(2)
        self.sampling = Sampling()
        self.decoder = layers.Dense(12, activation="sigmoid")
        self.tracker = metrics.Mean(name="loss")

    def train_step(self, x):
        with tf.GradientTape() as tape:
            h = self.hidden(x)
            mean, log_var = self.mean(h), self.log_var(h)
            out = self.decoder(self.sampling([mean, log_var]))
            reconstruction = tf.reduce_sum(keras.losses.binary_crossentropy(x, out))
            kl = -0.5 * (1 + log_var - tf.square(mean) - tf.exp(log_var))
            loss = reconstruction + tf.reduce_mean(tf.reduce_sum(kl, axis=1))
        gradients = tape.gradient(loss, self.trainable_weights)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_weights))
        self.tracker.update_state(loss)
        return {"loss": self.tracker.result()}


x = np.random.rand(16, 12).astype("float32").round()
vae = VAE()
vae.compile(optimizers.Adam())
history = vae.fit(x, batch_size=8, epochs=2, shuffle=False, verbose=0)
print([f"{v:.3f}" for v in history.history["loss"]])
