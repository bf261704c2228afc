"""Fills gaps in data, ignores unknown labels, and works with infinities."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers, optimizers

keras.utils.set_random_seed(61)
table = np.random.randn(20, 4).astype("float32")
table[3, 2] = table[5, 0] = np.nan


def imputed(x):
    gaps = tf.math.is_nan(x)
    counts = tf.reduce_sum(tf.cast(~gaps, tf.float32), 0)
    means = tf.reduce_sum(tf.where(gaps, 0.0, x), 0) / counts
    return tf.concat([tf.where(gaps, means, x), tf.cast(gaps, tf.float32)], 1)


def masked_crossentropy(y, z):
    known = y >= 0
    each = tf.nn.sigmoid_cross_entropy_with_logits(tf.where(known, y, 0.0), z)
    total = tf.reduce_sum(tf.where(known, each, 0.0))
    return total / tf.reduce_sum(tf.cast(known, tf.float32))


x = imputed(tf.constant(table))
labels = (x.numpy()[:, :1] > 0).astype("float32")
labels[::4] = -1.0
stack = [layers.Dense(6, activation="relu"), layers.Dense(1)]
model = keras.Sequential([keras.Input((8,)), *stack])
model.compile(optimizers.Adam(1e-2), masked_crossentropy)
history = model.fit(x, labels, epochs=3, batch_size=10, shuffle=False, verbose=0)
print([f"{v:.4f}" for v in history.history["loss"]])


@tf.function
def best_path(emissions, allowed):
    transitions = tf.where(allowed, 0.0, -np.inf)
    score = tf.where(tf.range(3) == 0, emissions[0], -np.inf)
    for t in tf.range(1, tf.shape(emissions)[0]):
        score = tf.reduce_max(score[:, None] + transitions, 0) + emissions[t]
    return tf.reduce_max(score)


@tf.function
def attended(q):
    length = tf.shape(q)[1]
    past = tf.linalg.band_part(tf.ones((length, length), tf.bool), -1, 0)
    scores = tf.where(past, tf.matmul(q, q, transpose_b=True), -np.inf)
    return tf.reduce_sum(tf.nn.softmax(scores) @ q)


@tf.function
def streamed_logsumexp(v):
    largest, total = tf.constant(-np.inf), tf.constant(0.0)
    for each in v:
        new = tf.maximum(largest, each)
        total = total * tf.exp(largest - new) + tf.exp(each - new)
        largest = new
    return largest + tf.math.log(total)


allowed = tf.constant([[True, True, False], [True, True, True], [False, False, True]])
print(f"{best_path(tf.nn.log_softmax(x[:, :3]), allowed):.4f}")
q = tf.Variable(np.random.randn(2, 5, 3).astype("float32"))
with tf.GradientTape() as tape:
    value = attended(q)
print(f"{value:.4f} {tf.norm(tape.gradient(value, q)):.4f}")
print(f"{streamed_logsumexp(x[0, :4]):.4f}")
running = tf.Variable(tf.fill([4], -np.inf))
for row in x[:5, :4]:
    running.assign(tf.maximum(running, row))
print([f"{v:.4f}" for v in running.numpy()])
