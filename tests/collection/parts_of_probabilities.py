"""Roots of probabilities, and logarithms of 1 less a part of one."""

import numpy as np
import tensorflow as tf

from tests.collection.formula import Formula, m

log = tf.math.log


def _sigmoid(x):
    return 1 / (1 + m.exp(-x))


def _softmax(x):
    return m.exp(x) / m.exp(x).sum()


def _mixture(sigmoid, x):
    return 0.25 * sigmoid(2 * x - 2) + 0.75 * sigmoid(2 * x + 2)


FORMULAS = [
    Formula(
        "log odds of a mixture of logistic distributions",
        lambda x: log(_mixture(tf.sigmoid, x)) - log(1 - _mixture(tf.sigmoid, x)),
        lambda x: (
            m.log(_mixture(_sigmoid, x)) - m.log(1 - _mixture(_sigmoid, x))
        ).sum(),
        [[12.0, 40.0, -40.0]],
        [[0.1, 1.5, -2.0]],
    ),
    Formula(
        "survival of intervals, those after the time multiplied by 0",
        lambda x, kept: -tf.reduce_sum(log(1 + kept * (tf.sigmoid(x) - 1))),
        lambda x, kept: -m.log(1 + kept * (_sigmoid(x) - 1)).sum(),
        [[-100.0, -50.0, 3.0], [0.999, 1.0, 0.0]],
        [[-1.0, 0.5, 3.0], [1.0, 1.0, 0.0]],
    ),
    Formula(
        "any of several causes by the links that are on",
        lambda links, x: tf.reduce_sum(log(1 - links * tf.sigmoid(x))),
        lambda links, x: m.log(1 - links * _sigmoid(x)).sum(),
        [[1.0, 0.0, 0.25], [40.0, 100.0, -60.0]],
        [[1.0, 0.0, 0.25], [0.4, 1.0, -0.6]],
    ),
    Formula(
        "classes that labels between 0 and 1 rule out",
        lambda labels, x: tf.reduce_sum(log(1 - labels * tf.nn.softmax(x))),
        lambda labels, x: m.log(1 - labels * _softmax(x)).sum(),
        [[1.0, 0.0, 0.5], [40.0, -10.0, 3.0]],
        [[1.0, 0.0, 0.5], [0.4, 1.0, -0.6]],
    ),
    Formula(
        "events that may be missed, after a short time",
        lambda seen, t: tf.reduce_sum(log(1 - seen * tf.exp(-t))),
        lambda seen, t: m.log(1 - seen * m.exp(-t)).sum(),
        [[1.0, 0.5, 2.0], [1e-10, 3.0, 1.0]],
        [[1.0, 0.5, 2.0], [0.3, 3.0, 1.0]],
    ),
    Formula(
        "amplitudes of states by their logits",
        lambda x: tf.reduce_sum([1.0, 1e20, 1.0] * tf.sqrt(tf.nn.softmax(x))),
        lambda x: (np.array([1, 10**20, 1]) * m.sqrt(_softmax(x))).sum(),
        [[3.0, -90.0, -100.0]],
        [[3.0, -1.0, 0.5]],
    ),
    Formula(
        "image of a diffusion by its noise and the ratio of signal and noise",
        lambda x, e, g: tf.reduce_sum(
            (x - tf.sqrt(tf.sigmoid(-g)) * e) / tf.sqrt(tf.sigmoid(g))
        ),
        lambda x, e, g: ((x - m.sqrt(_sigmoid(-g)) * e) / m.sqrt(_sigmoid(g))).sum(),
        [[1.0, 2.0], [0.5, 3.0], [-80.0, 95.0]],
        [[1.0, 2.0], [0.5, 3.0], [-2.0, 3.0]],
    ),
    Formula(
        "signal and noise in half precision",
        lambda g: tf.reduce_sum(tf.sqrt(tf.sigmoid(g)) + tf.sqrt(1 - tf.sigmoid(g))),
        lambda g: (m.sqrt(_sigmoid(g)) + m.sqrt(_sigmoid(-g))).sum(),
        [[-18.0, 17.0]],
        [[-2.0, 1.0]],
        dtype="float16",
    ),
    Formula(
        "weights by the root of the odds in half precision",
        lambda g: tf.reduce_sum(tf.math.rsqrt(tf.sigmoid(g)) * 2.0**-8),
        lambda g: (1 / m.sqrt(_sigmoid(g))).sum() / 256,
        [[-18.0, -19.0]],
        [[-2.0, 1.0]],
        dtype="float16",
    ),
]
