"""Moments, correlations and concordance with large means or no spread."""

import tensorflow as tf

from tests.collection.formula import Formula, m

FAR = [[10000.0, 10001.0, 10002.5, 10004.0]]
NEAR = [[1.0, 2.0, 3.5, 5.0]]
A, B = [10000.0, 10001.0, 10002.5], [20000.0, 20003.0, 20001.0]
C, D = [1.0, 2.0, 3.5], [2.0, 5.0, 3.0]
SAME = [2.0, 2.0, 2.0]


def _mean(x):
    return tf.reduce_mean(x, -1)


def _covariance(a, b):
    return _mean(a * b) - _mean(a) * _mean(b)


def _exact_covariance(a, b):
    return ((a - a.mean()) * (b - b.mean())).mean()


def _pearson(a, b):
    return _covariance(a, b) / tf.sqrt(_covariance(a, a) * _covariance(b, b))


def _exact_pearson(a, b):
    return _exact_covariance(a, b) / m.sqrt(
        _exact_covariance(a, a) * _exact_covariance(b, b)
    )


def _centred_pearson(a, b):
    a, b = a - _mean(a), b - _mean(b)
    return tf.reduce_sum(a * b) / tf.sqrt(tf.reduce_sum(a * a) * tf.reduce_sum(b * b))


def _concordance(a, b):
    a_, b_ = a - _mean(a), b - _mean(b)
    spread = _mean(a_ * a_) + _mean(b_ * b_) + (_mean(a) - _mean(b)) ** 2
    return 2 * _mean(a_ * b_) / spread


def _ensemble(mu, s):
    return tf.reduce_mean(s + mu**2, 0) - tf.reduce_mean(mu, 0) ** 2


def _rolling(x):
    first, second = tf.cumsum(x), tf.cumsum(x * x)
    n = tf.constant(2.0)
    s = (first[2:] - first[:-2]) / n
    return (second[2:] - second[:-2]) / n - s**2


def _exact_rolling(x):
    total = 0
    for i in range(1, len(x) - 1):
        w = x[i : i + 2]
        total += ((w - w.mean()) ** 2).mean()
    return total


def _std_by_count(x):
    n = tf.cast(tf.size(x), x.dtype)
    return tf.sqrt((tf.reduce_sum(x * x) - tf.reduce_sum(x) ** 2 / n) / (n - 1))


def _r2(y, p):
    total = tf.reduce_sum(y * y) - tf.reduce_sum(y) ** 2 / 3.0
    return 1 - tf.reduce_sum((y - p) ** 2) / total


FORMULAS = [
    Formula(
        "variance by raw moments",
        lambda x: _mean(x * x) - _mean(x) ** 2,
        lambda x: ((x - x.mean()) ** 2).mean(),
        [FAR],
        [NEAR],
    ),
    Formula(
        "covariance by raw moments", _covariance, _exact_covariance, [A, B], [C, D]
    ),
    Formula(
        "Pearson's correlation by raw moments", _pearson, _exact_pearson, [A, B], [C, D]
    ),
    Formula(
        "Pearson's correlation of a constant",
        _centred_pearson,
        lambda a, b: m.mpf(0) if a.max() == a.min() else _exact_pearson(a, b),
        [SAME, D],
        [C, D],
        slopes="finite",
    ),
    Formula(
        "concordance of two equal constants",
        _concordance,
        lambda a, b: (
            m.mpf(0)
            if a.max() == a.min()
            else 2
            * _exact_covariance(a, b)
            / (
                _exact_covariance(a, a)
                + _exact_covariance(b, b)
                + (a.mean() - b.mean()) ** 2
            )
        ),
        [SAME, SAME],
        [C, D],
        slopes="finite",
    ),
    Formula(
        "variance of an ensemble",
        _ensemble,
        lambda mu, s: (s.mean(0) + ((mu - mu.mean(0)) ** 2).mean(0)).sum(),
        [[[3000.0], [3001.0]], [[0.1], [0.2]]],
        [[[3.0], [4.0]], [[0.1], [0.2]]],
    ),
    Formula(
        "rolling variance by cumulative sums",
        _rolling,
        _exact_rolling,
        [[1000.0, 1001.0, 1002.5, 1004.0]],
        [[1.0, 2.0, 3.5, 5.0]],
    ),
    Formula(
        "sample deviation from sums",
        _std_by_count,
        lambda x: m.sqrt(((x - x.mean()) ** 2).sum() / (x.size - 1)),
        [FAR],
        [NEAR],
    ),
    Formula(
        "R2 with the total by raw sums",
        _r2,
        lambda y, p: 1 - ((y - p) ** 2).sum() / ((y - y.mean()) ** 2).sum(),
        [[10000.0, 10001.0, 10002.5], [10000.5, 10001.0, 10002.0]],
        [C, [1.5, 2.0, 3.0]],
    ),
    Formula(
        "standardised score of a constant",
        lambda x: (x - _mean(x)) / tf.math.reduce_std(x) * [1.0, 2.0, 4.0],
        lambda x: (
            m.mpf(0) * x.sum()
            if x.max() == x.min()
            else (
                (x - x.mean()) / m.sqrt(((x - x.mean()) ** 2).mean()) * [1, 2, 4]
            ).sum()
        ),
        [SAME],
        [C],
        slopes="finite",
    ),
    Formula(
        "coefficient of variation, zero everywhere",
        lambda x: tf.math.reduce_std(x) / tf.reduce_mean(x),
        lambda x: (
            m.mpf(0) if not any(x) else m.sqrt(((x - x.mean()) ** 2).mean()) / x.mean()
        ),
        [[0.0, 0.0, 0.0]],
        [C],
        slopes="finite",
    ),
    Formula(
        "Gaussian KL with a vanishing scale",
        lambda mu, s: tf.math.log(1 / s) + (s * s + mu * mu) / 2 - 0.5,
        lambda mu, s: (-m.log(s) + (s * s + mu * mu) / 2 - m.mpf(0.5)).sum(),
        [[0.3], [1e-39]],
        [[0.3], [0.5]],
        reason="the input is subnormal and is flushed",
    ),
]
