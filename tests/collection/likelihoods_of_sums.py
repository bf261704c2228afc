"""Gamma functions of a sum and of its terms, and mixtures of differences."""

import numpy as np
import tensorflow as tf

from tests.collection.formula import Formula, m

lg = tf.math.lgamma


def _exact(a):
    return m.loggamma(a.sum(-1)) - m.loggamma(a).sum(-1)


def _discretised(x, middle, logits):
    z = x[:, None] - middle
    bins = tf.sigmoid(8 * z + 1) - tf.sigmoid(8 * z - 1)
    return -tf.math.log(tf.reduce_sum(tf.nn.softmax(logits) * bins, -1))


def _exact_discretised(x, middle, logits):
    z, p = x[:, None] - middle, m.exp(logits) / m.exp(logits).sum()
    bins = 1 / (1 + m.exp(-8 * z - 1)) - 1 / (1 + m.exp(-8 * z + 1))
    return -m.log((p * bins).sum(-1)).sum()


def _normal_bins(x, middle, weights):
    z = (x[:, None] - middle) / 2**0.5
    bins = 0.5 * (1 + tf.math.erf(z + 0.25)) - 0.5 * (1 + tf.math.erf(z - 0.25))
    return -tf.math.log(tf.reduce_sum(weights * bins, -1))


def _exact_normal_bins(x, middle, weights):
    z = (x[:, None] - middle) / m.mpf(float(np.float32(2**0.5)))
    quarter = m.mpf("0.25")
    bins = (m.erfc(-z - quarter) - m.erfc(-z + quarter)) / 2
    return -m.log((weights * bins).sum(-1)).sum()


FORMULAS = [
    Formula(
        "mixture of discretised logistics in both tails",
        _discretised,
        _exact_discretised,
        [[50.0, -20.0], [0.0, 1.0], [-1.0, 0.0]],
        [[0.5, 1.0], [0.3, 0.7], [-1.0, 0.0]],
    ),
    Formula(
        "mixture of normal bins in the lower tail",
        _normal_bins,
        _exact_normal_bins,
        [[-15.0, 1.0], [0.0, 1.0], [0.4, 0.6]],
        [[0.5, 1.0], [0.3, 0.7], [0.4, 0.6]],
    ),
    Formula(
        "normaliser of a Dirichlet with one large concentration",
        lambda a: lg(tf.reduce_sum(a, -1)) - tf.reduce_sum(lg(a), -1),
        _exact,
        [[[1e6, 2.0, 3.0], [1.0, 4.0, 4e5]]],
        [[[1.0, 2.0, 3.0]]],
    ),
    Formula(
        "multivariate beta function with one large concentration",
        lambda a: -tf.math.lbeta(a),
        _exact,
        [[[1e6, 2.0, 3.0]]],
        [[[1.0, 2.0, 3.0]]],
    ),
]
