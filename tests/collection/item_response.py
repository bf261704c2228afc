"""Probabilities with a least value c: item response, label noise, cured patients."""

import tensorflow as tf

from tests.collection.formula import Formula, m

log, sigmoid = tf.math.log, tf.sigmoid


def _three_parameters(z, c):
    return c + (1 - c) * sigmoid(z)


def _answers(y, z, c):
    p = _three_parameters(z, c)
    return -tf.reduce_mean(y * log(p) + (1 - y) * log(1 - p))


def _exact(z, c):
    return c + (1 - c) / (1 + m.exp(-z))


def _exact_rest(z, c):
    return (1 - c) / (1 + m.exp(z))


def _exact_answers(y, z, c):
    right, wrong = m.log(_exact(z, c)), m.log(_exact_rest(z, c))
    return -(y * right + (1 - y) * wrong).mean()


FORMULAS = [
    Formula(
        "right answer of three parameters, no guessing",
        lambda z, c: log(_three_parameters(z, c)),
        lambda z, c: m.log(_exact(z, c)),
        [[-88.0, -30.0], [0.0, 1e-9]],
        [[0.5, -0.3], [0.2, 0.1]],
    ),
    Formula(
        "wrong answer of three parameters, high ability",
        lambda z, c: log(1 - _three_parameters(z, c)),
        lambda z, c: m.log(_exact_rest(z, c)),
        [[120.0, 30.0], [0.25, 0.1]],
        [[0.5, -0.3], [0.2, 0.1]],
    ),
    Formula(
        "wrong answer of three parameters, a quotient of one exponential",
        lambda z, c: log(1 - (c + (1 - c) / (1 + tf.exp(-z)))),
        lambda z, c: m.log(_exact_rest(z, c)),
        [[120.0, 30.0], [0.25, 0.1]],
        [[0.5, -0.3], [0.2, 0.1]],
    ),
    Formula(
        "wrong answer of three parameters, a quotient of two exponentials",
        lambda z, c: log(1 - (c + (1 - c) * tf.exp(z) / (1 + tf.exp(z)))),
        lambda z, c: m.log(_exact_rest(z, c)),
        [[60.0, 30.0], [0.25, 0.1]],
        [[0.5, -0.3], [0.2, 0.1]],
    ),
    Formula(
        "answers of three parameters, guesses by a sigmoid",
        lambda y, z, g: _answers(y, z, sigmoid(g)),
        lambda y, z, g: _exact_answers(y, z, 1 / (1 + m.exp(-g))),
        [[0.0, 1.0, 0.0], [40.0, -20.0, 20.0], [-1.0, -30.0, 20.0]],
        [[0.0, 1.0, 0.0], [0.5, -0.3, 0.2], [-1.0, -2.0, 0.3]],
    ),
    Formula(
        "answers of three parameters",
        _answers,
        _exact_answers,
        [[0.0, 1.0, 0.0], [40.0, -20.0, 20.0], [0.2, 0.0, 0.25]],
        [[0.0, 1.0, 0.0], [0.5, -0.3, 0.2], [0.2, 0.1, 0.25]],
    ),
    Formula(
        "miss of a mixture of experts, all sure of a hit",
        lambda w, z: log(1 - tf.reduce_sum(tf.nn.softmax(w) * sigmoid(z), -1)),
        lambda w, z: m.log((m.exp(w) / (1 + m.exp(z))).sum() / m.exp(w).sum()),
        [[0.5, -1.0, 2.0], [40.0, 50.0, 30.0]],
        [[0.5, -1.0, 2.0], [1.0, -2.0, 0.3]],
    ),
    Formula(
        "miss of a mixture of experts, rates of hits",
        lambda w, t: log(1 - tf.reduce_sum(tf.nn.softmax(w) * (1 - tf.exp(-t)), -1)),
        lambda w, t: m.log((m.exp(w) * m.exp(-t)).sum() / m.exp(w).sum()),
        [[0.5, -1.0, 2.0], [40.0, 50.0, 30.0]],
        [[0.5, -1.0, 2.0], [1.0, 2.0, 0.3]],
    ),
    Formula(
        "death after a long time, some cured",
        lambda t, p: log(1 - (p + (1 - p) * tf.exp(-t))),
        lambda t, p: m.log((1 - p) * (1 - m.exp(-t))),
        [[1e-5, 3e-9], [0.3, 0.2]],
        [[1.0, 2.0], [0.3, 0.2]],
    ),
    Formula(
        "survival of a long time, none cured",
        lambda t, p: log(p + (1 - p) * tf.exp(-t)),
        lambda t, p: m.log(p + (1 - p) * m.exp(-t)),
        [[88.0, 120.0], [0.0, 1e-35]],
        [[1.0, 2.0], [0.3, 0.2]],
    ),
]
