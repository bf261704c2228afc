"""Arguments that are inside a domain by construction, and outside by rounding."""

import math

import mpmath
import numpy as np
import tensorflow as tf

from tests.collection.formula import Formula, m

U = [[0.6, 0.8, 0.1], [0.1, 0.7, 0.3]]


def _normalised(u):
    return u / tf.norm(u, axis=-1, keepdims=True)


def _angle(u, v):
    return tf.acos(tf.reduce_sum(_normalised(u) * _normalised(v), -1))


def _exact_cosine(u, v):
    return (u * v).sum(-1) / m.sqrt((u * u).sum(-1) * (v * v).sum(-1))


def _margin(u, v):
    angle = tf.acos(tf.reduce_sum(_normalised(u) * _normalised(v), -1))
    return tf.cos(angle + 0.5)


def _sine_margin(u, v):
    cosine = tf.reduce_sum(tf.nn.l2_normalize(u, -1) * tf.nn.l2_normalize(v, -1), -1)
    sine = tf.sqrt(1 - cosine**2)
    return cosine * tf.cos(0.5) - sine * tf.sin(0.5)


def _network_kernel(u, v):
    cosine = tf.reduce_sum(u * v, -1) / (tf.norm(u, axis=-1) * tf.norm(v, axis=-1))
    angle = tf.acos(cosine)
    return tf.sqrt(1 - cosine**2) + (math.pi - angle) * cosine


def _exact_network_kernel(u, v):
    cosine = np.minimum(_exact_cosine(u, v), 1)
    return m.sqrt(1 - cosine**2) + (mpmath.pi - m.acos(cosine)) * cosine


def _haversine(a, b):
    half = tf.sin((b - a) / 2) ** 2
    h = half[0] + tf.cos(a[0]) * tf.cos(b[0]) * half[1]
    return 2 * tf.asin(tf.sqrt(h))


def _great_circle(a, b):
    return tf.acos(
        tf.sin(a[0]) * tf.sin(b[0]) + tf.cos(a[0]) * tf.cos(b[0]) * tf.cos(a[1] - b[1])
    )


def _exact_circle(a, b):
    c = m.sin(a[0]) * m.sin(b[0]) + m.cos(a[0]) * m.cos(b[0]) * m.cos(a[1] - b[1])
    return m.acos(c)


def _std(x):
    return tf.sqrt(tf.reduce_mean(x * x, -1) - tf.reduce_mean(x, -1) ** 2)


def _exact_std(x):
    d = x - x.mean(-1, keepdims=True)
    return m.sqrt((d * d).mean(-1))


def _rotation_angle(r):
    return tf.acos((tf.linalg.trace(r) - 1) / 2)


def _log_odds(x):
    return tf.math.log((1 + x) / (1 - x))


def _exact_atanh_of_tangents(x):
    return m.atanh(np.prod(m.tanh(x / 2), axis=0))


