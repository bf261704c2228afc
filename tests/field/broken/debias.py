"""Corrects the bias of a moving average of weights before its first step."""

import tensorflow as tf

w = tf.Variable(tf.zeros([3]))
average = tf.Variable(tf.zeros([3]), trainable=False)
count = tf.Variable(0.0, trainable=False)
decay = 0.99


@tf.function
def corrected():
    return average / (1.0 - decay**count)  # here


@tf.function
def step(x, y):
    slow = corrected()
    with tf.GradientTape() as tape:
        error = tf.reduce_mean((tf.linalg.matvec(x, w) - y) ** 2)
        loss = error + 0.1 * tf.reduce_sum((w - slow) ** 2)
    w.assign_sub(0.05 * tape.gradient(loss, w))
    average.assign(decay * average + (1.0 - decay) * w)
    count.assign_add(1.0)
    return loss


x = tf.random.stateless_normal((16, 3), (4, 4))
for _ in range(3):
    step(x, tf.reduce_sum(x, 1))
