"""Formulas of sequence models, statistics and sciences, as text books have them."""

import math

import mpmath
import numpy as np
import tensorflow as tf

from tests.collection.formula import Formula, m, off_zero
from tests.collection.limits_of_fields import SHIFT

_ROOT = math.sqrt(2.0)


def _pdf(x):
    return tf.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)


def _cdf(x):
    return 0.5 * (1 + tf.math.erf(x / _ROOT))


def _hazard(x):
    return _pdf(x) / _cdf(x)


def _mean_between(a, b):
    return (_pdf(a) - _pdf(b)) / (_cdf(b) - _cdf(a))


def _mean_in_tail(a, b):
    return (_pdf(a) - _pdf(b)) / (
        0.5 * tf.math.erf(b / _ROOT) - 0.5 * tf.math.erf(a / _ROOT)
    )


def _exact_hazard(x):
    return m.npdf(x) / m.ncdf(x)


def _entropy_of_mixing(x):
    return ((1 + x) * m.log1p(x) - x) / x**2


def _silog(w, p, q):
    return tf.reduce_sum(w * tf.square(tf.math.log(p) - tf.math.log(q)))


def _exact_silog(w, p, q):
    logs = m.log(np.where(w == 0, mpmath.mpf(1), p / np.where(w == 0, 1, q)))
    return (w * logs**2).sum()


