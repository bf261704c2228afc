"""Normalisers that are gamma functions of a sum and of its terms."""

import tensorflow as tf

from tests.collection.formula import Formula, m

lg = tf.math.lgamma


def _exact(a):
    return m.loggamma(a.sum(-1)) - m.loggamma(a).sum(-1)


FORMULAS = [
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
