"""Quotients and sums with a limit, as several fields write them."""

import mpmath
import numpy as np
import tensorflow as tf

from tests.collection.formula import STEP, Formula, m, off_zero

ZEROS = [[0.0, 1e-4, 1.5]]
ORDINARY = [[0.3, 1.1, 2.0]]
# Far below a digit, for arguments that are numbers.
SHIFT = STEP * STEP


def _of(name, function, exact, **options):
    return Formula(
        name,
        function,
        lambda x: exact(off_zero(x)),
        options.pop("bad", ZEROS),
        options.pop("ordinary", ORDINARY),
        **options,
    )


def _number(x):
    return mpmath.mpf(float(np.float32(x)))


def _so3_coefficient(w):
    angle = tf.norm(w)
    return (1 - tf.sin(angle) / angle) / angle**2


def _exact_so3_coefficient(w):
    angle = m.sqrt((w**2).sum())
    return (1 - m.sin(angle) / angle) / angle**2


def _schedule(k, x):
    return (1 - tf.exp(-k * x)) / (1 - tf.exp(-k))


def _kl_normal(mean, log_variance):
    return -0.5 * tf.reduce_sum(1 + log_variance - mean**2 - tf.exp(log_variance))


def _queue(r, k):
    return r / (1 - r) - (k + 1) * r ** (k + 1) / (1 - r ** (k + 1))


def _posterior_variance(beta):
    kept = tf.math.cumprod(1 - beta)
    before = tf.concat([[1.0], kept[:-1]], 0)
    return beta * (1 - before) / (1 - kept)


def _exact_posterior_variance(beta):
    kept = np.cumprod(1 - beta)
    before = np.concatenate([[mpmath.mpf(1)], kept[:-1]])
    return beta * (1 - before) / (1 - kept)


def _barron(x, a):
    b = tf.abs(a - 2)
    return b / a * (tf.pow(x**2 / b + 1, a / 2) - 1)


def _exact_barron(x, a):
    a = a + SHIFT
    b = abs(a - 2)
    return b / a * ((x**2 / b + 1) ** (a / 2) - 1)


