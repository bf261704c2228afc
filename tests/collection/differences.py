"""Differences of nearly equal numbers, whose digits are lost as they are written."""

import math

import mpmath
import numpy as np
import tensorflow as tf

from tests.collection.formula import Formula, m


def _focal(z):
    chosen = tf.gather(tf.nn.softmax(z), [0, 2], batch_dims=1)
    return (1 - chosen) ** 2 * tf.math.log(chosen) * 1e20


def _exact_focal(z):
    e = m.exp(z)
    rest = [e[0, 1:].sum() / e[0].sum(), e[1, :2].sum() / e[1].sum()]
    return sum(p**2 * m.log(1 - p) for p in rest) * 1e20


def _exact_gap(z):
    others = [m.exp(z[0, 1:] - z[0, 0]).sum(), m.exp(z[1, :2] - z[1, 2]).sum()]
    return sum(m.log1p(each) for each in others) * 1e9


def _exact_rest(x):
    return np.array([mpmath.atan2(1, each) * 1000 for each in x], object)


def _rapidity(across, along):
    energy = tf.sqrt(across**2 + along**2 + 0.25)
    return 0.5 * tf.math.log((energy + along) / (energy - along))


def _exact_rapidity(across, along):
    energy = m.sqrt(across**2 + along**2 + 0.25)
    return m.log((energy + along) ** 2 / (across**2 + 0.25)) / 2


CERTAIN = [[30.0, 1.0, 2.0], [0.0, -3.0, 28.0]]
UNSURE = [[1.0, 0.5, 0.25], [0.0, -1.0, 2.0]]

FORMULAS = [
    Formula(
        "focal loss of a certain class",
        _focal,
        _exact_focal,
        [CERTAIN],
        [UNSURE],
    ),
    Formula(
        "how far a logsumexp is above the largest",
        lambda z: (tf.reduce_logsumexp(z, 1) - tf.reduce_max(z, 1)) * 1e9,
        _exact_gap,
        [CERTAIN],
        [UNSURE],
    ),
    Formula(
        "cross-entropy by hand of a certain class",
        lambda z: (
            (
                tf.math.log(tf.reduce_sum(tf.exp(z), 1))
                - tf.gather(z, [0, 2], batch_dims=1)
            )
            * 1e9
        ),
        _exact_gap,
        [CERTAIN],
        [UNSURE],
    ),
    Formula(
        "what a small step adds to a square",
        lambda a, b: (a + b) ** 2 - a**2,
        lambda a, b: 2 * a * b + b * b,
        [[1e4, 300.0], [1e-3, 1e-4]],
        [[1.0, 2.0], [0.5, 3.0]],
    ),
    Formula(
        "Rydberg's difference of reciprocals",
        lambda n: 1 / n - 1 / (n + 1),
        lambda n: 1 / (n * (n + 1)),
        [[1e5, -1e5]],
        [[1.0, 2.0]],
    ),
    Formula(
        "angle that is left of a right one",
        lambda x: (math.pi / 2 - tf.atan(x)) * 1e3,
        _exact_rest,
        [[1e5, 1e7]],
        [[0.5, -2.0]],
    ),
    Formula(
        "complementary log-log of a rare event",
        lambda x: tf.math.log(-tf.math.log(1 - tf.sigmoid(x))),
        lambda x: m.log(m.log1p(m.exp(x))),
        [[-100.0, 30.0]],
        [[1.0, -1.0]],
    ),
    Formula(
        "Kepler's equation of a comet near the sun",
        lambda x, e: x - e * tf.sin(x),
        lambda x, e: x - e * m.sin(x),
        [[1e-3], [0.9999999]],
        [[2.0, 0.5], [0.5, 0.25]],
    ),
    Formula(
        "Kepler's equation of an orbit that is open",
        lambda x, e: e * tf.sinh(x) - x,
        lambda x, e: e * m.sinh(x) - x,
        [[1e-3], [1.000001]],
        [[2.0, 0.5], [2.5, 3.0]],
    ),
    Formula(
        "distance of the horizon",
        lambda height: 6371 * tf.acos(6371 / (6371 + height)),
        lambda height: 6371 * m.acos(6371 / (6371 + height)),
        [[1e-3, 1e-5]],
        [[500.0, 2000.0]],
    ),
    Formula(
        "angle whose cosine was subtracted from 1 and clipped",
        lambda x: tf.acos(tf.clip_by_value(1 - 2 * x, -1.0, 1.0)),
        lambda x: m.acos(1 - 2 * x),
        [[1e-9, 1e-5]],
        [[0.3, 0.9]],
    ),
    Formula(
        "solid angle of a disc that is far away",
        lambda h, r: 2 * math.pi * (1 - h / tf.sqrt(h * h + r * r)),
        lambda h, r: 2 * math.pi * (1 - h / m.sqrt(h * h + r * r)),
        [[1e4], [1.0]],
        [[1.0, 0.5], [2.0, 0.25]],
    ),
    Formula(
        "mass of a halo within two radii, one as a fraction of the other",
        lambda c, d: (
            (tf.math.log(1 + c) - c / (1 + c)) / (tf.math.log(1 + d) - d / (1 + d))
        ),
        lambda c, d: (m.log(1 + c) - c / (1 + c)) / (m.log(1 + d) - d / (1 + d)),
        [[1e-4], [2e-4]],
        [[1.0], [3.0]],
    ),
    Formula(
        "hedge of an option to sell that is far out of the money",
        lambda d: 0.5 * (1 + tf.math.erf(d / math.sqrt(2))) - 1,
        lambda d: -m.ncdf(-d),
        [[7.0, 9.0]],
        [[-0.5, 1.0]],
    ),
    Formula(
        "Brillouin function by hyperbolic sines and cosines",
        lambda x: (
            1.5 * tf.cosh(1.5 * x) / tf.sinh(1.5 * x)
            - 0.5 * (tf.cosh(0.5 * x) / tf.sinh(0.5 * x))
        ),
        lambda x: 1.5 / m.tanh(1.5 * x) - 0.5 / m.tanh(0.5 * x),
        [[1e-4, 1e-3, 200.0]],
        [[1.0, 3.0]],
    ),
    Formula(
        "rapidity of a particle near the beam",
        _rapidity,
        _exact_rapidity,
        [[0.5, 0.25], [3000.0, 1000.0]],
        [[1.0, 0.5], [2.0, -0.5]],
    ),
]
