"""Quotients with a pole, an overflow or a lost root in one place, by field."""

import keras
import mpmath
import numpy as np
import tensorflow as tf

from tests.collection.formula import STEP, Formula, m, off_zero

SITES = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
HEIGHTS = [1.0, 2.0, 3.0]
FAR = [[1e20, 0.0], [2e20, 0.0], [1.5e20, 1.0]]
NEAR = [[1.0, 0.0], [0.2, 0.0], [0.5, 1.0]]
WEIGHTS = np.arange(1.0, 10.0, dtype=np.float32).reshape(3, 3)


def _payment(rate, months):
    growth = (1 + rate) ** months
    return 1000 * rate * growth / (growth - 1)


def _exact_payment(rate, months):
    rate = off_zero(rate)
    return 1000 * rate / (1 - (1 + rate) ** -months)


def _bond(gamma, time):
    grown = tf.exp(gamma * time) - 1
    return 2 * grown / ((gamma + 0.25) * grown + 2 * gamma)


def _exact_bond(gamma, time):
    grown = m.expm1(gamma * time)
    return 2 * grown / ((gamma + 0.25) * grown + 2 * gamma)


def _root(a, b, c):
    return (-b + tf.sqrt(b**2 - 4 * a * c)) / (2 * a)


def _other_root(a, b, c):
    return (-b - tf.sqrt(b**2 - 4 * a * c)) / (2 * a)


def _exact_root(a, b, c):
    return (-b + m.sqrt(b**2 - 4 * (a + STEP**2) * c)) / (2 * (a + STEP**2))


def _exact_other_root(a, b, c):
    return (-b - m.sqrt(b**2 - 4 * (a + STEP**2) * c)) / (2 * (a + STEP**2))


def _bound(ligand, constant):
    total = 1 + ligand + constant
    return (total - tf.sqrt(total**2 - 4 * ligand)) / (2 * ligand)


def _exact_bound(ligand, constant):
    total = 1 + ligand + constant
    return (total - m.sqrt(total**2 - 4 * ligand)) / (2 * ligand)


def _smooth_minimum(curvature, a, b):
    inside = (a + b) ** 2 - 4 * curvature * a * b
    return (a + b - tf.sqrt(inside)) / (2 * curvature)


def _exact_smooth_minimum(curvature, a, b):
    k = curvature + STEP**2
    return (a + b - m.sqrt((a + b) ** 2 - 4 * k * a * b)) / (2 * k)


def _shepard(power):
    def height(points, heights):
        d = tf.norm(points[:, None] - tf.constant(SITES), axis=-1)
        weights = 1 / d**power
        above = tf.reduce_sum(weights * heights, 1)
        return above / tf.reduce_sum(weights, 1)

    return height


def _nearest(points, heights):
    d = tf.reduce_sum((points[:, None] - tf.constant(SITES)) ** 2, -1)
    inverse = 1.0 / d
    weights = inverse / tf.reduce_sum(inverse, axis=1, keepdims=True)
    return tf.reduce_sum(weights * heights, 1)


def _exact_shepard(power):
    def height(points, heights):
        squares = ((points[:, None] - np.array(SITES)) ** 2).sum(-1)
        weights = 1 / (squares + STEP**8) ** (mpmath.mpf(power) / 2)
        return (weights * heights).sum(1) / weights.sum(1)

    return height


def _pooled(x, variance):
    return tf.reduce_sum(x / variance) / tf.reduce_sum(1 / variance)


def _exact_pooled(x, variance):
    weights = 1 / (variance + STEP**4)
    return (x * weights).sum() / weights.sum()


def _robust_mean(x, v):
    return tf.reduce_sum(v / (1 + x**2)) / tf.reduce_sum(1 / (1 + x**2))


def _exact_robust_mean(x, v):
    return (v / (1 + x**2)).sum() / (1 / (1 + x**2)).sum()


def _similarity(y):
    squares = tf.reduce_sum((y[:, None] - y) ** 2, -1)
    kernel = 1 / (1 + squares) * (1 - tf.eye(3))
    return kernel / tf.reduce_sum(kernel) * WEIGHTS


def _exact_similarity(y):
    kernel = 1 / (1 + ((y[:, None] - y) ** 2).sum(-1)) * (1 - np.eye(3))
    return kernel / kernel.sum() * WEIGHTS.astype(float)


def _jensen_shannon(x):
    p, q = x[0], x[1]
    mean = (p + q) / 2
    first = tf.reduce_sum(p * tf.math.log(p / mean))
    return 0.5 * first + 0.5 * tf.reduce_sum(q * tf.math.log(q / mean))


def _exact_jensen_shannon(x):
    p, q = off_zero(x)
    mean = (p + q) / 2
    return ((p * m.log(p / mean)).sum() + (q * m.log(q / mean)).sum()) / 2


def _group_norm(x):
    y = keras.ops.reshape(x, (1, 2, 4))
    mean = keras.ops.mean(y, axis=-1, keepdims=True)
    square = keras.ops.mean(keras.ops.square(y), axis=-1, keepdims=True)
    variance = square - keras.ops.square(mean)
    return (y - mean) / keras.ops.sqrt(variance + 1e-3) * [1.0, 2.0, 4.0, 8.0]


def _exact_group_norm(x):
    y = x.reshape(2, 4)
    centred = y - y.mean(1, keepdims=True)
    variance = (centred**2).mean(1, keepdims=True)
    return centred / m.sqrt(variance + mpmath.mpf(1) / 1000) * [1, 2, 4, 8]


