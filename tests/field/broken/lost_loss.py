"""Trains a scale below 0, where the loss is NaN and its slope is not."""

import tensorflow as tf

data = 0.02 * tf.random.stateless_normal([50], (1, 2))
center, raw = tf.Variable(0.0), tf.Variable(1.0)
for _ in range(20):
    with tf.GradientTape() as tape:
        scale = tf.identity(raw)
        log_p = tf.reduce_mean(
            -0.5 * tf.square((data - center) / scale)
            - 0.5 * tf.math.log(2.0 * 3.14159)
            - tf.math.log(scale)  # here
        )
        loss = -log_p
    slopes = tape.gradient(loss, [center, raw])
    for variable, slope in zip([center, raw], slopes):
        variable.assign_sub(0.3 * slope)
    print(float(loss))
