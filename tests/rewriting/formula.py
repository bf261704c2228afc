"""The formula that the tests of `stabilize` rewrite, and what is right for it."""

import tensorflow as tf

# The plain formulas give -inf here, and a gradient of NaN.
LOGITS = [[0.0, -200.0], [1.0, 2.0]]
VALUE = [[0.0, -200.0], [-1.3132617, -0.3132617]]
# Of the sum of the second column.
GRADIENT = [[-1.0, 1.0], [-0.26894143, 0.26894143]]


def logits() -> tf.Tensor:
    return tf.constant(LOGITS)


def log_softmax(x):
    return tf.math.log(tf.nn.softmax(x))


def second(x):
    return tf.reduce_sum(log_softmax(x)[:, 1])


def with_own_tape(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = second(x)
    return value, tape.gradient(value, x)
