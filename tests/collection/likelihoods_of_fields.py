"""Likelihoods as several fields write them: padded, scanned, with special functions."""

import math

import mpmath
import numpy as np
import tensorflow as tf

from tests.collection.formula import Formula, m, off_zero

CUTS = tf.constant([-1.0, 0.0, 1.0])
lgamma, digamma = tf.math.lgamma, tf.math.digamma


def _number(x):
    return mpmath.mpf(float(np.float32(x)))


def _von_mises_entropy(k):
    i0, i1 = tf.math.bessel_i0(k), tf.math.bessel_i1(k)
    return tf.math.log(2 * math.pi * i0) - k * i1 / i0


def _exact_von_mises_entropy(k):
    i0, i1 = m.besseli(0, k), m.besseli(1, k)
    return m.log(2 * _number(math.pi) * i0) - k * i1 / i0


def _ordinal_by_pad(z):
    cdf = tf.sigmoid(CUTS - z)
    above = tf.pad(cdf, [[0, 1]], constant_values=1.0)
    return tf.math.log(tf.gather(above - tf.pad(cdf, [[1, 0]]), [1, 2]))


def _ordinal_by_slices(z):
    ends = tf.concat([[0.0], tf.sigmoid(CUTS - z), [1.0]], 0)
    return tf.math.log(ends[1:] - ends[:-1])


def _ordinal_probit(z):
    cdf = 0.5 * (1 + tf.math.erf((CUTS - z) / math.sqrt(2)))
    return tf.math.log(tf.concat([cdf, [1.0]], 0) - tf.concat([[0.0], cdf], 0))


def _of_ends(cdf):
    ends = np.concatenate([[mpmath.mpf(0)], cdf, [mpmath.mpf(1)]])
    return m.log(ends[1:] - ends[:-1])


def _exact_ordinal(z):
    return _of_ends(1 / (1 + m.exp(z - CUTS.numpy())))


def _log_segment_product(x):
    return tf.math.log(tf.math.unsorted_segment_prod(tf.sigmoid(x), [0, 0, 1, 0], 2))


def _dirichlet_divergence(a):
    total = tf.reduce_sum(a)
    normaliser = lgamma(total) - tf.reduce_sum(lgamma(a))
    return normaliser + tf.reduce_sum((a - 1) * (digamma(a) - digamma(total)))


def _exact_dirichlet_divergence(a):
    total = a.sum()
    normaliser = m.loggamma(total) - m.loggamma(a).sum()
    return normaliser + ((a - 1) * (m.digamma(a) - m.digamma(total))).sum()


TURN = np.array([[0.9, 0.1], [0.2, 0.8]], np.float32)


def _forward_by_fold(log_emission):
    def step(alpha, emission):
        return tf.einsum("ij,j->i", TURN, alpha) * emission

    return tf.math.log(tf.reduce_sum(tf.foldl(step, tf.exp(log_emission))))


def _exact_forward(log_emission):
    turn = np.array([[_number(x) for x in row] for row in TURN], object)
    alpha = m.exp(log_emission[0])
    for row in log_emission[1:]:
        alpha = (turn @ alpha) * m.exp(row)
    return m.log(alpha.sum())


def _linear_attention(q, k, v):
    q, k = tf.nn.elu(q) + 1, tf.nn.elu(k) + 1
    top = tf.einsum("nd,de->ne", q, tf.einsum("nd,ne->de", k, v))
    return top / tf.einsum("nd,d->n", q, tf.reduce_sum(k, 0))[:, None]


def _exact_linear_attention(q, k, v):
    q, k = (np.where(x > 0, x + 1, m.exp(x)) for x in (q, k))
    weights = q @ k.T
    return (weights @ v) / weights.sum(1, keepdims=True)


def _graded_response(ability):
    above = 1 / (1 + tf.exp(-1.5 * (ability[:, None] - CUTS)))
    return tf.math.log(above[:, :-1] - above[:, 1:])


def _exact_graded_response(ability):
    above = 1 / (1 + m.exp(-1.5 * (ability[:, None] - CUTS.numpy())))
    return m.log(above[:, :-1] - above[:, 1:])


