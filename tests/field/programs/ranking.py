"""Ranks documents with a listwise loss and nDCG, lists padded with -inf and masked."""

import keras
import tensorflow as tf
from keras import layers, optimizers

keras.utils.set_random_seed(0)


class ListLoss(keras.losses.Loss):
    def call(self, relevance, scores):
        known = relevance >= 0
        scores = tf.where(known, scores, -1e9)
        gain = tf.where(known, relevance, 0.0)
        total = tf.reduce_sum(gain, -1, keepdims=True)
        target = tf.math.divide_no_nan(gain, total)
        return -tf.reduce_sum(target * tf.nn.log_softmax(scores), -1)


def ndcg(relevance, scores):
    known = relevance >= 0
    scores = tf.where(known, scores, -float("inf"))
    gain = tf.where(known, 2.0**relevance - 1.0, 0.0)
    discount = 1.0 / (tf.math.log(tf.range(2.0, 7.0)) / tf.math.log(2.0))
    order = tf.argsort(scores, direction="DESCENDING")
    got = tf.reduce_sum(tf.gather(gain, order, batch_dims=1) * discount, -1)
    ideal = tf.reduce_sum(tf.sort(gain, direction="DESCENDING") * discount, -1)
    return tf.math.divide_no_nan(got, ideal)


x = tf.random.stateless_normal([24, 5, 6], (1, 1))
relevance = tf.math.round(2.0 * tf.sigmoid(x[..., 0] * 2.0))
lengths = tf.constant([5, 3, 1, 0] * 6)
relevance = tf.where(tf.sequence_mask(lengths, 5), relevance, -1.0)
inputs = keras.Input((5, 6))
hidden = layers.Dense(16, activation="relu")(inputs)
model = keras.Model(inputs, layers.Reshape((5,))(layers.Dense(1)(hidden)))
model.compile(optimizers.Adam(1e-2), ListLoss(), metrics=[ndcg])
history = model.fit(x, relevance, epochs=4, batch_size=8, verbose=0, shuffle=False)
for name in ("loss", "ndcg"):
    print(name, " ".join(f"{each:.4f}" for each in history.history[name]))
