"""Divergences of nearly equal distributions, and higher moments from raw ones."""

import tensorflow as tf

from tests.collection.formula import Formula, m

log, mean = tf.math.log, tf.reduce_mean


def _normal(mu, s, nu, t):
    return log(t / s) + (s**2 + (mu - nu) ** 2) / (2 * t**2) - 0.5


def _exact_normal(mu, s, nu, t):
    return m.log(t / s) + (s**2 + (mu - nu) ** 2) / (2 * t**2) - m.mpf(0.5)


def _normals(mu, s, nu, t):
    logs = tf.reduce_sum(log(t**2) - log(s**2), -1)
    squares = tf.reduce_sum(s**2 / t**2, -1) + tf.reduce_sum((mu - nu) ** 2 / t**2, -1)
    return 0.5 * (logs - 2.0 + squares)


def _laplace(a, b, d):
    return log(b / a) + (a * tf.exp(-d / a) + d) / b - 1


def _exact_laplace(a, b, d):
    return m.log(b / a) + (a * m.exp(-d / a) + d) / b - 1


def _skewness(x):
    third = mean(x**3) - 3 * mean(x) * mean(x**2) + 2 * mean(x) ** 3
    return third / (mean(x**2) - mean(x) ** 2) ** 1.5


def _exact_skewness(x):
    c = x - x.mean()
    return (c**3).mean() / m.power((c**2).mean(), m.mpf(1.5))


def _entropy(p):
    return -tf.reduce_sum(p * log(p), -1)


def _information(z):
    p = tf.nn.softmax(z)
    return _entropy(mean(p, 0)) - mean(_entropy(p), 0)


def _exact_information(z):
    p = m.exp(z)
    p /= p.sum(-1, keepdims=True)
    average = p.sum(0) / p.shape[0]
    return (p * m.log(p / average)).sum(-1) / p.shape[0]


def _binary_entropy(p):
    return -p * log(p + 1e-8) - (1 - p) * log(1 - p + 1e-8)


def _binary_information(z):
    p = tf.sigmoid(z)
    return _binary_entropy(mean(p, 1)) - mean(_binary_entropy(p), 1)


def _exact_binary_information(z):
    p, q = 1 / (1 + m.exp(-z)), 1 / (1 + m.exp(z))
    n, a, b = z.shape[1], p.sum(1, keepdims=True), q.sum(1, keepdims=True)
    return (p * m.log(p * n / a) + q * m.log(q * n / b)).sum(1) / n


FORMULAS = [
    Formula(
        "mutual information of an ensemble that nearly agrees",
        _information,
        _exact_information,
        [[[[1.0, 0.5, -1.0]], [[1.001, 0.5, -1.002]]]],
        [[[[1.0, 0.5, -1.0]], [[-1.0, 0.5, 1.0]]]],
    ),
    Formula(
        "mutual information of binary members that nearly agree",
        _binary_information,
        _exact_binary_information,
        [[[0.5, 0.501, 0.499], [-1.0, -1.002, -1.0]]],
        [[[0.5, 2.0, -1.0], [-1.0, -3.0, 1.0]]],
    ),
    Formula(
        "KL divergence of nearly equal normals",
        _normal,
        _exact_normal,
        [[0.5], [1.0], [0.5], [1.0003]],
        [[0.5], [1.0], [0.2], [2.0]],
    ),
    Formula(
        "KL divergence of nearly equal diagonal normals",
        _normals,
        lambda *args: _exact_normal(*args).sum(),
        [[0.5, 1.0], [1.0, 2.0], [0.5, 1.0], [1.0003, 2.0001]],
        [[0.5, 0.1], [1.0, 2.0], [0.2, 0.1], [2.0, 3.0]],
    ),
    Formula(
        "KL divergence of nearly equal exponentials",
        lambda a, b: log(a) - log(b) + b / a - 1,
        lambda a, b: m.log(a / b) + b / a - 1,
        [[2.0, 1.0], [2.0005, 1.0]],
        [[2.0, 1.0], [3.0, 0.5]],
    ),
    Formula(
        "KL divergence of nearly equal Laplace distributions",
        _laplace,
        _exact_laplace,
        [[1.0], [1.001], [1e-3]],
        [[1.0], [2.0], [0.5]],
    ),
    Formula(
        "KL divergence of a weight from its prior of fixed width",
        lambda mean, std: log(2.0 / std) + (std * std + mean * mean) / 8.0 - 0.5,
        lambda mean, std: m.log(2 / std) + (std * std + mean * mean) / 8 - 0.5,
        [[2.0**-20, 1e-4], [2.0001, 1.9999]],
        [[1.0, 0.5], [3.0, 0.25]],
    ),
    Formula(
        "annealed KL divergence from the unit normal",
        lambda beta, std: beta * (0.5 * (tf.square(std) - 1.0) - log(std)),
        lambda beta, std: beta * ((std**2 - 1) / 2 - m.log(std)),
        [[0.1, 0.7], [1.0001, 0.9999]],
        [[0.1, 0.7], [3.0, 0.25]],
    ),
    Formula(
        "skewness from raw moments, powers by **",
        _skewness,
        _exact_skewness,
        [[1e3, 1.001e3, 1.003e3, 1.009e3]],
        [[1.0, 2.0, 4.0, 9.0]],
    ),
]
