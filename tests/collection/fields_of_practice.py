"""Formulas of optics, economics, genetics, chemistry and training, of a few tensors."""

import math

import numpy as np
import tensorflow as tf

from tests.collection.formula import Formula, m, off_zero

sqrt, exp, log = tf.sqrt, tf.exp, tf.math.log


def _variance(x):
    return tf.reduce_mean((x - tf.reduce_mean(x)) ** 2)


def _exact_variance(x):
    return np.mean((x - np.mean(x)) ** 2)


def _radial(x, y, z):
    radius = sqrt(x * x + y * y)
    return tf.atan2(radius, z) * x / radius


def _exact_radial(x, y, z):
    radius = m.sqrt(off_zero(x) ** 2 + y**2)
    return m.atan2(radius, z) * x / radius


def _effectiveness(exp, modulus):
    square = exp(2 * modulus)
    return (square - 1) / (square + 1) / modulus


def _free(sqrt, enzyme, drug, constant):
    total = enzyme + drug + constant
    bound = total - sqrt(total * total - 4 * enzyme * drug)
    return 1 - bound / (2 * enzyme)


def _by_length(gradient, weight):
    lengths = [
        sqrt(tf.reduce_sum(tf.square(each), -1, keepdims=True))
        for each in (weight, gradient)
    ]
    return gradient * (lengths[0] / lengths[1])


def _exact_by_length(gradient, weight):
    above, below = (
        m.sqrt((each**2).sum(-1, keepdims=True)) for each in (weight, gradient)
    )
    return gradient * (above / below)


def _along_circle(x, step):
    angle = sqrt(tf.reduce_sum(step * step, -1, keepdims=True))
    return tf.cos(angle) * x + step * (tf.sin(angle) / angle)


def _exact_along_circle(x, step):
    angle = m.sqrt((off_zero(step) ** 2).sum(-1, keepdims=True))
    return m.cos(angle) * x + step * (m.sin(angle) / angle)


def _production(capital, labour, share, power):
    whole = share * capital**power + (1 - share) * labour**power
    return whole ** (1 / power)


def _exact_production(capital, labour, share, power):
    power = off_zero(power)
    whole = share * m.power(capital, power) + (1 - share) * m.power(labour, power)
    return m.power(whole, 1 / power)


def _returned(x):
    root = tf.sqrt(1 + 0.5 * (tf.abs(x) + 1.125))
    return tf.sign(x) * ((4 * (root - 1)) ** 2 - 1)


def _apart(a, b):
    return off_zero(a - b)


