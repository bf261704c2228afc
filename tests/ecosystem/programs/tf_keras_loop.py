"""Trains models of tf_keras in a loop and in a train_step of one's own."""

import numpy as np
import tensorflow as tf
import tf_keras

tf_keras.utils.set_random_seed(0)
x = np.random.RandomState(0).rand(32, 8, 8, 1).astype("float32")
y = (x.mean(axis=(1, 2, 3)) > 0.5).astype("float32")[:, None]


def network():
    return tf_keras.Sequential([
        tf_keras.Input((8, 8, 1)),
        tf_keras.layers.Conv2D(4, 3, activation="relu"),
        tf_keras.layers.GlobalAveragePooling2D(),
        tf_keras.layers.Dense(1),
    ])


model, optimizer = network(), tf_keras.optimizers.SGD(0.1, clipnorm=1.0)
loss_of = tf_keras.losses.BinaryCrossentropy(from_logits=True)
mean = tf_keras.metrics.Mean()


@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    mean.update_state(loss)
    return loss


data = tf.data.Dataset.from_tensor_slices((x, y)).batch(8)
for batch in data:
    print(f"{float(step(*batch)):.4f}")
print(f"{float(mean.result()):.4f}")


class Penalised(tf_keras.Model):
    def __init__(self):
        super().__init__()
        self.inner = network()

    def call(self, x, training=None):
        return self.inner(x, training=training)

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as outer:
            with tf.GradientTape() as tape:
                tape.watch(x)
                out = self(x, training=True)
            slope = tape.gradient(out, x)
            norm = tf.sqrt(tf.reduce_sum(slope**2, axis=[1, 2, 3]) + 1e-8)
            loss = loss_of(y, out) + 0.1 * tf.reduce_mean((norm - 1.0) ** 2)
        gradients = outer.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {"loss": loss}


model = Penalised()
model.compile(tf_keras.optimizers.Adam(0.01))
history = model.fit(data, epochs=2, verbose=0)
print([f"{v:.4f}" for v in history.history["loss"]])