FORMULAS = [
    Formula(
        "graded response of a high ability",
        _graded_response,
        _exact_graded_response,
        [[100.0, -60.0]],
        [[0.5, -0.25]],
    ),
    Formula(
        "entropy of a concentrated von Mises distribution",
        _von_mises_entropy,
        _exact_von_mises_entropy,
        [[100.0, 200.0]],
        [[1.0, 2.0]],
    ),
    Formula(
        "normaliser of a von Mises-Fisher distribution",
        lambda k: tf.math.log(k / (2 * math.pi * (tf.exp(k) - tf.exp(-k)))),
        lambda k: m.log(off_zero(k) / (4 * _number(math.pi) * m.sinh(off_zero(k)))),
        [[0.0, 100.0, 1.0]],
        [[0.3, 1.1, 2.0]],
    ),
    Formula(
        "ordinal regression behind pad and gather",
        _ordinal_by_pad,
        lambda z: _exact_ordinal(z)[1:3],
        [-40.0],
        [0.3],
    ),
    Formula(
        "ordinal regression by slices of its cut points",
        _ordinal_by_slices,
        _exact_ordinal,
        [-30.0],
        [0.3],
    ),
    Formula(
        "ordinal regression with a normal distribution",
        _ordinal_probit,
        lambda z: _of_ends(m.ncdf(CUTS.numpy() - z)),
        [-7.0],
        [0.3],
    ),
    Formula(
        "logarithm of products over segments",
        _log_segment_product,
        lambda x: -m.log1p(m.exp(-x)),
        [[-50.0, -45.0, 3.0, -30.0]],
        [[-0.5, -0.4, 3.0, 1.0]],
    ),
    Formula(
        "logarithm of a softplus by hand",
        lambda x: tf.math.log(tf.math.log(1 + tf.exp(x))),
        lambda x: m.log(m.log1p(m.exp(x))),
        [[-100.0, 100.0]],
        [[-1.0, 2.0]],
    ),
    Formula(
        "Gumbel noise of a sigmoid",
        lambda x: -tf.math.log(-tf.math.log(tf.sigmoid(x))),
        lambda x: -m.log(m.log1p(m.exp(-x))),
        [[40.0, 80.0, -5.0]],
        [[1.0, -2.0, 0.5]],
    ),
    Formula(
        "survival after a time by a running sum of a softmax",
        lambda z: -tf.math.log(1 - tf.cumsum(tf.nn.softmax(z), 1)[:, 1]),
        lambda z: -m.log(m.exp(z[:, 2:]).sum(1) / m.exp(z).sum(1)),
        [[[100.0, 3.0, -20.0, -21.0]]],
        [[[1.0, 0.3, -0.5, 0.2]]],
    ),
    Formula(
        "order of items by a running sum of exponentials",
        lambda h: tf.reduce_sum(h - tf.math.log(tf.cumsum(tf.exp(h), reverse=True))),
        lambda h: sum(h[i] - m.log(m.exp(h[i:]).sum()) for i in range(len(h))),
        [[100.0, 3.0, 90.0]],
        [[1.0, 0.3, -0.5]],
    ),
    Formula(
        "divergence of a large Dirichlet from a flat one",
        _dirichlet_divergence,
        _exact_dirichlet_divergence,
        [[1e5, 1.0, 1.0]],
        [[3.0, 1.5, 2.0]],
    ),
    Formula(
        "forward algorithm by fold and einsum",
        _forward_by_fold,
        _exact_forward,
        [np.linspace(-60, -40, 12).reshape(6, 2)],
        [np.linspace(-2, -1, 12).reshape(6, 2)],
    ),
    Formula(
        "linear attention of negative features",
        _linear_attention,
        _exact_linear_attention,
        [
            [[-20.0, -30.0], [-19.0, -18.5]],
            [[-21.0, -20.0], [-20.5, -18.0]],
            [[1.0], [2.0]],
        ],
        [
            [[-1.0, -0.5], [0.2, 0.3]],
            [[-1.0, 0.2], [0.5, -3.0]],
            [[1.0], [2.0]],
        ],
    ),
]
