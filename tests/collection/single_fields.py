"""Formulas of ecology, finance, rendering, routing and statistics with a limit."""

import numpy as np
import tensorflow as tf

from tests.collection.formula import Formula, m, off_zero

exp, log = tf.exp, tf.math.log


def _renormalised_top(logits):
    values, _ = tf.math.top_k(tf.sigmoid(logits), 2)
    return tf.square(values / tf.reduce_sum(values, -1, keepdims=True))


def _exact_top(logits):
    top = 1 / (1 + m.exp(-np.sort(logits, -1)[:, ::-1][:, :2]))
    return (top / top.sum(-1, keepdims=True)) ** 2


def _scaled_tanh(x):
    return 50.0 * (exp(2 * x) - 1) / (exp(2 * x) + 1)


def _pareto(k, x, s):
    return -log(s) - (1 / k + 1) * log(1 + k * (x / s))


def _exact_pareto(k, x, s):
    k = off_zero(k)
    return -m.log(s) - (1 / k + 1) * m.log(1 + k * x / s)


def _transport(costs):
    kernel = exp(-costs / 0.01)
    left = tf.ones([2, 1]) / 2
    right = 0.5 / tf.matmul(kernel, left, transpose_a=True)
    left = 0.5 / tf.matmul(kernel, right)
    plan = left * kernel * tf.transpose(right)
    return tf.reduce_sum(plan * costs)


def _exact_transport(costs):
    kernel = m.exp(-costs / 0.01)
    right = 0.5 / (kernel.T @ np.array([[0.5], [0.5]]))
    left = 0.5 / (kernel @ right)
    return (left * kernel * right.T * costs).sum()


def _skewness(x):
    d = x - tf.reduce_mean(x, -1, keepdims=True)
    return tf.reduce_mean(d**3, -1) / tf.reduce_mean(d**2, -1) ** 1.5


def _exact_skewness(x):
    d = x - x.mean(-1, keepdims=True)
    return (d**3).mean(-1) / (d**2).mean(-1) ** 1.5


def _microfacets(a, h):
    below = tf.square(h) * (tf.square(a) - 1) + 1
    return tf.square(a) / (np.pi * tf.square(below))


def _robust(a, x):
    b = tf.abs(a - 2)
    return b / a * (tf.pow(tf.square(x) / b + 1, a / 2) - 1)


def _exact_robust(a, x):
    a = off_zero(a)
    return abs(a - 2) / a * ((x**2 / abs(a - 2) + 1) ** (a / 2) - 1)


def _mobius(x):
    size = tf.norm(x, axis=-1, keepdims=True)
    return tf.tanh(3 * tf.atanh(size)) * x / size


def _exact_mobius(x):
    size = off_zero((x**2).sum(-1, keepdims=True)) ** 0.5
    return m.tanh(3 * m.atanh(size)) * x / size


def _opacity(distances):
    inside = tf.sigmoid(distances)
    first, second = inside[:, 0], inside[:, 1]
    return (first - second) / first


