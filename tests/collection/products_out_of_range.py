"""Products, powers and inverse functions that leave the range of their dtype."""

import mpmath
import numpy as np
import tensorflow as tf

from tests.collection.formula import Formula, m, off_zero

LOG_10 = mpmath.mpf(float(np.float32(np.log(10.0))))


def _signal_to_noise(clean, noisy):
    noise = tf.reduce_sum((clean - noisy) ** 2)
    return 10 * tf.math.log(tf.reduce_sum(clean**2) / noise) / np.float32(np.log(10.0))


def _slerp(a, b, t):
    angle = tf.acos(tf.reduce_sum(a * b))
    return (tf.sin((1 - t) * angle) * a + tf.sin(t * angle) * b) / tf.sin(angle)


def _exact_slerp(a, b, t):
    angle = off_zero(m.acos((a * b).sum()))
    return (m.sin((1 - t) * angle) * a + m.sin(t * angle) * b) / m.sin(angle)


def _action(u):
    action = tf.tanh(u)
    return -0.5 * tf.atanh(action) ** 2 - tf.math.log(1 - action**2)


def _call(spot, time):
    spread = 0.25 * tf.sqrt(time)
    first = (tf.math.log(spot / 100.0) + 0.03125 * time) / spread
    return spot * _normal(first) - 100.0 * _normal(first - spread)


def _normal(x):
    return 0.5 * (1 + tf.math.erf(x / np.float32(np.sqrt(2))))


def _exact_call(spot, time):
    spread = m.sqrt(off_zero(time)) / 4
    first = (m.log(spot / 100) + time / 32) / spread
    return spot * m.ncdf(first) - 100 * m.ncdf(first - spread)


def _rms(x):
    return x * tf.math.rsqrt(tf.reduce_mean(tf.square(x), -1, keepdims=True))


def _zero_inflated(mean, shape, logit):
    zero = tf.sigmoid(logit)
    return tf.math.log(zero + (1 - zero) * tf.pow(shape / (shape + mean), shape))


def _exact_zero_inflated(mean, shape, logit):
    zero = 1 / (1 + m.exp(-logit))
    return m.log(zero + (1 - zero) * (shape / (shape + mean)) ** shape)


def _brillouin(x):
    return 1.5 / tf.tanh(1.5 * x) - 0.5 / tf.tanh(0.5 * x)


def _exact_brillouin(x):
    x = off_zero(x)
    return 1.5 / m.tanh(1.5 * x) - 0.5 / m.tanh(0.5 * x)


def _phi(h):
    return (tf.math.expm1(-h) / h + 1) / h


def _exact_phi(h):
    h = off_zero(h)
    return (m.expm1(-h) / h + 1) / h


def _other_terms(similarity):
    scores = tf.exp(similarity / 0.0078125)
    own = tf.exp(tf.linalg.diag_part(similarity) / 0.0078125)
    return tf.math.log(tf.reduce_sum(scores, 1) - own)


def _exact_other_terms(similarity):
    scores = m.exp(similarity * 128) * (1 - np.eye(2))
    return m.log(scores.sum(1))


def _volatility(log_moneyness):
    z = 0.5 * log_moneyness / 0.25
    root = tf.sqrt(1 - 2 * 0.25 * z + z**2)
    return 0.25 * z / tf.math.log((root + z - 0.25) / (1 - 0.25))


def _exact_volatility(log_moneyness):
    z = 2 * off_zero(log_moneyness)
    return z / 4 / m.log((m.sqrt(1 - z / 2 + z**2) + z - 0.25) / 0.75)


