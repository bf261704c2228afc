"""Formulas of flows, rates that saturate, partial softmaxes and partition functions."""

import mpmath
import numpy as np
import tensorflow as tf

from tests.collection.formula import Formula, m, off_zero

_CAUSES = [1.0, 1.0, 0.0, 0.0]
_LOGITS = [[20.0, 5.0, -5.0, -3.0], [40.0, 1.0, 2.0, 3.0]]
_USUAL = [[0.2, 0.5, -0.5, -0.3], [1.0, 1.0, 2.0, 3.0]]


def _velocity(start, end, t):
    place = (1 - t) * start + t * end
    return (end - place) / (1 - t)


def _polymer(x):
    return 2 / x - 2 / x**2 * (1 - tf.exp(-x))


def _exact_polymer(x):
    x = off_zero(x)
    return 2 / x - 2 / x**2 * (1 - m.exp(-x))


def _langevin(x):
    return (x * tf.cosh(x) - tf.sinh(x)) / (x * tf.sinh(x))


def _exact_langevin(x):
    x = off_zero(x)
    return m.cosh(x) / m.sinh(x) - 1 / x


def _softmax(x):
    powers = m.exp(x)
    return powers / powers.sum(-1, keepdims=True)


def _others(x):
    return (_softmax(x) * (1 - np.array(_CAUSES))).sum(-1)


def _kernel_regression(queries, keys, values):
    kernel = tf.exp(-((queries[:, None] - keys[None]) ** 2))
    weights = tf.einsum("ij,i->ij", kernel, 1 / tf.reduce_sum(kernel, 1))
    return tf.linalg.matvec(weights, values)


def _exact_regression(queries, keys, values):
    kernel = m.exp(-((queries[:, None] - keys[None]) ** 2))
    return (kernel * values).sum(1) / kernel.sum(1)


def _heat_capacity(energy, beta):
    weights = tf.exp(-beta * energy)
    total = tf.reduce_sum(weights)
    mean = tf.reduce_sum(energy * weights) / total
    return beta**2 * (tf.reduce_sum(energy**2 * weights) / total - mean**2)


def _exact_heat_capacity(energy, beta):
    weights = m.exp(-beta * energy)
    weights = weights / weights.sum()
    return beta**2 * (weights * (energy - (weights * energy).sum()) ** 2).sum()


FORMULAS = [
    Formula(
        "velocity of a straight flow at the end of its path",
        lambda start, end, t: t * _velocity(start, end, t),
        lambda start, end, t: t * (end - start),
        [[1.0, 2.0, 3.0], [2.0, 4.0, 1.0], [1.0, 0.5, 0.99999]],
        [[1.0, 2.0, 3.0], [2.0, 4.0, 1.0], [0.1, 0.5, 0.8]],
    ),
    Formula(
        "velocity of a straight flow at its start, weighted",
        lambda start, end, t: (1 - t) * ((1 - t) * start + t * end - start) / t,
        lambda start, end, t: (1 - t) * (end - start),
        [[1.0, 2.0, 3.0], [2.0, 4.0, 2.0], [0.0, 0.5, 1e-5]],
        [[1.0, 2.0, 3.0], [2.0, 4.0, 1.0], [0.1, 0.5, 0.8]],
    ),
    Formula(
        "group of weights that is shrunk to 0",
        lambda x: tf.maximum(tf.norm(x) - 0.5, 0.0) / tf.norm(x) * x,
        lambda x: (
            max(mpmath.sqrt((x**2).sum()) - 0.5, 0)
            / (mpmath.sqrt((x**2).sum()) or 1)
            * x
        ),
        [[0.0, 0.0]],
        [[3.0, 4.0]],
        slopes="finite",
    ),
    Formula(
        "clean data by the rest of a straight flow at its end",
        lambda x, t: t * ((x - t * x) / (1 - t)),
        lambda x, t: t * x,
        [[1.0, 2.0, 3.0], [1.0, 0.5, 0.99999]],
        [[1.0, 2.0, 3.0], [0.1, 0.5, 0.8]],
    ),
    Formula(
        "loss weight of a signal-to-noise ratio clipped on both sides",
        lambda s: tf.clip_by_value(s, 0.0, 5.0) / s,
        lambda s: np.where(s < 0, 0, np.where(s < 5, 1, 5 / off_zero(s))),
        [[0.0, 1e-30, 20.0]],
        [[0.5, 2.0, 8.0, -3.0]],
        slopes="finite",
    ),
    Formula(
        "fraction bound by the inverse of a concentration",
        lambda s, k: 1 / (1 + k / s),
        lambda s, k: s / (s + k),
        [[0.0, 1e-30, 1e30], [1.0, 2.0, 3.0]],
        [[0.5, 0.1, 3.0], [1.0, 0.5, 2.0]],
    ),
    Formula(
        "rate of an enzyme by the inverse of its substrate",
        lambda s, v: v / (1 + 0.5 / s),
        lambda s, v: v * s / (s + 0.5),
        [[0.0, 1e-25], [2.0, 3.0]],
        [[0.5, 3.0], [2.0, 3.0]],
    ),
    Formula(
        "scattering of a polymer chain, its terms apart",
        _polymer,
        _exact_polymer,
        [[0.0, 1e-3, 1.0]],
        [[0.5, 1.0, 3.0]],
    ),
    Formula(
        "Langevin function over one divisor",
        _langevin,
        _exact_langevin,
        [[0.0, 1e-3, 1.0]],
        [[0.5, 1.0, 3.0]],
    ),
    Formula(
        "chance of other causes, those at hand summed by a mask",
        lambda x: 1 - tf.reduce_sum(tf.nn.softmax(x) * tf.constant(_CAUSES), -1),
        _others,
        [_LOGITS],
        [_USUAL],
    ),
    Formula(
        "log survival of causes that are summed by a mask",
        lambda x: tf.math.log1p(-tf.reduce_sum(tf.nn.softmax(x) * _CAUSES, -1)),
        lambda x: m.log(_others(x)),
        [_LOGITS],
        [_USUAL],
    ),
    Formula(
        "log survival of causes that are summed where they count",
        lambda x: tf.math.log(
            1
            - tf.reduce_sum(tf.where(tf.constant(_CAUSES) > 0, tf.nn.softmax(x), 0), -1)
        ),
        lambda x: m.log(_others(x)),
        [_LOGITS],
        [_USUAL],
    ),
    Formula(
        "log survival of causes that are summed by weights",
        lambda x, w: tf.math.log1p(-tf.reduce_sum(tf.nn.softmax(x) * w, -1)),
        lambda x, w: m.log((_softmax(x) * (1 - w)).sum(-1)),
        [_LOGITS, [[0.9999, 0.9998, 0.0, 0.5]]],
        [_USUAL, [[0.9, 0.8, 0.0, 0.5]]],
    ),
    Formula(
        "kernel regression far from all points, normalised by einsum",
        _kernel_regression,
        _exact_regression,
        [[13.0, -14.0], [0.0, 0.01, 0.02], [1.0, 2.0, 3.0]],
        [[0.5, 1.3], [0.0, 1.0, 2.0], [1.0, 2.0, 3.0]],
    ),
    Formula(
        "heat capacity by raw moments of energies far below 0",
        _heat_capacity,
        _exact_heat_capacity,
        [[-100.0, -100.5, -101.0], 1.0],
        [[1.0, 2.0, 0.5], 0.7],
    ),
]
