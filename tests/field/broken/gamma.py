"""Corrects images of -1 to 1 in `Dataset.map`, and trains in a loop of its own."""

import tensorflow as tf

images = tf.random.stateless_uniform((6, 4, 4, 3), (1, 2), -1.0, 1.0)
w = tf.Variable(tf.ones((2, 2, 3, 1)))


def correct(image):
    return image ** (1.0 / 2.2)  # here


@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.nn.conv2d(x, w, 1, "SAME") ** 2)
    w.assign_sub(0.1 * tape.gradient(loss, w))
    return loss


data = tf.data.Dataset.from_tensor_slices(images).map(correct).batch(3)
for batch in data:
    step(batch)
