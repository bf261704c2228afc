"""Trains a small language model and decodes with beams in a graph."""

import tensorflow as tf
from keras import Sequential, layers, losses, optimizers

text = "hello world, hello keras. " * 8
letters = sorted(set(text))
ids = tf.constant([letters.index(c) for c in text])
data = tf.data.Dataset.from_tensor_slices(ids).batch(11, drop_remainder=True)
data = data.map(lambda s: (s[:-1], s[1:])).batch(4).cache().prefetch(1)
n = len(letters)
model = Sequential([
    layers.Embedding(n, 8),
    layers.LSTM(12, return_sequences=True),
    layers.Dense(n),
])
model.build((None, None))
for i, w in enumerate(model.trainable_variables):
    w.assign(0.3 * tf.random.stateless_normal(w.shape, (i, 5)))
model.compile(
    optimizer=optimizers.Nadam(0.03),
    loss=losses.SparseCategoricalCrossentropy(from_logits=True),
    jit_compile=False,
)
print(*(f"{v:.4f}" for v in model.fit(data, epochs=4, verbose=0).history["loss"]))


@tf.function(input_signature=[tf.TensorSpec([], tf.int32), tf.TensorSpec([], tf.int32)])
def decode(start, length):
    beams = 3
    sequences = tf.fill([1, 1], start)
    scores = tf.zeros([1])
    for _ in tf.range(length):
        tf.autograph.experimental.set_loop_options(
            shape_invariants=[
                (sequences, tf.TensorShape([None, None])),
                (scores, tf.TensorShape([None])),
            ]
        )
        logp = tf.nn.log_softmax(model(sequences)[:, -1])
        total = tf.reshape(scores[:, None] + logp, [-1])
        scores, best = tf.math.top_k(total, tf.minimum(beams, tf.size(total)))
        row, letter = best // n, best % n
        sequences = tf.concat([tf.gather(sequences, row), letter[:, None]], 1)
    return sequences, scores


sequences, scores = decode(tf.constant(letters.index("h")), tf.constant(6))
print(*(f"{v:.2f}" for v in scores.numpy()))
