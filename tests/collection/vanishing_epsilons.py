"""An epsilon that rounding or the graph optimiser removes."""

import tensorflow as tf

from tests.collection.formula import Formula, m

CONSTANT = [[3.0, 3.0, 3.0], [1.0, 2.0, 4.0]]
VARIED = [[1.0, 3.0, 2.5], [1.0, 2.0, 4.0]]


def _eps(x):
    return m.mpf(float(tf.constant(x)))


def _min_max(x):
    low = tf.reduce_min(x, -1, keepdims=True)
    high = tf.reduce_max(x, -1, keepdims=True)
    return (x - low) / (high - low + 1e-7)


def _exact_min_max(x):
    low, high = x.min(-1, keepdims=True), x.max(-1, keepdims=True)
    return ((x - low) / (high - low + _eps(1e-7))).sum()


def _variance(x):
    return tf.reduce_mean(x * x, -1) - tf.reduce_mean(x, -1) ** 2


FORMULAS = [
    Formula(
        "min-max scaling of a constant row",
        _min_max,
        _exact_min_max,
        [CONSTANT],
        [VARIED],
        slopes="finite",
    ),
    Formula(
        "logarithm of a difference plus epsilon",
        lambda a, b: tf.math.log(a - b + 1e-7),
        lambda a, b: m.log(a - b + _eps(1e-7)).sum(),
        [[2.0, 5.0], [2.0, 3.0]],
        [[3.0, 5.0], [2.0, 3.0]],
    ),
    Formula(
        "logarithm of a complement plus epsilon",
        lambda p: tf.math.log(1 - p + 1e-7),
        lambda p: m.log(1 - p + _eps(1e-7)).sum(),
        [[1.0, 0.3]],
        [[0.9, 0.3]],
    ),
    Formula(
        "deviation with an epsilon under the root",
        lambda x: tf.sqrt(_variance(x) + 1e-6),
        lambda x: m.sqrt((x * x).mean(-1) - x.mean(-1) ** 2 + _eps(1e-6)).sum(),
        [CONSTANT],
        [VARIED],
    ),
    Formula(
        "binary cross-entropy with epsilons",
        lambda y, p: -(y * tf.math.log(p + 1e-7) + (1 - y) * tf.math.log(1 - p + 1e-7)),
        lambda y, p: (
            -(y * m.log(p + _eps(1e-7)) + (1 - y) * m.log(1 - p + _eps(1e-7))).sum()
        ),
        [[0.0, 1.0], [1.0, 0.3]],
        [[0.0, 1.0], [0.9, 0.3]],
    ),
    Formula(
        "reciprocal of a difference plus epsilon",
        lambda a, b: 1 / (a - b + 1e-6),
        lambda a, b: (1 / (a - b + _eps(1e-6))).sum(),
        [[2.0, 5.0], [2.0, 3.0]],
        [[3.0, 5.0], [2.0, 3.0]],
    ),
    Formula(
        "distance with an epsilon under the root",
        lambda a, b: tf.sqrt(
            tf.reduce_sum(a * a)
            - 2 * tf.reduce_sum(a * b)
            + tf.reduce_sum(b * b)
            + 1e-6
        ),
        lambda a, b: m.sqrt(((a - b) ** 2).sum() + _eps(1e-6)),
        [[2.0, 5.0], [2.0, 5.0]],
        [[3.0, 5.0], [2.0, 3.0]],
    ),
    Formula(
        "logit with epsilons on both sides",
        lambda p: tf.math.log((p + 1e-7) / (1 - p + 1e-7)),
        lambda p: m.log((p + _eps(1e-7)) / (1 - p + _eps(1e-7))).sum(),
        [[1.0, 0.3, 0.0]],
        [[0.9, 0.3]],
    ),
]
