"""Calls Python from graphs, prints and asserts in them, and recomputes layers."""

import numpy as np
import tensorflow as tf
from keras import Model, layers, losses, metrics, optimizers


def jitter(x):
    return (
        x + np.sin(np.arange(x.size, dtype="float32")).reshape(x.shape) / 10
    ).astype("float32")


def augment(x, y):
    x2 = tf.numpy_function(jitter, [x], tf.float32)
    x2 = tf.ensure_shape(x2, x.shape)
    tf.debugging.assert_all_finite(x2, "augmented")
    return x2, y


class Net(Model):
    def __init__(self):
        super().__init__()
        self.first = layers.Dense(8, activation="tanh")
        self.last = layers.Dense(2)
        self.seen = metrics.Mean(name="seen")

    def build(self, shape):
        self.first.build(shape)
        self.last.build((None, 8))

    def call(self, x):
        h = self.first(x)
        return self.last(h)

    def compute_loss(
        self, x=None, y=None, y_pred=None, sample_weight=None, training=True
    ):
        each = tf.py_function(lambda a: a * 1.0, [y_pred], tf.float32)
        self.seen.update_state(tf.reduce_mean(tf.stop_gradient(each)))
        tf.debugging.assert_greater(tf.size(y_pred), 0)
        loss = super().compute_loss(x, y, y_pred, sample_weight, training)
        return loss + 1e-3 * tf.add_n([
            tf.nn.l2_loss(v) for v in self.trainable_variables
        ])

    @property
    def metrics(self):
        return [*super().metrics, self.seen]


x = tf.random.stateless_normal((20, 4), (1, 5))
y = tf.cast(x[:, 0] > 0, tf.int32)
data = tf.data.Dataset.from_tensor_slices((x, y)).map(augment).batch(6)
model = Net()
model.build((None, 4))
for i, w in enumerate(model.trainable_variables):
    w.assign(0.4 * tf.random.stateless_normal(w.shape, (i, 1)))
model.compile(
    optimizers.Lion(0.01), losses.SparseCategoricalCrossentropy(from_logits=True)
)
history = model.fit(data, epochs=2, verbose=0)
print(
    *(f"{v:.4f}" for v in history.history["loss"]), f"{history.history['seen'][-1]:.4f}"
)


@tf.function
def recomputed(x, w):
    block = tf.recompute_grad(lambda t: tf.nn.softplus(t @ w))
    with tf.GradientTape() as tape:
        tape.watch(x)
        out = tf.reduce_sum(block(block(x)))
    return tape.gradient(out, x)


print(f"{float(tf.reduce_sum(recomputed(x, 0.2 * tf.ones((4, 4))))):.4f}")
