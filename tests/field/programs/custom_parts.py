"""Uses a layer, a loss, a metric and a regularizer of its own."""

import keras
import numpy as np
from keras import layers, losses, metrics, optimizers

keras.utils.set_random_seed(14)


class Linear(layers.Layer):
    def __init__(self, units):
        super().__init__()
        self.units = units

    def build(self, shape):
        self.w = self.add_weight(shape=(shape[-1], self.units), initializer="uniform")
        self.b = self.add_weight(shape=(self.units,), initializer="zeros")

    def call(self, inputs):
        self.add_loss(1e-2 * keras.ops.sum(keras.ops.square(inputs)))
        return keras.ops.matmul(inputs, self.w) + self.b


class Huberlike(losses.Loss):
    def call(self, y_true, y_pred):
        error = y_true - y_pred
        return keras.ops.mean(
            keras.ops.sqrt(1.0 + keras.ops.square(error)) - 1.0, axis=-1
        )


class Largest(metrics.Metric):
    def __init__(self):
        super().__init__(name="largest")
        self.value = self.add_variable((), "zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        error = keras.ops.max(keras.ops.abs(y_true - y_pred))
        self.value.assign(keras.ops.maximum(self.value, error))

    def result(self):
        return self.value


x = np.random.rand(12, 4).astype("float32")
y = x[:, :1] - x[:, 1:2]
model = keras.Sequential([keras.Input((4,)), Linear(4), layers.ReLU(), Linear(1)])
model.compile(optimizers.Adam(0.01), Huberlike(), metrics=[Largest()])
history = model.fit(x, y, batch_size=6, epochs=2, shuffle=False, verbose=0)
for name, values in history.history.items():
    print(name, [f"{value:.4f}" for value in values])
