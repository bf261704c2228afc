"""Prices options, one of which expires today, and fits their volatility."""

import tensorflow as tf

spot, strike = tf.constant([90.0, 100.0, 110.0]), tf.constant([100.0, 100.0, 100.0])
time = tf.constant([0.5, 0.0, 1.0])
volatility = tf.Variable(0.2)


def normal_cdf(x):
    return 0.5 * (1.0 + tf.math.erf(x / tf.sqrt(2.0)))


def price(drift=0.01):
    log_ratio = tf.math.log(spot) - tf.math.log(strike)
    d = (log_ratio + (drift + 0.5 * volatility**2) * time) / (
        volatility * tf.sqrt(time)  # here
    )
    later = d - volatility * tf.sqrt(time)
    return spot * normal_cdf(d) - strike * tf.exp(-drift * time) * normal_cdf(later)


for _ in range(3):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((price() - tf.constant([1.2, 0.0, 14.0])) ** 2)
    volatility.assign_sub(1e-5 * tape.gradient(loss, volatility))
