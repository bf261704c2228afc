"""Predicts tokens with layers of keras.ops alone, compiled with XLA."""

import keras
import numpy as np
from keras import layers, losses, ops, optimizers

keras.utils.set_random_seed(44)


class Scale(layers.Layer):
    def build(self, shape):
        self.scale = self.add_weight(shape=(shape[-1],), initializer="ones")

    def call(self, x):
        square = ops.mean(ops.square(x), -1, keepdims=True)
        return x * ops.rsqrt(square + 1e-6) * self.scale


class Gated(layers.Layer):
    def build(self, shape):
        self.up = self.add_weight(shape=(shape[-1], 24), initializer="he_normal")
        self.down = self.add_weight(shape=(12, shape[-1]))

    def call(self, x):
        a, b = ops.split(x @ self.up, 2, -1)
        return (ops.silu(a) * b) @ self.down


class Rotary(layers.Layer):
    def build(self, shape):
        self.size = shape[-1] // 2
        self.qkv = layers.Dense(3 * shape[-1])
        self.qkv.build(shape)

    def rotate(self, x):
        steps = ops.arange(ops.shape(x)[1], dtype=x.dtype)
        parts = ops.arange(0, self.size, 2, dtype=x.dtype) / self.size
        angle = ops.outer(steps, ops.power(ops.cast(1e4, x.dtype), -parts))[:, None]
        a, b = ops.split(x, 2, -1)
        sin, cos = ops.sin(angle), ops.cos(angle)
        return ops.concatenate([a * cos - b * sin, a * sin + b * cos], -1)

    def call(self, x):
        n, t, width = ops.shape(x)
        heads = ops.split(ops.reshape(self.qkv(x), (n, t, 6, self.size)), 3, 2)
        q, k, v = self.rotate(heads[0]), self.rotate(heads[1]), heads[2]
        scores = ops.einsum("bqnh,bknh->bnqk", q, k) / ops.sqrt(float(self.size))
        scores = ops.where(ops.tril(ops.ones((t, t), "bool")), scores, -1e9)
        out = ops.einsum("bnqk,bknh->bqnh", ops.softmax(scores), v)
        return ops.reshape(out, (n, t, width))


def perplexity(y, p):
    each = losses.sparse_categorical_crossentropy(y, p, from_logits=True)
    return ops.exp(ops.mean(each))


inputs = keras.Input((8,), batch_size=4, dtype="int32")
h = layers.Embedding(11, 8)(inputs)
h = h + Rotary()(Scale()(h))
h = h + Gated()(Scale()(h))
model = keras.Model(inputs, layers.Dense(11)(Scale()(h)))
tokens = np.random.randint(1, 11, (12, 9))
model.compile(
    optimizers.Lion(1e-3, weight_decay=0.01, global_clipnorm=1.0),
    losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0),
    weighted_metrics=[perplexity],
    jit_compile=True,
)
x, y = tokens[:, :-1], tokens[:, 1:]
history = model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0)
for name, values in sorted(history.history.items()):
    print(name, [f"{value:.4f}" for value in values])
