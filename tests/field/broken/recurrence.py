"""Trains a recurrence by hand, whose state grows from step to step."""

import tensorflow as tf


class Recurrence(tf.Module):
    def __init__(self, units):
        super().__init__()
        normal = tf.random.stateless_normal
        self.w = tf.Variable(3.0 * normal([units, units], [1, 2]))
        self.u = tf.Variable(normal([1, units], [3, 4]))
        self.out = tf.Variable(normal([units, 1], [5, 6]))

    def __call__(self, series):
        h = tf.zeros([tf.shape(series)[1], self.w.shape[0]])
        for x in series:
            h = tf.nn.relu(x @ self.u + h @ self.w)  # here
        return h @ self.out


model = Recurrence(16)


@tf.function
def step(series, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(series) - y) ** 2)
    variables = model.trainable_variables
    for variable, gradient in zip(variables, tape.gradient(loss, variables)):
        variable.assign_sub(1e-3 * gradient)
    return loss


for _ in range(2):
    step(tf.random.stateless_normal([60, 4, 1], [7, 8]), tf.ones([4, 1]))
