"""Formulas that no rule can repair, with what the checks find and what mends them.

The limit of each depends on something that the graph does not show: that two tensors
vanish together, or in which order two limits are taken.
"""

import math

import mpmath
import numpy as np
import tensorflow as tf

from tests.collection.formula import Formula, m, off_zero
from tfsafe import ops

_ROOT = np.float32(math.sqrt(2))
_ROOT_PI = np.float32(math.sqrt(2 * math.pi))


def _bachelier_of(quotient):
    def price(forward, deviation):
        ahead = forward - 1.0
        d = quotient(ahead, deviation)
        bell = tf.exp(-d * d / 2) / _ROOT_PI
        return ahead * 0.5 * (1 + tf.math.erf(d / _ROOT)) + deviation * bell

    return price


def _exact_bachelier(forward, deviation):
    ahead = forward - 1
    d = ahead / off_zero(deviation)
    return ahead * m.ncdf(d) + deviation * m.npdf(d)


def _gain_of(quotient):
    def gain(relevance, order):
        discount = tf.math.log(1.0 + order)
        ideal = tf.sort(relevance, direction="DESCENDING")
        best = tf.reduce_sum((2.0**ideal - 1) / np.log([2.0, 3.0]).astype("f"))
        return quotient(tf.reduce_sum((2.0**relevance - 1) / discount), best)

    return gain


def _exact_gain(relevance, order):
    gains = 2**relevance - 1
    best = (np.sort(gains)[::-1] / [mpmath.log(2), mpmath.log(3)]).sum()
    return (gains / m.log(1 + order)).sum() / (best or 1)


FORMULAS = [
    Formula(
        "Bachelier price at the money without volatility",
        _bachelier_of(lambda a, b: a / b),
        _exact_bachelier,
        [[1.0, 2.0], [0.0, 0.5]],
        [[1.5, 2.0], [0.25, 0.5]],
        slopes="finite",
        reason="the moneyness 0 / 0 may be any number; its factors are 0",
        finding="RealDiv",
        by_hand=_bachelier_of(ops.xdivy),
    ),
    Formula(
        "discounted gain of a list without relevant items",
        _gain_of(lambda a, b: a / b),
        _exact_gain,
        [[0.0, 0.0], [1.0, 2.0]],
        [[1.0, 0.0], [2.0, 1.0]],
        slopes="finite",
        reason="nothing shows that the gain of the best order vanishes with it",
        finding="RealDiv",
        by_hand=_gain_of(ops.xdivy),
    ),
]
