"""Overrides train_step and test_step."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers, losses, metrics, optimizers


class Custom(keras.Model):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(y=y, y_pred=self(x, training=True))
        weights = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        self.metrics[1].update_state(y, self(x))
        return {"loss": loss, "mae": self.metrics[1].result()}

    def test_step(self, data):
        x, y = data
        return {"loss": self.compute_loss(y=y, y_pred=self(x, training=False))}


keras.utils.set_random_seed(13)
x = np.random.rand(12, 4).astype("float32")
y = x.sum(1, keepdims=True)
inputs = keras.Input((4,))
model = Custom(inputs, layers.Dense(1)(inputs))
model.compile(
    optimizers.SGD(0.05),
    losses.MeanSquaredError(),
    metrics=[metrics.MeanAbsoluteError()],
)
history = model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0)
print([f"{v:.4f}" for v in history.history["loss"]])
print(f"{model.evaluate(x, y, verbose=0, return_dict=True)['loss']:.4f}")