FORMULAS = [
    Formula(
        "angle between a vector and itself",
        _angle,
        lambda u, v: m.acos(_exact_cosine(u, v)),
        [U, U],
        [U, [[0.1, 0.2, 0.9], [0.9, 0.1, 0.2]]],
        slopes="finite",
    ),
    Formula(
        "additive angular margin of equal vectors",
        _margin,
        lambda u, v: m.cos(m.acos(_exact_cosine(u, v)) + 0.5),
        [U, U],
        [U, [[0.1, 0.2, 0.9], [0.9, 0.1, 0.2]]],
        slopes="finite",
    ),
    Formula(
        "margin with the sine from the cosine",
        _sine_margin,
        lambda u, v: (
            _exact_cosine(u, v) * m.cos(0.5)
            - m.sqrt(1 - _exact_cosine(u, v) ** 2) * m.sin(0.5)
        ),
        [U, U],
        [U, [[0.1, 0.2, 0.9], [0.9, 0.1, 0.2]]],
        slopes="finite",
    ),
    Formula(
        "haversine of one place",
        _haversine,
        _exact_circle,
        [[0.7, 0.2], [0.7, 0.2]],
        [[0.7, 0.2], [0.1, 1.4]],
        slopes="finite",
    ),
    Formula(
        "great circle by the cosine rule",
        _great_circle,
        _exact_circle,
        [[0.7, 0.2], [0.7, 0.2]],
        [[0.7, 0.2], [0.1, 1.4]],
        slopes="finite",
    ),
    Formula(
        "deviation of a constant by raw moments",
        _std,
        _exact_std,
        [[[1000.1] * 5, [1.0, 2.0, 3.0, 4.0, 5.0]]],
        [[[1.0, 2.0, 3.0, 4.0, 5.5]]],
        slopes="finite",
    ),
    Formula(
        "rotation angle of the identity from the trace",
        _rotation_angle,
        lambda r: m.acos((r[0, 0] + r[1, 1] + r[2, 2] - 1) / 2),
        [[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]],
        [[[0.8, -0.6, 0.0], [0.6, 0.8, 0.0], [0.0, 0.0, 1.0]]],
        slopes="finite",
    ),
    Formula(
        "log of one minus a probability that rounds to 1",
        lambda z: tf.math.log(1 - tf.sigmoid(z)),
        lambda z: -m.log1p(m.exp(z)),
        [[20.0, 0.3, -4.0]],
        [[0.5, -1.0]],
    ),
    Formula(
        "sine from a cosine of one",
        lambda a: tf.sqrt(1 - tf.cos(a) ** 2),
        lambda a: abs(m.sin(a)),
        [[1e-4, 0.5, 1.0]],
        [[0.5, 1.0]],
    ),
    Formula(
        "hyperbolic distance of the Poincare ball",
        lambda u, v: tf.acosh(
            1
            + 2
            * tf.reduce_sum((u - v) ** 2, -1)
            / ((1 - tf.reduce_sum(u * u, -1)) * (1 - tf.reduce_sum(v * v, -1)))
        ),
        lambda u, v: m.acosh(
            1
            + 2
            * ((u - v) ** 2).sum(-1)
            / ((1 - (u * u).sum(-1)) * (1 - (v * v).sum(-1)))
        ),
        [[[0.1, 0.2], [0.3, 0.4]], [[0.1, 0.2], [0.3, 0.4001]]],
        [[[0.1, 0.2]], [[0.5, -0.4]]],
        slopes="finite",
    ),
    Formula(
        "kernel of a wide network of a vector and itself",
        _network_kernel,
        _exact_network_kernel,
        [U, U],
        [U, [[0.1, 0.2, 0.9], [0.9, 0.1, 0.2]]],
        slopes="finite",
    ),
    Formula(
        "message of a parity check of two bits",
        lambda a, b: 2 * tf.atanh(tf.tanh(a / 2) * -tf.tanh(b / 2)),
        lambda a, b: 2 * _exact_atanh_of_tangents(np.stack([-a, b])),
        [[1.0, 30.0, 50.0, -40.0, 0.0], [2.0, 30.0, 80.0, 60.0, 40.0]],
        [[1.0, -0.1, 3.0], [2.0, 4.0, 1e-4]],
    ),
    Formula(
        "message of a parity check along an axis",
        lambda x: 2 * tf.atanh(tf.reduce_prod(tf.tanh(0.5 * x), -1)),
        lambda x: 2 * _exact_atanh_of_tangents(x.T),
        [[[3.0, 40.0, 50.0], [30.0, 30.0, -30.0], [0.0, 3.0, 30.0]]],
        [[[1.0, -0.1, 3.0], [2.0, 4.0, 1e-4]]],
    ),
    Formula(
        "message of a parity check by odds",
        lambda a, b: _log_odds(tf.tanh(a / 2) * tf.tanh(b / 2)),
        lambda a, b: 2 * _exact_atanh_of_tangents(np.stack([a, b])),
        [[30.0, 50.0, -40.0], [30.0, 80.0, 60.0]],
        [[1.0, -0.1, 3.0], [2.0, 4.0, 1e-2]],
    ),
]
