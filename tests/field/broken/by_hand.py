"""Fits a line by gradient descent by hand, on numbers that nobody has scaled."""

import tensorflow as tf

x = tf.random.stateless_uniform((200, 2), (0, 1), 0.0, 100.0)
y = x @ tf.constant([[2.0], [-3.4]]) + 4.2
w, b = tf.Variable(tf.zeros((2, 1))), tf.Variable(0.0)
rate = 0.03


def squared_loss(predicted, y):
    return (predicted - y) ** 2 / 2  # here


for _ in range(20):
    for i in range(0, 200, 20):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(squared_loss(x[i : i + 20] @ w + b, y[i : i + 20]))
        dw, db = tape.gradient(loss, [w, b])
        w.assign_sub(rate * dw)
        b.assign_sub(rate * db)