FORMULAS = [
    Formula(
        "deviation of each feature of a batch",
        lambda x: sqrt(tf.reduce_mean((x - tf.reduce_mean(x, 0)) ** 2, 0)),
        lambda x: m.sqrt(np.mean((x - np.mean(x, 0)) ** 2, 0)),
        [[[1e22, 1e-25], [3e22, 2e-25], [4e22, 5e-25]]],
        [[[1.0, 2.0], [3.0, 2.5], [4.0, 5.0]]],
    ),
    Formula(
        "logarithm of the ratio of two variances",
        lambda x, y: log(_variance(x) / _variance(y)),
        lambda x, y: m.log(_exact_variance(x) / _exact_variance(y)),
        [[1e-25, 2e-25, 4e-25], [1.0, 2.0, 3.0]],
        [[1.0, 2.0, 4.0], [1.0, 2.0, 3.5]],
    ),
    Formula(
        "distance of two sequences by transitions and transversions",
        lambda p, q: -0.5 * log(1 - 2 * p - q) - 0.25 * log(1 - 2 * q),
        lambda p, q: -0.5 * m.log(1 - 2 * p - q) - 0.25 * m.log(1 - 2 * q),
        [[1e-8, 3e-7], [1e-8, 2e-8]],
        [[0.1, 0.3], [0.05, 0.2]],
    ),
    Formula(
        "distance of two pitches on the mel scale",
        lambda f, g: 1127 * log(1 + f / 700) - 1127 * log(1 + g / 700),
        lambda f, g: 1127 * m.log(1 + f / 700) - 1127 * m.log(1 + g / 700),
        [[440.0, 8000.0], [440.00003, 8000.01]],
        [[440.0, 8000.0], [220.0, 4000.0]],
    ),
    Formula(
        "noise of a long step of a multistep solver",
        lambda h, noise: noise * (exp(h) - 1) / exp(h),
        lambda h, noise: noise * (m.exp(h) - 1) / m.exp(h),
        [[100.0, 200.0, 1e-5], [1.0, -2.0, 3.0]],
        [[1.0, 0.5, 2.0], [1.0, -2.0, 3.0]],
    ),
    Formula(
        "effectiveness of a catalyst by exponentials",
        lambda x: _effectiveness(exp, x),
        lambda x: _effectiveness(m.exp, off_zero(x)),
        [[0.0, 1e-4, 100.0]],
        [[0.5, 1.0, 3.0]],
    ),
    Formula(
        "undistorted radius of a lens",
        lambda r, k: (1 - sqrt(1 - 4 * k * r * r)) / (2 * k * r),
        lambda r, k: (
            (1 - m.sqrt(1 - 4 * off_zero(k) * off_zero(r) ** 2))
            / (2 * off_zero(k) * off_zero(r))
        ),
        [[0.5, 0.5, 0.0], [0.0, 1e-8, 0.3]],
        [[0.5, 0.7, 0.2], [-0.3, 0.2, 0.4]],
    ),
    Formula(
        "scale of the input of a gated recurrence that hardly forgets",
        lambda decay, r: sqrt(1 - (tf.sigmoid(decay) ** (8 * tf.sigmoid(r))) ** 2),
        lambda decay, r: m.sqrt(
            -m.expm1(-16 * m.log1p(m.exp(-decay)) / (1 + m.exp(-r)))
        ),
        [[20.0, 25.0, 3.0], [0.5, 1.0, -1.0]],
        [[2.0, 3.0], [0.5, -1.0]],
    ),
    Formula(
        "impurity of classes that are sure",
        lambda x: 1 - tf.reduce_sum(tf.square(tf.nn.softmax(x)), -1),
        lambda x: [
            (e * (e.sum() - e)).sum() / e.sum() ** 2 for e in (m.exp(row) for row in x)
        ],
        [[[20.0, 1.0, 0.0], [3.0, 40.0, 1.0]]],
        [[[1.0, 0.5, 0.0], [1.0, 2.0, 3.0]]],
    ),
    Formula(
        "latitude of a point of a map near the equator",
        lambda y: 2 * tf.atan(tf.exp(y)) - math.pi / 2,
        lambda y: m.atan(m.sinh(y)),
        [[1e-6, 2e-6]],
        [[0.5, -1.0]],
    ),
    Formula(
        "flux of ions of one concentration on both sides",
        lambda p, v, a, b: p * v * (a - b * exp(-v)) / (1 - exp(-v)),
        lambda p, v, a, b: p * v * (a - b * m.exp(-v)) / -m.expm1(-v),
        [[1.0, 2.0], [1.3e-6, -1e-6], [3.0, 2.0], [3.0, 2.0]],
        [[1.0, 2.0], [0.5, -1.0], [3.0, 2.0], [2.0, 3.0]],
    ),
    Formula(
        "pixel of a fisheye camera",
        _radial,
        _exact_radial,
        [[1e22, 1e-25, 0.0], [1e22, 0.0, 0.0], [2e22, 2.0, 1.0]],
        [[1.0, 0.5], [0.2, -0.3], [1.0, -2.0]],
        slopes="finite",
    ),
    Formula(
        "distance of two Gaussians by their variances, none",
        lambda a, b: a + b - 2 * sqrt(a * b),
        lambda a, b: a + b - 2 * m.sqrt(a * b),
        [[0.0, 1.0], [0.0, 1.0001]],
        [[1.0, 2.0], [2.0, 5.0]],
        slopes="finite",
    ),
    Formula(
        "output of two factors by their shares",
        _production,
        _exact_production,
        [[2.0, 1e20, 1e-20], [3.0, 1e18, 1e-18], [0.3, 0.3, 0.6], [1e-6, -2.0, 3.0]],
        [[2.0, 3.0], [3.0, 1.0], [0.3, 0.6], [0.5, -1.0]],
    ),
    Formula(
        "mean of what a causal mask has left so far",
        lambda x, mask: tf.cumsum(x * mask, -1) / tf.cumsum(mask, -1),
        lambda x, mask: np.where(
            np.cumsum(mask, -1) == 0,
            0 * x,
            np.cumsum(x * mask, -1) / np.maximum(np.cumsum(mask, -1), 0.5),
        ),
        [[[1.0, 2.0, 3.0]], [[0.0, 1.0, 1.0]]],
        [[[1.0, 2.0, 3.0]], [[1.0, 1.0, 1.0]]],
        slopes="finite",
    ),
    Formula(
        "gradient as long as the weights",
        _by_length,
        _exact_by_length,
        [[[1e-25, 2e-25], [1e-22, 0.0]], [[1e-25, 1.0], [2.0, 1.0]]],
        [[[1.0, 2.0], [3.0, 0.5]], [[2.0, 1.0], [2.0, 1.0]]],
    ),
    Formula(
        "point that is a step along a great circle away",
        _along_circle,
        _exact_along_circle,
        [[[1.0, 0.0], [0.6, 0.8]], [[0.0, 0.0], [1e-25, 0.0]]],
        [[[1.0, 0.0], [0.6, 0.8]], [[0.0, 0.5], [-0.4, 0.3]]],
    ),
    Formula(
        "gain of a filter by the ratio of a loud signal to its noise",
        lambda signal, noise: (signal / noise) / (1 + signal / noise),
        lambda signal, noise: signal / (signal + noise),
        [[1e-30, 1e6], [1e-35, 1e-2]],
        [[1.0, 2.0], [0.5, 3.0]],
    ),
    Formula(
        "screening of free electrons",
        lambda x: 0.5 + (1 - x * x) / (4 * x) * log(tf.abs((1 + x) / (1 - x))),
        lambda x: 0.5 + (1 - x**2) / (4 * x) * m.log(abs((1 + x) / (1 - x))),
        [[1e-4, 1e-5]],
        [[0.5, 2.0]],
        slopes="finite",
    ),
    Formula(
        "fraction of an enzyme that is left free",
        lambda e, d, k: _free(sqrt, e, d, k),
        lambda e, d, k: _free(m.sqrt, e, d, k),
        [[1e-6, 1e-4], [1e-6, 1.0], [1.0, 1e6]],
        [[1.0, 0.5], [2.0, 0.7], [0.5, 0.1]],
    ),
    Formula(
        "sample of silence from its companded one",
        lambda y: tf.sign(y) * (256 ** tf.abs(y) - 1) / 255,
        lambda y: (256**y - 1) / 255,
        [[0.0, 0.5]],
        [[0.25, 1.0]],
    ),
    Formula(
        "dose by two rates that are equal and large",
        lambda a, b: a / (a - b) * (tf.exp(-b) - tf.exp(-a)),
        lambda a, b: a / _apart(a, b) * (m.exp(-b) - m.exp(-b - _apart(a, b))),
        [[1000.0, 2.0], [1000.0, 2.0]],
        [[1.0, 3.0], [2.0, 1.5]],
    ),
    Formula(
        "value of a return of 0 by the inverse of its rescaling",
        _returned,
        lambda x: (4 * (m.sqrt(1.5625 + x / 2) - 1)) ** 2 - 1,
        [[0.0, 2.0]],
        [[0.5, 30.0]],
    ),
    Formula(
        "log-normal density of nothing",
        lambda x, s: tf.exp(-((tf.math.log(x) / s) ** 2)) / (x * s),
        lambda x, s: m.exp(-((m.log(off_zero(x)) / s) ** 2)) / (off_zero(x) * s),
        [[0.0, 0.5], [0.5, 2.0]],
        [[0.25, 3.0], [0.5, 2.0]],
        slopes="finite",
    ),
]
