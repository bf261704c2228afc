"""Densities as products of powers and exponentials, before their logarithm is taken."""

import numpy as np
import tensorflow as tf

from tests.collection.formula import Formula, m

log, exp, lgamma = tf.math.log, tf.exp, tf.math.lgamma


def _kernel(density):
    return lambda *args: tf.reduce_sum(log(density(*args)))


FORMULAS = [
    Formula(
        "Weibull density",
        _kernel(lambda x: 2.5 * (x / 4.0) ** 1.5 * exp(-((x / 4.0) ** 2.5))),
        lambda x: m.log(2.5) + 1.5 * m.log(x / 4) - m.power(x / 4, 2.5),
        [[1e-30, 50.0, 100.0]],
        [[0.5, 1.0, 3.0]],
    ),
    Formula(
        "Poisson probability of large counts, with its factorial",
        _kernel(lambda rate, k: exp(-rate) * rate**k / exp(lgamma(k + 1.0))),
        lambda rate, k: k * m.log(rate) - rate - m.loggamma(k + 1),
        [np.array([50.0, 100.0, 0.5]), np.array([60.0, 90.0, 40.0])],
        [np.array([5.0, 2.0, 0.5]), np.array([6.0, 1.0, 2.0])],
    ),
    Formula(
        "inverse gamma density",
        _kernel(lambda x: x**-31.0 * exp(-30.0 / x)),
        lambda x: -31 * m.log(x) - 30 / x,
        [[0.01, 1e3, 0.1]],
        [[2.0, 3.0, 5.0]],
    ),
    Formula(
        "Maxwell density",
        _kernel(lambda v: 0.5 * tf.square(v) * exp(-tf.square(v) / 2)),
        lambda v: m.log(0.5) + 2 * m.log(v) - v * v / 2,
        [[60.0, 1e-30, 100.0]],
        [[2.0, 3.0, 5.0]],
    ),
    Formula(
        "degree of ionisation at low temperature",
        _kernel(lambda t: 1e15 * (t / 256.0) ** 1.5 * exp(-1.5e5 / t)),
        lambda t: m.log(np.float64(1e15)) + 1.5 * m.log(t / 256) - 1.5e5 / t,
        [[300.0, 1000.0, 10.0]],
        [[2e4, 3e4, 1e4]],
    ),
]
