"""Trains a multilayer perceptron made of tf.Module."""

import tensorflow as tf


class Dense(tf.Module):
    def __init__(self, sizes, activation=None):
        super().__init__()
        start = tf.random.stateless_uniform(sizes, (1, sizes[0]), -0.5, 0.5)
        self.w, self.b = tf.Variable(start), tf.Variable(tf.zeros(sizes[1]))
        self.activation = activation or tf.identity

    def __call__(self, x):
        return self.activation(x @ self.w + self.b)


class MLP(tf.Module):
    def __init__(self):
        super().__init__()
        self.layers = [Dense((4, 8), tf.nn.relu), Dense((8, 3))]

    @tf.function
    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


x = tf.random.stateless_normal((12, 4), (1, 1))
labels = tf.range(12) % 3
mlp = MLP()
for _ in range(3):
    with tf.GradientTape() as tape:
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, mlp(x))
        loss = tf.reduce_mean(each)
    for v, g in zip(
        mlp.trainable_variables, tape.gradient(loss, mlp.trainable_variables)
    ):
        v.assign_sub(0.1 * g)
    print(f"{loss.numpy():.4f}")
