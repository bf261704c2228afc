"""float16 formulas that other rules take apart, that choose, or that are long."""

import numpy as np
import tensorflow as tf

from tests.collection.formula import Formula, m

BIG, SMALL = [300.0, 400.0, 100.0, 200.0], [3.0, 4.0, 1.0, 2.0]
W = np.array([0.5, -1.0, 0.25, 2.0])
BOXES = [[[10.0, 20.0, 500.0, 640.0]], [[50.0, 70.0, 640.0, 600.0]]]
SMALL_BOXES = [[[1.0, 2.0, 5.0, 6.5]], [[1.5, 3.0, 6.0, 6.0]]]


def _overlap(a, b, larger, smaller):
    width = smaller(a[:, 2], b[:, 2]) - larger(a[:, 0], b[:, 0])
    height = smaller(a[:, 3], b[:, 3]) - larger(a[:, 1], b[:, 1])
    inside = width * height
    whole = (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1])
    whole += (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
    return inside / (whole - inside)


def _apart(a, b, larger, smaller):
    width = larger(a[:, 2], b[:, 2]) - smaller(a[:, 0], b[:, 0])
    height = larger(a[:, 3], b[:, 3]) - smaller(a[:, 1], b[:, 1])
    x = a[:, 0] + a[:, 2] - b[:, 0] - b[:, 2]
    y = a[:, 1] + a[:, 3] - b[:, 1] - b[:, 3]
    return (x**2 + y**2) / (width**2 + height**2) / 4


def _focal_distance(a, b):
    overlap = _overlap(a, b, tf.maximum, tf.minimum)
    apart = _apart(a, b, tf.maximum, tf.minimum)
    return tf.sqrt(overlap) * (1 - overlap + apart)


def _exact_focal_distance(a, b):
    overlap = _overlap(a, b, np.maximum, np.minimum)
    apart = _apart(a, b, np.maximum, np.minimum)
    return (m.sqrt(overlap) * (1 - overlap + apart)).sum()


def _gated(x):
    gate = x * tf.sigmoid(x) * 16
    root = tf.sqrt(tf.reduce_mean(gate * gate, keepdims=True) + 1e-6)
    return gate / root * tf.cast(W, x.dtype)


def _exact_gated(x):
    gate = x / (1 + m.exp(-x)) * 16
    root = m.sqrt((gate * gate).mean() + m.mpf(float(np.float16(1e-6))))
    return (gate / root * W).sum()


def _nearest(x, y):
    squares = tf.reduce_sum(x**2, 1, keepdims=True) + tf.reduce_sum(y**2, 1)
    squares -= 2 * tf.matmul(x, tf.transpose(y))
    return tf.sqrt(tf.reduce_min(tf.maximum(squares, 0), 1))


def _exact_nearest(x, y):
    squares = ((x[:, None] - y[None]) ** 2).sum(-1)
    return sum(m.sqrt(min(row)) for row in squares)


def _exact_clipped(x):
    return (x * 2 / m.sqrt((x * x).sum()) * W).sum()


FORMULAS = [
    Formula(name, function, exact, bad, ordinary, dtype="float16")
    for name, function, exact, bad, ordinary in (
        (
            "focal loss of the distance of boxes in pixels",
            _focal_distance,
            _exact_focal_distance,
            BOXES,
            SMALL_BOXES,
        ),
        (
            "1 less a power of the overlap of boxes in pixels",
            lambda a, b: 1 - _overlap(a, b, tf.maximum, tf.minimum) ** 3,
            lambda a, b: (1 - _overlap(a, b, np.maximum, np.minimum) ** 3).sum(),
            BOXES,
            SMALL_BOXES,
        ),
        (
            "RMS norm of a gate with an epsilon",
            _gated,
            _exact_gated,
            [[60.0, 50.0, 30.0, 40.0]],
            [SMALL],
        ),
        (
            "distance of the nearest point by products",
            _nearest,
            _exact_nearest,
            [[BIG, BIG[::-1]], [SMALL, BIG[1:] + BIG[:1]]],
            [[SMALL, SMALL[::-1]], [SMALL[1:] + SMALL[:1], [1.0, 1.0, 1.0, 0.5]]],
        ),
        (
            "gradient that is clipped by its norm",
            lambda x: tf.clip_by_norm(x, 2.0) * tf.cast(W, x.dtype),
            _exact_clipped,
            [BIG],
            [SMALL],
        ),
        (
            "running mean",
            lambda x: tf.cumsum(x) / tf.cast(tf.range(1, 65), x.dtype),
            lambda x: sum(x[: i + 1].sum() / (i + 1) for i in range(64)),
            [np.linspace(1900.0, 2100.0, 64)],
            [np.linspace(1.0, 2.0, 64)],
        ),
    )
]
