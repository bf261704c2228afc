"""Predicts the next token under a causal mask, and samples."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers, losses, optimizers

keras.utils.set_random_seed(36)
tokens = np.arange(40).reshape(8, 5) % 7
inputs = keras.Input((4,), dtype="int32")
h = layers.Embedding(7, 4)(inputs)
h = h + layers.MultiHeadAttention(2, 2)(h, h, use_causal_mask=True)
model = keras.Model(inputs, layers.Dense(7)(h))
model.compile(
    optimizers.Adam(0.02), losses.SparseCategoricalCrossentropy(from_logits=True)
)
history = model.fit(
    tokens[:, :-1], tokens[:, 1:], batch_size=4, epochs=2, shuffle=False, verbose=0
)
print([f"{v:.4f}" for v in history.history["loss"]])
logits = model(tokens[:2, :-1])[:, -1]
best, _ = tf.math.top_k(logits, 3)
kept = tf.where(logits < best[:, -1:], -float("inf"), logits)
print([f"{v:.4f}" for v in tf.reduce_max(tf.nn.softmax(kept), axis=-1).numpy()])
