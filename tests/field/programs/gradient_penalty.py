"""Trains a WGAN with a gradient penalty, two optimizers and a compile of its own."""

import keras
import numpy as np
import tensorflow as tf
from keras import callbacks, layers, optimizers

keras.utils.set_random_seed(41)
critic = keras.Sequential([
    keras.Input((8, 8, 1)),
    layers.Conv2D(4, 3, strides=2, padding="same"),
    layers.LeakyReLU(0.2),
    layers.Flatten(),
    layers.Dense(1),
])
generator = keras.Sequential([
    keras.Input((4,)),
    layers.Dense(16, use_bias=False),
    layers.BatchNormalization(),
    layers.Reshape((4, 4, 1)),
    layers.UpSampling2D(2),
    layers.Conv2D(1, 3, padding="same", activation="tanh"),
])


class WGAN(keras.Model):
    def __init__(self):
        super().__init__()
        self.critic, self.generator = critic, generator
        self.seed = keras.random.SeedGenerator(7)

    def compile(self, d_optimizer, g_optimizer):
        super().compile()
        self.d_optimizer, self.g_optimizer = d_optimizer, g_optimizer

    def penalty(self, real, fake):
        part = keras.random.uniform((8, 1, 1, 1), seed=self.seed)
        between = real + part * (fake - real)
        with tf.GradientTape() as tape:
            tape.watch(between)
            out = self.critic(between, training=True)
        slope = tape.gradient(out, between)
        norm = tf.sqrt(tf.reduce_sum(tf.square(slope), axis=[1, 2, 3]))
        return tf.reduce_mean((norm - 1.0) ** 2)

    def train_step(self, real):
        for _ in range(2):
            noise = keras.random.normal((8, 4), seed=self.seed)
            with tf.GradientTape() as tape:
                fake = self.generator(noise, training=True)
                d_loss = tf.reduce_mean(self.critic(fake) - self.critic(real))
                d_loss += 10.0 * self.penalty(real, fake)
            weights = self.critic.trainable_variables
            self.d_optimizer.apply(tape.gradient(d_loss, weights), weights)
        noise = keras.random.normal((8, 4), seed=self.seed)
        with tf.GradientTape() as tape:
            g_loss = -tf.reduce_mean(self.critic(self.generator(noise, training=True)))
        weights = self.generator.trainable_variables
        self.g_optimizer.apply(tape.gradient(g_loss, weights), weights)
        return {"d_loss": d_loss, "g_loss": g_loss}


class Sample(callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        print(
            epoch, f"{float(tf.reduce_mean(self.model.generator(tf.ones((1, 4))))):.4f}"
        )


model = WGAN()
model.compile(optimizers.Adam(2e-4, 0.5, 0.9), optimizers.Adam(2e-4, 0.5, 0.9))
images = np.random.rand(16, 8, 8, 1).astype("float32") * 2.0 - 1.0
data = tf.data.Dataset.from_tensor_slices(images).batch(8, drop_remainder=True)
history = model.fit(data, epochs=2, verbose=0, callbacks=[Sample()])
for name, values in sorted(history.history.items()):
    print(name, [f"{value:.3f}" for value in values])
