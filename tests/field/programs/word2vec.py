"""Learns word vectors with noise-contrastive and sampled losses."""

import tensorflow as tf
from keras import Model, layers, optimizers


class SkipGram(Model):
    def __init__(self, words, size):
        super().__init__()
        self.vectors = layers.Embedding(words, size)
        self.weight = self.add_weight(shape=(words, size), name="weight")
        self.bias = self.add_weight(shape=(words,), initializer="zeros", name="bias")
        self.words = words

    def call(self, x):
        return self.vectors(x)

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            h = self(x, training=True)
            sampled = tf.random.fixed_unigram_candidate_sampler(
                y[:, None], 1, 6, True, self.words, unigrams=[1.0] * self.words, seed=3
            )
            loss = tf.reduce_mean(
                tf.nn.nce_loss(
                    tf.convert_to_tensor(self.weight),
                    tf.convert_to_tensor(self.bias),
                    y[:, None],
                    h,
                    6,
                    self.words,
                    sampled_values=(
                        tf.range(6, dtype=tf.int64),
                        sampled[1],
                        sampled[2],
                    ),
                )
            )
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply(grads, self.trainable_variables)
        return {"loss": loss}


text = "the cat sat on the mat the dog sat on the log a cat and a dog".split()
index = {word: i for i, word in enumerate(sorted(set(text)))}
ids = [index[w] for w in text]
pairs = [
    (ids[i], ids[j])
    for i in range(len(ids))
    for j in range(max(i - 2, 0), min(i + 3, len(ids)))
    if i != j
]
x, y = tf.constant(pairs, tf.int64)[:, 0], tf.constant(pairs, tf.int64)[:, 1]
model = SkipGram(len(index), 6)
model(x[:1])
for i, w in enumerate(model.trainable_variables):
    w.assign(0.4 * tf.random.stateless_normal(w.shape, (i, 1)))
model.compile(optimizer=optimizers.Adagrad(0.3))
history = model.fit(x, y, batch_size=16, epochs=3, shuffle=False, verbose=0)
print(*(f"{v:.4f}" for v in history.history["loss"]))
norms = tf.norm(model.vectors.embeddings, axis=1)
print(f"{float(tf.reduce_mean(norms)):.4f}")