FORMULAS = [
    Formula(
        "first-order hold of a state-space model",
        lambda a, d: (tf.exp(d * a) - 1 - d * a) / a**2,
        lambda a, d: (m.exp(d * (a + SHIFT)) - 1 - d * (a + SHIFT)) / (a + SHIFT) ** 2,
        [[0.0, -1e-3], [0.1, 0.1]],
        [[-1.0, -10.0], [1.0, 0.1]],
    ),
    Formula(
        "mean squared displacement of a persistent walk",
        lambda k, t: 2 * (k * t - 1 + tf.exp(-k * t)) / k**2,
        lambda k, t: (
            2 * ((k + SHIFT) * t - 1 + m.exp(-(k + SHIFT) * t)) / (k + SHIFT) ** 2
        ),
        [[0.0, 1e-3], [2.0, 2.0]],
        [[1.0, 3.0], [2.0, 1.0]],
    ),
    Formula(
        "entropy of mixing over the square of a step",
        lambda x: ((1 + x) * tf.math.log1p(x) - x) / x**2,
        lambda x: _entropy_of_mixing(off_zero(x)),
        [[0.0, 1e-9, 1e-4]],
        [[0.5, 1.0, 30.0]],
    ),
    Formula(
        "mean of a scaled normal distribution between two limits",
        lambda mean, s, a, b: mean + s * _mean_between((a - mean) / s, (b - mean) / s),
        lambda mean, s, a, b: (
            mean
            + s
            * (m.npdf((a - mean) / s) - m.npdf((b - mean) / s))
            / (m.ncdf((b - mean) / s) - m.ncdf((a - mean) / s))
        ),
        [0.0, 2.0, [40.0, -90.0], [42.0, -80.0]],
        [0.5, 2.0, [-1.0, 0.0], [1.0, 3.0]],
    ),
    Formula(
        "scale of the input of a gated linear recurrence",
        lambda log_a: tf.sqrt(1 - tf.exp(log_a) ** 2),
        lambda log_a: m.sqrt(1 - m.exp(2 * log_a)),
        [[-1e-6, -1e-4]],
        [[-1.0, -0.1]],
    ),
    Formula(
        "scale of a diagonal recurrence by its exponents",
        lambda nu: tf.sqrt(1 - tf.square(tf.exp(-tf.exp(nu)))),
        lambda nu: m.sqrt(1 - m.exp(-2 * m.exp(nu))),
        [[-15.0, -20.0]],
        [[-1.0, 0.5]],
    ),
    Formula(
        "air pressure at any lapse rate",
        lambda h, rate: (1 - rate * h / 288) ** (0.03125 / rate),
        lambda h, rate: (
            (1 - (rate + SHIFT) * h / 288) ** (mpmath.mpf("0.03125") / (rate + SHIFT))
        ),
        [[1000.0, 2000.0], 0.0],
        [[1000.0, 2000.0], 0.0078125],
    ),
    Formula(
        "fraction crystallised by any exponent of 3",
        lambda a, u: (1 - tf.exp(-a * u**3)) / u**3,
        lambda a, u: -m.expm1(-a * off_zero(u) ** 3) / off_zero(u) ** 3,
        [[0.75, 0.75], [1e-3, 1e-2]],
        [[0.75, 0.75], [0.5, 1.0]],
    ),
    Formula(
        "variance of a skill after a win that was unlikely",
        lambda t: _hazard(t) * (_hazard(t) + t),
        lambda t: _exact_hazard(t) * (_exact_hazard(t) + t),
        [[-12.0, -8.0]],
        [[-1.0, 0.5]],
    ),
    Formula(
        "mean of a normal distribution between two near limits far out",
        _mean_between,
        lambda a, b: (m.npdf(a) - m.npdf(b)) / (m.ncdf(b) - m.ncdf(a)),
        [[-30.0, 20.0, -1.0], [-29.0, 25.0, -0.99999]],
        [[-1.0, 0.5], [1.0, 2.0]],
    ),
    Formula(
        "shift of a skill after a draw",
        lambda t: _mean_between(-0.5 - t, 0.5 - t),
        lambda t: (
            (m.npdf(-0.5 - t) - m.npdf(0.5 - t)) / (m.ncdf(0.5 - t) - m.ncdf(-0.5 - t))
        ),
        [[20.0, -12.0]],
        [[0.5, -1.0]],
    ),
    Formula(
        "logarithmic map of the hyperboloid",
        lambda c, v: tf.acosh(c) / tf.sqrt(c**2 - 1) * v,
        lambda c, v: m.re(m.acosh(c + SHIFT) / m.sqrt((c + SHIFT) ** 2 - 1)) * v,
        [[1.0, 1.0001], [1.0, 2.0]],
        [[1.5, 1e10], [1.0, 2.0]],
    ),
    Formula(
        "scale-invariant error of a depth map with holes",
        _silog,
        _exact_silog,
        [[1.0, 0.0, 2.0], [0.5, 0.25, 2.0], [0.4, 0.0, 3.0]],
        [[1.0, 0.5, 2.0], [0.5, 0.25, 2.0], [0.4, 0.5, 3.0]],
        slopes="finite",
    ),
    Formula(
        "chance of a wrong answer without a guess",
        lambda g, p: 1 - (g + (1 - g) * p),
        lambda g, p: (1 - g) * (1 - p),
        [[0.25, 1e-9], [0.9999999, 0.999999]],
        [[0.25, 0.2], [0.5, 0.75]],
    ),
    Formula(
        "way of a body with drag, less that without",
        lambda x, s: x - s * tf.math.log(1 + x / s),
        lambda x, s: x - s * m.log1p(x / s),
        [[1e-4, 1e-3], [1.0, 10.0]],
        [[1.0, 5.0], [2.0, 1.0]],
    ),
    Formula(
        "mean of a normal distribution truncated to a tail",
        _mean_in_tail,
        lambda a, b: (m.npdf(a) - m.npdf(b)) / (m.ncdf(-a) - m.ncdf(-b)),
        [[8.0, -15.0], [9.0, -14.0]],
        [[-1.0], [1.5]],
    ),
    Formula(
        "distance along a soft clip",
        lambda x, s: x - s * tf.tanh(x / s),
        lambda x, s: x - s * m.tanh(x / s),
        [[1e-3, 1e-2], [1.0, 10.0]],
        [[1.0, 5.0], [2.0, 1.0]],
    ),
    Formula(
        "logarithm of a generating function of large counts",
        lambda w, x: tf.math.log(tf.reduce_sum(w * x**3.0)),
        lambda w, x: m.log((w * x**3).sum()),
        [[0.5, 0.3, 0.2], [1e20, 1e15, 2e20]],
        [[0.5, 0.3, 0.2], [1.0, 2.0, 3.0]],
    ),
    Formula(
        "logarithm of a mean of powers of small activations",
        lambda x: tf.math.log(tf.reduce_mean(x**4.0, -1)),
        lambda x: m.log((x**4).sum(-1) / 3),
        [[[1e-20, 3e-20, 2e-20], [1.0, 2.0, 3.0]]],
        [[[0.5, 1.5, 2.0], [1.0, 2.0, 3.0]]],
    ),
    Formula(
        "momentum that saturates with the speed",
        lambda x: x * x / (tf.abs(x) + 1),
        lambda x: x * x / (abs(x) + 1),
        [[1e20, -3e25]],
        [[1.0, -2.0]],
    ),
]
