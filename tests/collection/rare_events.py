"""Chances of rare and of nearly certain events, as several fields write them."""

import mpmath
import numpy as np
import tensorflow as tf

from tests.collection.formula import STEP, Formula, m

# Far below a digit, for arguments at which a quotient has a limit.
SHIFT = STEP * STEP
_BIN = mpmath.mpf(float(np.float32(0.001)))


def _concentration(absorbed, cleared, time):
    change = tf.exp(-absorbed * time) - tf.exp(-cleared * time)
    return tf.math.log(absorbed / (cleared - absorbed) * change)


def _exact_concentration(absorbed, cleared, time):
    cleared = cleared + SHIFT
    change = m.exp(-absorbed * time) - m.exp(-cleared * time)
    return m.log(absorbed / (cleared - absorbed) * change)


def _fixation(gain, size):
    return tf.math.log((1 - tf.exp(-2 * gain)) / (1 - tf.exp(-4 * size * gain)))


def _history(lives, seen):
    p, chance = tf.sigmoid(lives), tf.sigmoid(seen)
    return tf.math.log(p * (1 - chance) ** 5 + 1 - p)


def _exact_history(lives, seen):
    p, missed = 1 / (1 + m.exp(-lives)), 1 / (1 + m.exp(seen))
    return m.log(p * missed**5 + 1 - p)


def _odds_of_answer(logits, kept):
    log_probs = tf.nn.log_softmax(logits)[:, 0]
    log_p = tf.reduce_sum(log_probs * kept) / tf.reduce_sum(kept)
    return log_p - tf.math.log(1 - tf.exp(log_p))


def _exact_odds_of_answer(logits, kept):
    log_probs = logits[:, 0] - m.log(m.exp(logits).sum(axis=1))
    log_p = (log_probs * kept).sum() / kept.sum()
    return log_p - m.log(1 - m.exp(log_p))


FORMULAS = [
    Formula(
        "concentration after a dose, the slower rate first or second",
        _concentration,
        _exact_concentration,
        [[2.0, 200.0, 1.0], [2.0, 100.0, 3.0], [1.0, 2.0, 150.0]],
        [[1.0, 2.0], [3.0, 1.0], [1.0, 2.0]],
    ),
    Formula(
        "fixation of a mutant that is selected against",
        _fixation,
        lambda gain, size: m.log(
            (1 - m.exp(-2 * gain)) / (1 - m.exp(-4 * size * gain))
        ),
        [[1e-9, -1.0], [10.0, 50.0]],
        [[0.1, -0.05], [10.0, 20.0]],
    ),
    Formula(
        "history of a site where nothing was seen",
        _history,
        _exact_history,
        [[50.0, 100.0], [60.0, 30.0]],
        [[0.1, 1.0], [0.3, -1.0]],
    ),
    Formula(
        "substitution between two sequences after a short time",
        lambda time: tf.math.log(0.75 - 0.75 * tf.exp(-4 * time / 3)),
        lambda time: m.log(0.75 * (1 - m.exp(-4 * time / 3))),
        [[1e-30, 1e-5, 0.2]],
        [[0.5, 2.0]],
    ),
    Formula(
        "spike in a short bin at a low rate",
        lambda u: tf.math.log(1 - tf.exp(-tf.exp(u) * 0.001)),
        lambda u: m.log(1 - m.exp(-m.exp(u) * _BIN)),
        [[-120.0, -90.0, 1.0]],
        [[5.0, 6.0]],
    ),
    Formula(
        "failure within a short time by a Weibull distribution",
        lambda time, k: tf.math.log(1 - tf.exp(-((time / 2.0) ** k))),
        lambda time, k: m.log(1 - m.exp(-((time / 2) ** k))),
        [[1e-15, 1e-10, 1.0], [4.0, 3.0, 2.0]],
        [[1.0, 2.0], [1.5, 2.0]],
    ),
    Formula(
        "log odds of an answer whose tokens are all certain",
        _odds_of_answer,
        _exact_odds_of_answer,
        [[[50.0, 0.0], [60.0, 0.0], [0.0, 1.0]], [1.0, 1.0, 0.0]],
        [[[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], [1.0, 1.0, 0.0]],
    ),
    Formula(
        "Cauchy loss whose scale by a softplus vanishes",
        lambda x, s: tf.math.log(1 + (x / tf.nn.softplus(s)) ** 2),
        lambda x, s: m.log(1 + (x / m.log(1 + m.exp(s))) ** 2),
        [[1.0, 1.0, -2.0], [-60.0, 1.0, -70.0]],
        [[1.0, -2.0], [1.0, 0.5]],
    ),
    Formula(
        "deviation of a short rate without mean reversion",
        lambda a, time: tf.sqrt((1 - tf.exp(-2 * a * time)) / (2 * a)),
        lambda a, time: m.sqrt(
            (1 - m.exp(-2 * (a + SHIFT) * time)) / (2 * (a + SHIFT))
        ),
        [[0.0, 1e-8, 1.0], [1.0, 5.0, 2.0]],
        [[1.0, 2.0], [1.0, 5.0]],
    ),
]
