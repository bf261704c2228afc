"""Likelihoods that `stabilize` does not repair yet: see `open`."""

import math

import tensorflow as tf

from tests.collection.formula import Formula, m, off_zero

exp, log = tf.exp, tf.math.log
_ROOT = math.sqrt(2)


def _frank(u, v, t):
    return -log(1 + (exp(-t * u) - 1) * (exp(-t * v) - 1) / (exp(-t) - 1)) / t


def _exact_frank(u, v, t):
    t = off_zero(t)
    rest = m.expm1(-t * u) * m.expm1(-t * v) / m.expm1(-t)
    return -m.log1p(rest) / t


def _truncated_mean(a, b):
    above = (exp(-a * a / 2) - exp(-b * b / 2)) / math.sqrt(2 * math.pi)
    return above / (0.5 * tf.math.erf(b / _ROOT) - 0.5 * tf.math.erf(a / _ROOT))


def _exact_truncated_mean(a, b):
    return (m.npdf(a) - m.npdf(b)) / (m.ncdf(-a) - m.ncdf(-b))


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
        "mean of a normal distribution truncated to a tail",
        _truncated_mean,
        _exact_truncated_mean,
        [[8.0, -15.0], [9.0, -14.0]],
        [[-1.0], [1.5]],
    ),
    Formula(
        "log-logistic hazard after a long time",
        _hazard,
        _exact_hazard,
        [[1e20], [3.0]],
        [[2.0], [1.5]],
    ),
]
