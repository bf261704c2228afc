"""Ordinal likelihoods whose cut points are close to each other, or far from x."""

import mpmath
import tensorflow as tf

from tests.collection.formula import Formula, m

log, sigmoid = tf.math.log, tf.sigmoid


def _exact_sigmoid(x):
    return 1 / (1 + m.exp(-x))


def _exact_between(low, high):
    return m.log(_exact_sigmoid(high) - _exact_sigmoid(low))


def _categories(c, x):
    x = x[:, None]
    return log(sigmoid(c[1:] - x) - sigmoid(c[:-1] - x))


def _exact_categories(c, x):
    return _exact_between(c[:-1] - x[:, None], c[1:] - x[:, None])


def _discretised(x, mean, s):
    centred, inverse = x - mean, tf.exp(-s)
    upper, lower = inverse * (centred + 1 / 255), inverse * (centred - 1 / 255)
    return log(sigmoid(upper) - sigmoid(lower))


def _exact_discretised(x, mean, s):
    half = mpmath.mpf(1) / 255
    return _exact_between(m.exp(-s) * (x - mean - half), m.exp(-s) * (x - mean + half))


def _ordered(d, x):
    c = tf.cumsum(d)
    return log(sigmoid(c[1:] - x) - sigmoid(c[:-1] - x))


def _exact_ordered(d, x):
    c = d.cumsum()
    return _exact_between(c[:-1] - x, c[1:] - x)


FORMULAS = [
    Formula(
        "categories whose cut points are close",
        _categories,
        _exact_categories,
        [[0.3, 0.3001, 2.0], [5.1, 2.0, 200.0]],
        [[0.3, 1.0, 2.0], [0.1]],
    ),
    Formula(
        "cut points as a cumulative sum of small steps",
        _ordered,
        _exact_ordered,
        [[0.3, 1e-4, 1e-4], [5.1]],
        [[0.3, 1.0, 2.0], [0.1]],
    ),
    Formula(
        "a narrow category on a scale of its own",
        lambda a, b, x, s: log(sigmoid((b - x) / s) - sigmoid((a - x) / s)),
        lambda a, b, x, s: _exact_between((a - x) / s, (b - x) / s),
        [[0.3], [0.3001], [5.1], [2.0]],
        [[0.3], [1.0], [0.1], [2.0]],
    ),
    Formula(
        "a narrow category of an item that discriminates",
        lambda a, b, x, s: log(sigmoid(s * (x - a)) - sigmoid(s * (x - b))),
        lambda a, b, x, s: _exact_between(s * (x - b), s * (x - a)),
        [[0.3], [0.3001], [5.1], [2.0]],
        [[0.3], [1.0], [0.1], [2.0]],
    ),
    Formula(
        "discretised logistic of a pixel far from the mean",
        _discretised,
        _exact_discretised,
        [[3.0], [-5.1], [5.0]],
        [[0.3], [0.1], [0.1]],
    ),
]