ORDINARY = [[0.5, 2.0]]
FORMULAS = [
    Formula(
        "logarithm of a cube",
        lambda x: tf.math.log(x**3),
        lambda x: 3 * m.log(x),
        [[1e-20, 1e15]],
        ORDINARY,
    ),
    Formula(
        "logarithm of the root of a product",
        lambda x, y: tf.math.log(tf.sqrt(x * y)),
        lambda x, y: (m.log(x) + m.log(y)) / 2,
        [[1e-30, 1e-5], [1e-30, 1.0]],
        [[0.5, 2.0], [0.25, 1.5]],
    ),
    Formula(
        "signal to noise ratio of a faint signal",
        _signal_to_noise,
        lambda a, b: 10 * m.log((a**2).sum() / ((a - b) ** 2).sum()) / LOG_10,
        [[1e-22, 2e-22], [1.5e-22, 1.75e-22]],
        [[0.5, 0.25], [0.375, 0.25]],
    ),
    Formula(
        "log survival of a log-logistic time",
        lambda t, k: tf.math.log(1 / (1 + t**k)),
        lambda t, k: -m.log1p(t**k),
        [[1e-3, 1e4], [8.0, 12.0]],
        [[1.5, 2.0], [2.0, 3.0]],
    ),
    Formula(
        "geometric mean of many small numbers",
        lambda x: tf.reduce_prod(x) ** (1 / 64),
        lambda x: m.exp(m.log(x).sum() / 64),
        [np.full(64, 1e-3)],
        [np.linspace(0.5, 1.5, 64)],
    ),
    Formula(
        "zero-inflated counts that are nearly Poisson",
        _zero_inflated,
        _exact_zero_inflated,
        [[2.0, 1.0], [1e6, 2.0], [-40.0, 1.0]],
        [[2.0, 1.0], [3.0, 2.0], [-1.0, 1.0]],
    ),
    Formula(
        "chance of no event in many trials",
        lambda p, n: tf.pow(1 - p, n),
        lambda p, n: (1 - p) ** n,
        [[1e-8, 0.1], [1e8, 2.0]],
        [[0.25, 0.1], [3.0, 2.0]],
    ),
    Formula(
        "inverse hyperbolic sine by hand",
        lambda x: tf.math.log(x + tf.sqrt(x**2 + 1)),
        lambda x: m.asinh(x),
        [[-1e5, -300.0, 2.0]],
        [[0.5, 1.0, -2.0]],
    ),
    Formula(
        "Fisher transform of a small correlation",
        lambda r: 0.5 * tf.math.log((1 + r) / (1 - r)),
        lambda r: m.atanh(r),
        [[1e-6, 3e-6]],
        [[0.5, -0.25]],
    ),
    Formula(
        "Mercator's projection near the equator",
        lambda x: tf.math.log(tf.tan(np.pi / 4 + x / 2)),
        lambda x: m.asinh(m.tan(x)),
        [[1e-6, -3e-5]],
        [[0.5, -1.0]],
    ),
    Formula(
        "log probability of an action that is saturated",
        _action,
        lambda u: -(u**2) / 2 + 2 * m.log(m.cosh(u)),
        [[15.0, 0.3]],
        [[0.5, -0.75]],
    ),
    Formula(
        "return of a portfolio",
        lambda r: tf.reduce_prod(1.0 + r) - 1,
        lambda r: np.prod(1 + r) - 1,
        [[1e-5, 2e-5, -1e-5]],
        [[0.25, -0.5, 0.125]],
    ),
    Formula(
        "kinetic energy at low speed",
        lambda v: 1 / tf.sqrt(1 - v**2) - 1,
        lambda v: 1 / m.sqrt(1 - v**2) - 1,
        [[1e-4, 1e-3]],
        [[0.25, 0.75]],
    ),
    Formula(
        "chance of a substitution in a short time",
        lambda t: tf.math.log(0.25 - 0.25 * tf.exp(-1.5 * t)),
        lambda t: m.log(-m.expm1(-1.5 * t) / 4),
        [[1e-6, 2.0]],
        [[0.25, 0.75]],
    ),
    Formula(
        "amplitudes of a sigmoid by hand",
        lambda x: tf.sqrt(1 - 1 / (1 + tf.exp(-x))),
        lambda x: 1 / m.sqrt(1 + m.exp(x)),
        [[40.0, -100.0]],
        [[0.5, -0.75]],
    ),
    Formula(
        "spherical interpolation of equal vectors",
        _slerp,
        _exact_slerp,
        [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], 0.25],
        [[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], 0.25],
        slopes="finite",
    ),
    Formula(
        "Brillouin function of no field",
        _brillouin,
        _exact_brillouin,
        [[0.0, 1e-3]],
        ORDINARY,
    ),
    Formula(
        "step of an exponential integrator", _phi, _exact_phi, [[0.0, 1e-4]], ORDINARY
    ),
    Formula(
        "sum of exponentials less its own term",
        _other_terms,
        _exact_other_terms,
        [[[1.0, -0.75], [-0.5, 1.0]]],
        [[[0.0, 0.0078125], [0.0, 0.015625]]],
    ),
    Formula(
        "SABR volatility at the money",
        _volatility,
        _exact_volatility,
        [[0.0, 1e-4]],
        ORDINARY,
    ),
    Formula(
        "heat capacity of an Einstein solid",
        lambda x: x**2 * tf.exp(x) / (tf.exp(x) - 1) ** 2,
        lambda x: (x / 2 / m.sinh(x / 2)) ** 2,
        [[1e-4, 200.0]],
        ORDINARY,
    ),
    Formula(
        "log power of a faint bin of a spectrum",
        lambda a, b: tf.math.log(a**2 + b**2),
        lambda a, b: m.log(a**2 + b**2),
        [[1e-22, 2e-22], [1e-22, 1e-22]],
        [[0.5, 2.0], [0.25, 1.5]],
    ),
    Formula(
        "chance of an infection in many contacts",
        lambda p, n: 1 - (1 - p) ** n,
        lambda p, n: 1 - (1 - p) ** n,
        [[1e-8, 1e-7], [1e6, 1e7]],
        [[0.25, 0.1], [3.0, 2.0]],
    ),
    Formula(
        "velocity weight of clean data",
        lambda a: (a / (1 - a)) / (a / (1 - a) + 1),
        lambda a: a,
        [[1.0, 0.5]],
        [[0.25, 0.5]],
    ),
    Formula(
        "group velocity of waves on deep water",
        lambda k: 0.5 * (1 + 2 * k / tf.sinh(2 * k)),
        lambda k: (1 + 2 * k / m.sinh(2 * k)) / 2,
        [[100.0, 0.5]],
        ORDINARY,
    ),
    Formula(
        "inverse Jacobian of a small rotation",
        lambda t: (1 - t / 2 * tf.cos(t / 2) / tf.sin(t / 2)) / t**2,
        lambda t: (1 - off_zero(t) / 2 / m.tan(off_zero(t) / 2)) / off_zero(t) ** 2,
        [[0.0, 1e-4]],
        ORDINARY,
    ),
    Formula(
        "option that expires at the money",
        _call,
        _exact_call,
        [[100.0, 110.0], [0.0, 0.25]],
        [[100.0, 110.0], [1.0, 0.5]],
        slopes="finite",
    ),
    Formula(
        "vector of zeros over its root mean square by rsqrt",
        _rms,
        lambda x: x / m.sqrt((off_zero(x) ** 2).sum() / 2),
        [[[0.0, 0.0]]],
        [[[0.5, 2.0]]],
        slopes="finite",
    ),
]