def _rotation(v):
    angle = tf.norm(v)
    x, y, z = tf.unstack(v / angle)
    zero = 0.0 * angle
    skew = tf.reshape(tf.stack([zero, -z, y, z, zero, -x, -y, x, zero]), [3, 3])
    turned = tf.sin(angle) * skew + (1 - tf.cos(angle)) * skew @ skew
    return (tf.eye(3) + turned) * WEIGHTS


def _exact_rotation(v):
    x, y, z = v
    skew = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]], object)
    square = (v**2).sum() + STEP**8
    angle = m.sqrt(square)
    turned = m.sin(angle) / angle * skew + (1 - m.cos(angle)) / square * skew @ skew
    return (np.eye(3) + turned) * WEIGHTS.astype(float)


def _of_sites(name, function, power):
    return Formula(
        name,
        function,
        _exact_shepard(power),
        [[[0.0, 0.0], [0.3, 0.3]], HEIGHTS],
        [[[0.4, 0.3], [0.2, 0.1]], HEIGHTS],
        slopes="finite",
    )


FORMULAS = [
    Formula(
        "payment of a long mortgage",
        _payment,
        _exact_payment,
        [[0.0, 0.05, 0.01], [10.0, 4000.0, 12.0]],
        [[0.05, 0.01], [30.0, 12.0]],
    ),
    Formula(
        "mean energy above the ground",
        lambda x: x * tf.exp(x) / (tf.exp(x) - 1),
        lambda x: off_zero(x) / -m.expm1(-off_zero(x)),
        [[0.0, 200.0, 0.5]],
        [[0.5, 3.0, -1.0]],
    ),
    Formula(
        "bond price by Cox, Ingersoll and Ross",
        _bond,
        _exact_bond,
        [[100.0, 0.5], [1.0, 2.0]],
        [[0.5, 0.75], [1.0, 2.0]],
    ),
    Formula(
        "root of a nearly linear equation",
        _root,
        _exact_root,
        [[1e-9, 0.0, 0.5], [1.0, 2.0, 3.0], [0.25, 0.5, 0.5]],
        [[0.5, 0.5], [1.0, 3.0], [0.25, 0.5]],
    ),
    Formula(
        "other root of a nearly linear equation",
        _other_root,
        _exact_other_root,
        [[1e-9, 0.0, 0.5], [-1.0, -2.0, -3.0], [0.25, 0.5, 0.5]],
        [[0.5, 0.5], [1.0, 3.0], [0.25, 0.5]],
    ),
    Formula(
        "fraction bound under depletion",
        _bound,
        _exact_bound,
        [[1e-6, 1.0, 1e6], [1.0, 2.0, 1.0]],
        [[0.5, 2.0], [1.0, 0.25]],
    ),
    Formula(
        "smooth minimum of photosynthesis",
        _smooth_minimum,
        _exact_smooth_minimum,
        [[0.0, 1e-9, 0.5], [1.0, 3.0, 1.0], [2.0, 4.0, 2.0]],
        [[0.5, 0.9], [1.0, 3.0], [2.0, 4.0]],
    ),
    _of_sites("inverse-distance interpolation at a site", _shepard(2), 2),
    _of_sites("inverse-cube interpolation at a site", _shepard(3.0), 3),
    _of_sites("features of the nearest points at a point", _nearest, 2),
    Formula(
        "mean pooled by inverse variances, one exact",
        _pooled,
        _exact_pooled,
        [[1.0, 2.0], [0.0, 1.0]],
        [[1.0, 2.0], [0.5, 1.0]],
        slopes="finite",
    ),
    Formula(
        "mean by inverse fourth powers of small distances",
        lambda x, d: tf.reduce_sum(x / d**4) / tf.reduce_sum(1 / d**4),
        lambda x, d: (x / d**4).sum() / (1 / d**4).sum(),
        [[1.0, 2.0], [1e-12, 2e-12]],
        [[1.0, 2.0], [0.5, 1.0]],
    ),
    Formula(
        "mean with weights of Cauchy, far from 0",
        _robust_mean,
        _exact_robust_mean,
        [[1e20, 2e20, 1.5e20], HEIGHTS],
        [[0.5, 1.0, 2.0], HEIGHTS],
    ),
    Formula(
        "similarities of an embedding whose points are far apart",
        _similarity,
        _exact_similarity,
        [FAR],
        [NEAR],
    ),
    Formula(
        "Jensen-Shannon divergence with a bin that both lack",
        _jensen_shannon,
        _exact_jensen_shannon,
        [[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]],
        [[[0.5, 0.25, 0.25], [0.25, 0.125, 0.625]]],
        slopes="finite",
    ),
    Formula(
        "Renyi entropy of an order with an axis, near Shannon's",
        lambda q, p: tf.math.log(tf.reduce_sum(p**q)) / (1 - q),
        lambda q, p: m.log((p ** (q + STEP**2)).sum()) / (1 - q - STEP**2),
        [[1.0], [0.5, 0.25, 0.25]],
        [[0.5], [0.5, 0.25, 0.25]],
        slopes="finite",
    ),
    Formula(
        "group normalisation by keras.ops in float16",
        _group_norm,
        _exact_group_norm,
        [[[300.0, -300.0, 310.0, 5.0, 500.0, 400.0, -600.0, 200.0]]],
        [[[1.0, 2.0, -0.5, 0.25, 0.5, -1.0, 3.0, 1.0]]],
        dtype="float16",
    ),
    Formula(
        "rotation whose skew matrix has zeros by multiplication",
        _rotation,
        _exact_rotation,
        [[0.0, 0.0, 0.0]],
        [[0.25, 0.125, -0.5]],
    ),
]
