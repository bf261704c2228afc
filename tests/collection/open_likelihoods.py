"""Likelihoods that `stabilize` does not repair yet: see `open`."""

import tensorflow as tf

from tests.collection.formula import Formula, m, off_zero

exp, log = tf.exp, tf.math.log


def _frank(u, v, t):
    return -log(1 + (exp(-t * u) - 1) * (exp(-t * v) - 1) / (exp(-t) - 1)) / t


def _exact_frank(u, v, t):
    t = off_zero(t)
    rest = m.expm1(-t * u) * m.expm1(-t * v) / m.expm1(-t)
    return -m.log1p(rest) / t


def _hazard(t, b):
    return log(b * t ** (b - 1) / (1 + t**b))


def _exact_hazard(t, b):
    return m.log(b) + (b - 1) * m.log(t) - m.log(1 + m.exp(b * m.log(t)))


FORMULAS = [
    Formula(
        "Frank's copula of independent variables",
        _frank,
        _exact_frank,
        [[0.3, 0.4], [0.5, 0.6], [0.0, 1e-5]],
        [[0.3], [0.5], [2.0]],
    ),
    Formula(
        "log-logistic hazard after a long time",
        _hazard,
        _exact_hazard,
        [[1e20], [3.0]],
        [[2.0], [1.5]],
    ),
]
