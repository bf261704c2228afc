"""Calls a model from a pool of threads, and trains from a queue in two of them."""

import concurrent.futures
import queue
import threading

import keras
import numpy as np
import tensorflow as tf
from keras import layers, models, optimizers

keras.utils.set_random_seed(3)
stack = [layers.Dense(8, activation="relu"), layers.Dense(2)]
model = models.Sequential([keras.Input((4,)), *stack])
model.compile(optimizers.Adam(0.01), "mse")
x = np.random.randn(32, 4).astype("float32")
y = np.random.randn(32, 2).astype("float32")
model.fit(x, y, verbose=0)


@tf.function
def scored(batch):
    return tf.reduce_sum(tf.nn.softmax(model(batch)), axis=0)


with concurrent.futures.ThreadPoolExecutor(3) as pool:
    parts = list(pool.map(scored, np.split(x, 4)))
print([f"{v:.4f}" for v in tf.add_n(parts).numpy()])

batches = queue.Queue(2)
losses = []
w = tf.Variable(tf.zeros((4, 2)))
lock = threading.Lock()


def produce():
    for rows in np.split(np.arange(32), 4):
        batches.put((x[rows], y[rows]))
    for _ in range(2):
        batches.put(None)


def train():
    while (batch := batches.get()) is not None:
        with lock:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((batch[0] @ w - batch[1]) ** 2)
            w.assign_sub(0.1 * tape.gradient(loss, w))
        losses.append(float(loss))


workers = [threading.Thread(target=each) for each in (produce, train, train)]
for each in workers:
    each.start()
for each in workers:
    each.join()
print(len(losses), np.isfinite(losses).all())
data = tf.data.Dataset.range(6).interleave(
    lambda i: tf.data.Dataset.from_tensors(tf.cast(i, tf.float32)).map(tf.sqrt),
    cycle_length=3,
    num_parallel_calls=2,
)
print(f"{sum(float(v) for v in data):.4f}")