FORMULAS = [
    Formula(
        "two renormalised gates of a router",
        _renormalised_top,
        _exact_top,
        [[[-300.0, -301.0, -500.0]]],
        [[[-3.0, -1.0, -5.0]]],
    ),
    Formula(
        "logits capped by a tanh of exponentials",
        _scaled_tanh,
        lambda x: 50 * m.tanh(x),
        [[100.0, 0.3]],
        [[1.0, 0.3]],
    ),
    Formula(
        "log density of a generalised Pareto distribution",
        _pareto,
        _exact_pareto,
        [[0.0, 0.1], [1.0, 2.0], [2.0, 2.0]],
        [[0.3, 0.1], [1.0, 2.0], [2.0, 2.0]],
    ),
    Formula(
        "logistic growth of a fraction after a long time",
        lambda t, p: p * exp(t) / (1 + p * (exp(t) - 1)),
        lambda t, p: p * m.exp(t) / (1 + p * (m.exp(t) - 1)),
        [[0.0, 500.0], [0.3, 0.4]],
        [[1.0, 5.0], [0.3, 0.4]],
    ),
    Formula(
        "Student's loss of a large residual",
        lambda x, n: (n + 1) / 2 * log(1 + x**2 / n),
        lambda x, n: (n + 1) / 2 * m.log(1 + x**2 / n),
        [[1e25, 0.3], [3.0, 4.0]],
        [[1.0, 0.3], [3.0, 4.0]],
    ),
    Formula(
        "cost of a transport whose kernel underflows",
        _transport,
        _exact_transport,
        [[[5.0, 6.0], [6.25, 5.0]]],
        [[[0.0, 0.125], [0.25, 0.0]]],
        slopes="finite",
    ),
    Formula(
        "skewness of nearly equal numbers",
        _skewness,
        _exact_skewness,
        [[[1e-15, 2e-15, 6e-15]]],
        [[[1.0, 2.0, 4.0]]],
    ),
    Formula(
        "Trowbridge-Reitz distribution of a smooth surface",
        _microfacets,
        lambda a, h: a**2 / (np.pi * (h**2 * (a**2 - 1) + 1) ** 2),
        [[1e-4, 0.5], [1.0, 0.9]],
        [[0.3, 0.5], [0.8, 0.9]],
    ),
    Formula(
        "general robust loss in the limit of Cauchy's",
        _robust,
        _exact_robust,
        [[0.0, 1.0], [1.0, 3.0]],
        [[0.5, 1.0], [1.0, 3.0]],
    ),
    Formula(
        "Moebius scalar product at the origin",
        _mobius,
        _exact_mobius,
        [[[0.0, 0.0], [0.1, 0.2]]],
        [[[0.3, 0.2], [0.1, 0.4]]],
    ),
    Formula(
        "displacement of a vehicle that drives straight",
        lambda w, t: (1 - tf.cos(w * t)) / w,
        lambda w, t: (1 - m.cos(off_zero(w) * t)) / off_zero(w),
        [[0.0, 1e-3], [2.0, 2.0]],
        [[0.1, 0.5], [2.0, 2.0]],
    ),
    Formula(
        "rate of a hurdle with a small mean",
        lambda x: log(x) - log(1 - exp(-x)),
        lambda x: m.log(x) - m.log(1 - m.exp(-x)),
        [[1e-9, 3.0]],
        [[0.5, 3.0]],
    ),
    Formula(
        "opacity between two signed distances deep inside",
        _opacity,
        lambda s: 1 - (1 + m.exp(-s[:, 0])) / (1 + m.exp(-s[:, 1])),
        [[[-100.0, -101.0]]],
        [[[0.1, -0.2]]],
    ),
    Formula(
        "van Leer limiter in a constant region",
        lambda a, b: (a / b + tf.abs(a / b)) / (1 + tf.abs(a / b)),
        lambda a, b: np.where(
            np.equal(b, 0), 0, (a + abs(a)) / (np.where(np.equal(b, 0), 1, b) + abs(a))
        ),
        [[0.0, 1.0], [0.0, 2.0]],
        [[1.0, 3.0], [0.5, 1.0]],
        slopes="finite",
    ),
    Formula(
        "masked sum of log-gammas with a pole",
        lambda x, w: tf.reduce_sum(tf.math.lgamma(x) * w),
        lambda x, w: m.loggamma(np.where(np.equal(x, 0), 1, x)) * w,
        [[0.0, 3.0], [0.0, 1.0]],
        [[2.5, 3.0], [1.0, 1.0]],
        slopes="finite",
    ),
    Formula(
        "quotient of two squares that underflow",
        lambda a, b: a**2 / (2 * b**2),
        lambda a, b: a**2 / (2 * b**2),
        [[1e-25, 1.0], [1e-25, 2.0]],
        [[0.3, 1.0], [0.5, 2.0]],
    ),
    Formula(
        "half a quotient of two cubes that underflow",
        lambda a, b: 0.5 * a**3 / b**3,
        lambda a, b: 0.5 * a**3 / b**3,
        [[1e-20, 1.0], [2e-20, 2.0]],
        [[0.3, 1.0], [0.5, 2.0]],
    ),
    Formula(
        "normalised squared error of a faint signal",
        lambda p, y: tf.reduce_sum((p - y) ** 2) / tf.reduce_sum(y**2),
        lambda p, y: (
            sum((a - b) ** 2 for a, b in zip(p, y, strict=True)) / sum(b**2 for b in y)
        ),
        [[1e-25, 3e-25], [2e-25, 1e-25]],
        [[0.3, 1.0], [0.5, 2.0]],
    ),
    Formula(
        "quotient of two squares behind where",
        lambda a, b, used: tf.where(used, a**2 / b**2, 0.0),
        lambda a, b, used: np.where(used, a**2 / np.where(used, b, 1) ** 2, 0),
        [[1.0, 1e-25], [0.0, 1e-25], [False, True]],
        [[0.3, 1.0], [0.5, 2.0], [True, True]],
    ),
]
