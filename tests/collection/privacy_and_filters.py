"""Small losses of privacy, distances in hyperbolic space, and variances that shrink."""

import tensorflow as tf

from tests.collection.formula import Formula, m


def _first(x):
    return tf.sqrt(1 + tf.reduce_sum(x * x, -1))


def _distance(x, y):
    product = -_first(x) * _first(y) + tf.reduce_sum(x * y, -1)
    return tf.acosh(-product)


def _exact_distance(x, y):
    lengths = m.sqrt(1 + (x * x).sum(-1)) * m.sqrt(1 + (y * y).sum(-1))
    return m.acosh(lengths - (x * y).sum(-1))


def _kept(p, r):
    gain = p / (p + r)
    return p - gain * p


FORMULAS = [
    Formula(
        "second moment of a privacy loss, few records sampled",
        lambda q, s: tf.math.log(1 + q * q * (tf.exp(1 / (s * s)) - 1)),
        lambda q, s: m.log1p(q * q * m.expm1(1 / (s * s))),
        [[1e-4, 0.01], [2.0, 1.0]],
        [[0.5, 0.9], [2.0, 0.5]],
    ),
    Formula(
        "death within a short time, some of them cured",
        lambda p, h: tf.math.log((1 - p) + p * tf.exp(-h)),
        lambda p, h: m.log1p(p * m.expm1(-h)),
        [[0.3, 1e-5], [1e-6, 0.2]],
        [[0.3, 0.8], [0.5, 3.0]],
    ),
    Formula(
        "chance of the other arm to be the better one, small weights",
        lambda w, x: tf.math.log(1 + tf.reduce_sum(w * tf.exp(x), -1)),
        lambda w, x: m.log1p((w * m.exp(x)).sum(-1)),
        [[[1e-9, 3e-8]], [[0.3, 1.5]]],
        [[[0.5, 0.25]], [[0.3, 1.5]]],
    ),
    Formula(
        "distance of near points of a hyperboloid",
        _distance,
        _exact_distance,
        [[[0.3, -0.4], [3.0, 4.0]], [[0.3003, -0.4002], [3.01, 4.02]]],
        [[[0.3, -0.4]], [[1.5, 2.0]]],
    ),
    Formula(
        "squared distance of near points of a hyperboloid",
        lambda x, y: 2 * (_first(x) * _first(y) - tf.reduce_sum(x * y, -1)) - 2,
        lambda x, y: 2 * (m.cosh(_exact_distance(x, y)) - 1),
        [[[0.3, -0.4]], [[0.3003, -0.4002]]],
        [[[0.3, -0.4]], [[1.5, 2.0]]],
    ),
    Formula(
        "variance that an exact measurement leaves",
        _kept,
        lambda p, r: p * r / (p + r),
        [[1e6, 1.0], [1e-3, 1.0]],
        [[2.0, 0.5], [1.0, 3.0]],
    ),
    Formula(
        "variance of an unknown state after a measurement",
        lambda p, r: p - p * p / (p + r),
        lambda p, r: p * r / (p + r),
        [[1e20, 1.0], [2.0, 1.0]],
        [[2.0, 0.5], [1.0, 3.0]],
    ),
]
