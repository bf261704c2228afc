"""Trains graph convolutions and graph attention on one small graph."""

import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import tensorflow as tf
from spektral.layers import GATConv, GCNConv, GlobalAttentionPool
from spektral.utils import gcn_filter

tf.keras.utils.set_random_seed(0)
rng = np.random.RandomState(0)
edges = rng.rand(10, 10) < 0.3
a = (edges | edges.T).astype("float32")
np.fill_diagonal(a, 0.0)
x, y = rng.randn(10, 4).astype("float32"), rng.randint(0, 2, 10)


class Network(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.first = GCNConv(6, activation="relu")
        self.second = GATConv(2, attn_heads=2, concat_heads=False, activation="softmax")

    def call(self, inputs):
        x, a = inputs
        return self.second([self.first([x, a]), a])


model = Network()
optimizer = tf.keras.optimizers.Adam(0.01)
loss_of = tf.keras.losses.SparseCategoricalCrossentropy()
filtered = tf.constant(gcn_filter(a).astype("float32"))


@tf.function
def step():
    with tf.GradientTape() as tape:
        loss = loss_of(y, model([x, filtered]))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


for _ in range(4):
    print(f"{float(step()):.4f}")
print(np.round(GlobalAttentionPool(3)(x).numpy(), 3).shape)
