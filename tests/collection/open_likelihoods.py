"""Likelihoods that `stabilize` does not repair yet: see `open`."""

import tensorflow as tf

from tests.collection.formula import Formula, m


def _hazard(t, b):
    return tf.math.log(b * t ** (b - 1) / (1 + t**b))


def _exact_hazard(t, b):
    return m.log(b) + (b - 1) * m.log(t) - m.log(1 + m.exp(b * m.log(t)))


FORMULAS = [
    Formula(
        "log-logistic hazard after a long time",
        _hazard,
        _exact_hazard,
        [[1e20], [3.0]],
        [[2.0], [1.5]],
    ),
]
