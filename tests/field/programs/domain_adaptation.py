"""Reverses a gradient for domains, with several outputs, weights and own metrics."""

import keras
import numpy as np
import tensorflow as tf
from keras import (
    Input,
    Model,
    callbacks,
    layers,
    losses,
    metrics,
    optimizers,
    regularizers,
)


@tf.custom_gradient
def reverse(x):
    return tf.identity(x), lambda g: -0.5 * g


class Reversal(layers.Layer):
    def call(self, x):
        return reverse(x)


class Ratio(metrics.Metric):
    def __init__(self, name="ratio"):
        super().__init__(name=name)
        self.hits = self.add_weight(name="hits", initializer="zeros")
        self.count = self.add_weight(name="count", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        right = tf.cast(
            tf.reshape(y_pred > 0.5, [-1])
            == tf.reshape(tf.cast(y_true, tf.bool), [-1]),
            tf.float32,
        )
        self.hits.assign_add(tf.reduce_sum(right))
        self.count.assign_add(tf.cast(tf.size(right), tf.float32))

    def result(self):
        return tf.math.divide_no_nan(
            tf.convert_to_tensor(self.hits), tf.convert_to_tensor(self.count)
        )

    def reset_state(self):
        self.hits.assign(0.0)
        self.count.assign(0.0)


class Pairs(keras.utils.PyDataset):
    def __init__(self):
        super().__init__(workers=1)
        rng = np.random.default_rng(1)
        self.x = rng.normal(size=(24, 5)).astype("float32")
        self.label = (self.x[:, :1] > 0).astype("float32")
        self.domain = (np.arange(24) % 2).astype("float32")[:, None]

    def __len__(self):
        return 3

    def __getitem__(self, i):
        rows = slice(8 * i, 8 * i + 8)
        weight = {"label": 1.0 - self.domain[rows, 0], "domain": np.ones(8, "float32")}
        return (
            self.x[rows],
            {"label": self.label[rows], "domain": self.domain[rows]},
            weight,
        )


inputs = Input((5,))
h = layers.Dense(8, activation="elu", kernel_regularizer=regularizers.L2(1e-3))(inputs)
label = layers.Dense(1, activation="sigmoid", name="label")(h)
domain = layers.Dense(1, activation="sigmoid", name="domain")(Reversal()(h))
model = Model(inputs, {"label": label, "domain": domain})
for i, w in enumerate(model.trainable_variables):
    w.assign(0.4 * tf.random.stateless_normal(w.shape, (i, 6)))
model.compile(
    optimizer=optimizers.Adadelta(1.0, ema_momentum=0.9, use_ema=True),
    loss={
        "label": losses.BinaryCrossentropy(),
        "domain": losses.BinaryFocalCrossentropy(),
    },
    loss_weights={"label": 1.0, "domain": 0.3},
    metrics={"label": [Ratio()]},
    weighted_metrics={"domain": [metrics.BinaryAccuracy()]},
)
history = model.fit(
    Pairs(),
    epochs=3,
    shuffle=False,
    verbose=0,
    callbacks=[callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.8)],
)
for name in sorted(history.history):
    print(name, *(f"{v:.4f}" for v in history.history[name]))
