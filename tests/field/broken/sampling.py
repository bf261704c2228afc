"""Draws a word at a temperature at which the softmax by hand overflows."""

import tensorflow as tf

logits = tf.constant([2.0, 5.0, 1.0])


def draw(temperature):
    scaled = logits / temperature
    p = tf.exp(scaled) / tf.reduce_sum(tf.exp(scaled), axis=-1)  # here
    return tf.random.stateless_categorical(tf.math.log(p + 1e-9)[None], 1, [0, 1])


for temperature in (1.0, 0.05):
    print(int(draw(temperature)[0, 0]))