FORMULAS = [
    Formula(
        "curvature of the yield curve of Nelson and Siegel",
        lambda x: (1 - tf.exp(-x)) / x - tf.exp(-x),
        lambda x: (1 - m.exp(-off_zero(x))) / off_zero(x) - m.exp(-x),
        [[0.0, 1e-4, -1e-3, 2.0]],
        [[0.5, 1.0, 3.0]],
    ),
    _of(
        "logarithm of a ratio of a hyperbolic sine",
        lambda x: tf.math.log(tf.sinh(x) / x),
        lambda x: m.log(m.sinh(x) / x),
        bad=[[0.0, 1e-4, 100.0]],
    ),
    _of(
        "exponential yield curve",
        lambda t: (1 - tf.exp(-t / 2)) / (t / 2),
        lambda t: -m.expm1(-t / 2) / (t / 2),
    ),
    Formula(
        "bond price without mean reversion",
        lambda a, t: (1 - tf.exp(-a * t)) / a,
        lambda a, t: -m.expm1(-(a + SHIFT) * t) / (a + SHIFT),
        [0.0, [1.0, 2.0]],
        [0.5, [1.0, 2.0]],
    ),
    Formula(
        "normalised exponential schedule",
        _schedule,
        lambda k, x: m.expm1(-(k + SHIFT) * x) / m.expm1(-(k + SHIFT)),
        [0.0, [0.2, 0.9]],
        [1.5, [0.2, 0.9]],
    ),
    _of(
        "opening rate of an ion channel",
        lambda v: 0.01 * (v + 55.0) / (1 - tf.exp(-(v + 55.0) / 10)),
        lambda v: _number(0.01) * (v + 55 + SHIFT) / -m.expm1(-(v + 55 + SHIFT) / 10),
        bad=[[-55.0, -60.0]],
        ordinary=[[-40.0, -60.0]],
    ),
    _of(
        "current through a membrane",
        lambda v: v * (1 - 0.2 * tf.exp(-v)) / (1 - tf.exp(-v)),
        lambda v: v * (1 - _number(0.2) * m.exp(-v)) / -m.expm1(-v),
    ),
    _of(
        "mean of a truncated exponential distribution",
        lambda x: 1 / x - 1 / (tf.exp(x) - 1),
        lambda x: 1 / x - 1 / m.expm1(x),
    ),
    _of(
        "scattering of a Gaussian chain",
        lambda x: 2 * (tf.exp(-x) + x - 1) / x**2,
        lambda x: 2 * (m.expm1(-x) + x) / x**2,
    ),
    _of(
        "form factor of a sphere",
        lambda q: 3 * (tf.sin(q) - q * tf.cos(q)) / q**3,
        lambda q: 3 * (m.sin(q) - q * m.cos(q)) / q**3,
    ),
    _of(
        "mass inside a radius of a halo",
        lambda x: (tf.math.log1p(x) - x / (1 + x)) / x**2,
        lambda x: (m.log1p(x) - x / (1 + x)) / x**2,
    ),
    _of(
        "tanh over sinh",
        lambda x: tf.tanh(2 * x) / tf.sinh(x),
        lambda x: m.tanh(2 * x) / m.sinh(x),
    ),
    _of(
        "error function over its argument",
        lambda x: tf.math.erf(x) / x,
        lambda x: m.erf(x) / x,
    ),
    Formula(
        "coefficient of the translation in SE(3)",
        _so3_coefficient,
        _exact_so3_coefficient,
        [[1e-3, 0.0, 0.0]],
        [[0.3, 1.0, 0.5]],
    ),
    Formula(
        "compound interest in many steps",
        lambda r, n: tf.pow(1 + r / n, n),
        lambda r, n: (1 + r / n) ** n,
        [[0.05, 0.1], [1e8, 1e7]],
        [[0.05, 0.1], [4.0, 12.0]],
    ),
    Formula(
        "general robust loss at shape 0",
        _barron,
        _exact_barron,
        [[1.0, 2.0], 0.0],
        [[1.0, 2.0], 1.0],
    ),
    Formula(
        "q-exponential at q = 1",
        lambda x, q: tf.pow(1 + (1 - q) * x, 1 / (1 - q)),
        lambda x, q: (1 + (1 - q - SHIFT) * x) ** (1 / (1 - q - SHIFT)),
        [[0.5, 1.0, 2.0], 1.0],
        [[0.5, 1.0, 1.5], 1.5],
    ),
    Formula(
        "Tsallis entropy of a softmax at order 1",
        lambda z, q: (1 - tf.reduce_sum(tf.nn.softmax(z) ** q)) / (q - 1),
        lambda z, q: (
            (1 - ((m.exp(z) / m.exp(z).sum()) ** (q + SHIFT)).sum()) / (q + SHIFT - 1)
        ),
        [[0.25, 0.25, 0.5], 1.0],
        [[0.25, 0.25, 0.5], 1.7],
    ),
    Formula(
        "estimator of a divergence of two policies",
        lambda p, q: tf.exp(q - p) - (q - p) - 1,
        lambda p, q: m.exp(q - p) - (q - p) - 1,
        [[-1.0, -2.0], [-1.0001, -1.999]],
        [[-1.0, -2.0], [-0.1, -3.0]],
    ),
    Formula(
        "KL divergence of nearly standard normals",
        _kl_normal,
        lambda mean, log: -(1 + log - mean**2 - m.exp(log)).sum() / 2,
        [[0.0, 1e-4], [1e-4, -1e-4]],
        [[0.1, 1.0], [0.4, -1.0]],
    ),
    Formula(
        "Itakura-Saito distance of nearly equal spectra",
        lambda p, q: tf.reduce_mean(p / q - tf.math.log(p / q) - 1),
        lambda p, q: (p / q - m.log(p / q) - 1).sum() / 2,
        [[1.0, 2.0], [1.0001, 2.001]],
        [[1.0, 2.0], [1.5, 0.7]],
    ),
    Formula(
        "Poisson deviance near the mean",
        lambda y, mean: 2 * (y * tf.math.log(y / mean) - (y - mean)),
        lambda y, mean: 2 * (y * m.log(y / mean) - (y - mean)),
        [[1000.0, 2.0], [1000.1, 2.0002]],
        [[1.0, 2.0], [3.0, 0.5]],
    ),
    Formula(
        "squared Hellinger distance of nearly equal numbers",
        lambda a, b: a + b - 2 * tf.sqrt(a * b),
        lambda a, b: (m.sqrt(a) - m.sqrt(b)) ** 2,
        [[1000.0, 2.0], [1000.5, 2.0001]],
        [[1.0, 2.0], [3.0, 0.4]],
    ),
    Formula(
        "sample of a Kumaraswamy distribution with a large shape",
        lambda u, a, b: tf.pow(1 - tf.pow(u, 1 / b), 1 / a),
        lambda u, a, b: (1 - u ** (1 / b)) ** (1 / a),
        [[0.5, 0.9], [2.0, 1.0], [1e7, 1e8]],
        [[0.5, 0.9], [2.0, 1.0], [2.0, 3.0]],
    ),
    Formula(
        "noise of the first steps of a diffusion",
        lambda beta: tf.sqrt(1 - tf.math.cumprod(1 - beta)),
        lambda beta: m.sqrt(1 - np.cumprod(1 - beta)),
        [[1e-8, 2e-8, 1e-7]],
        [[0.1, 0.2, 0.3]],
    ),
    Formula(
        "posterior variance of a diffusion",
        _posterior_variance,
        _exact_posterior_variance,
        [[1e-7, 2e-7, 1e-6]],
        [[0.1, 0.2, 0.3]],
    ),
    Formula(
        "Hill function of large and small doses",
        lambda x, n: x**n / (1 + x**n),
        lambda x, n: x**n / (1 + x**n),
        [[1e4, 1e-4], [12.0, 8.0]],
        [[2.0, 0.5], [2.0, 3.0]],
    ),
    _of(
        "curvature of a yield curve at a maturity of 0",
        lambda k: (1 - tf.exp(-k)) / k**2 - 1 / k,
        lambda k: (-m.expm1(-k) - k) / k**2,
        bad=[[0.0, 1e-8, 1e-3, 1.5]],
    ),
    _of(
        "second moment of an exponential integrator",
        lambda z: 1 / z - tf.math.expm1(z) / z / z,
        lambda z: (z - m.expm1(z)) / z**2,
        bad=[[0.0, 1e-8, -1e-3, 1.5]],
    ),
    _of(
        "chance that a photon escapes from a sphere of gas",
        lambda t: (1 - tf.exp(-t * t)) / (t * t),
        lambda t: -m.expm1(-t * t) / t**2,
        bad=[[0.0, 1e-4, 1e-3, 1.5]],
    ),
    _of(
        "logarithm of one plus a square over the square",
        lambda t: tf.math.log(1 + t**2) / t**2,
        lambda t: m.log1p(t * t) / t**2,
        bad=[[0.0, 1e-4, 1e-3, 1.5]],
    ),
    _of(
        "weight of a source along a short ray",
        lambda t: 1 - (1 - tf.exp(-t)) / t,
        lambda t: 1 + m.expm1(-t) / t,
    ),
    Formula(
        "end-to-end distance of a stiff chain",
        lambda n, p: 2 * p * n * (1 - p / n * (1 - tf.exp(-n / p))),
        lambda n, p: 2 * p * n * (1 + p / n * m.expm1(-n / p)),
        [[0.01, 2.0], [50.0, 0.5]],
        [[3.0, 2.0], [2.0, 0.5]],
    ),
    Formula(
        "customers in a queue that is full as often as empty",
        _queue,
        lambda r, k: _queue(r + SHIFT, k),
        [[1.0, 1.0001, 0.999], [5.0, 3.0, 8.0]],
        [[0.5, 2.0], [4.0, 4.0]],
    ),
]
