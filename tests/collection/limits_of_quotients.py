"""Quotients with a limit at another point than 0, or in two arguments."""

import functools

import numpy as np
import tensorflow as tf

from tests.collection.formula import STEP, Formula, m, off_zero


def _both(name, function, bad, ordinary, point=0.0, place=0, **options):
    """Returns a formula whose TensorFlow and mpmath functions have the same names.

    Its exact value at `point` of argument number `place` is that beside it.
    """

    def exact(*args):
        args = list(args)
        at = np.equal(args[place], point)
        args[place] = np.where(at, args[place] + STEP * STEP, args[place])
        return function(m, *args)

    plain = functools.partial(function, tf.math)
    return Formula(name, plain, exact, bad, ordinary, **options)


def _frank(u, v, t):
    rest = (tf.exp(-t * u) - 1) * (tf.exp(-t * v) - 1) / (tf.exp(-t) - 1)
    return -tf.math.log(1 + rest) / t


def _exact_frank(u, v, t):
    t = off_zero(t)
    rest = m.expm1(-t * u) * m.expm1(-t * v) / m.expm1(-t)
    return -m.log1p(rest) / t


def _squash_to_ball(v):
    length = tf.norm(v, axis=-1, keepdims=True)
    return tf.tanh(length) * v / length


def _exact_squash(v):
    length = m.sqrt((off_zero(v) ** 2).sum(-1, keepdims=True))
    return m.tanh(length) * v / length


FORMULAS = [
    Formula(
        "resistors in parallel, one of them a short circuit",
        lambda a, b: 1 / (1 / a + 1 / b),
        lambda a, b: a * b / (a + b),
        [[0.0, 1.0], [2.0, 3.0]],
        [[1.0, 2.0], [2.0, 3.0]],
    ),
    Formula(
        "variance of a product of experts, one of them certain",
        lambda v: 2 / tf.reduce_sum(1 / v, -1),
        lambda v: 2 * v[0] * v[1] * v[2] / (v[0] * v[1] + v[0] * v[2] + v[1] * v[2]),
        [[0.0, 2.0, 3.0]],
        [[1.0, 2.0, 3.0]],
    ),
    _both(
        "logarithm over its distance from 1",
        lambda t, x: t.log(x) / (x - 1),
        [[1.0, 1.0005, 0.5]],
        [[0.5, 2.0]],
        point=1.0,
    ),
    _both(
        "logarithmic mean temperature difference",
        lambda t, a, b: (a - b) / t.log(a / b),
        [[1.0, 1.0001, 3.0], [1.0, 1.0, 2.0]],
        [[0.5, 2.0], [1.5, 0.4]],
        point=1.0,
    ),
    _both(
        "annuity of a vanishing rate",
        lambda t, r: (1 - (1 + r) ** -10.0) / r,
        [[0.0, 1e-5, 0.05]],
        [[0.04, 0.1]],
    ),
    _both(
        "payment of a loan of a vanishing rate",
        lambda t, r: r / (1 - 1 / (1 + r) ** 12.0),
        [[0.0, 1e-5, 0.05]],
        [[0.04, 0.1]],
    ),
    _both(
        "Box-Cox transform of power 0",
        lambda t, x, k: (x**k - 1) / k,
        [[2.0, 0.5, 3.0], [0.0, 1e-5, 0.5]],
        [[2.0, 0.5], [0.5, 2.0]],
        place=1,
    ),
    _both(
        "isoelastic utility near its logarithm",
        lambda t, w, g: (w ** (1 - g) - 1) / (1 - g),
        [[2.0, 0.5, 3.0], [1.0, 1.00001, 2.0]],
        [[2.0, 0.5], [0.5, 2.0]],
        point=1.0,
        place=1,
    ),
    _both(
        "geometric sum of ratio 1",
        lambda t, q: (1 - q**8) / (1 - q),
        [[1.0, 1.00001, 0.5]],
        [[0.5, 2.0]],
        point=1.0,
    ),
    _both(
        "extreme-value distribution of shape 0",
        lambda t, z, k: (1 + k * z) ** (-1 / k),
        [[0.5, 1.0, 2.0], [0.0, 1e-6, 0.3]],
        [[0.5, 1.0], [0.3, -0.2]],
        place=1,
    ),
    _both(
        "generalised Pareto exponent of shape 0",
        lambda t, z, k: t.log(1 + k * z) / k,
        [[0.5, 1.0, 2.0], [0.0, 1e-6, 0.3]],
        [[0.5, 1.0], [0.3, -0.2]],
        place=1,
    ),
    _both(
        "generalised Pareto distribution of shape 0",
        lambda t, z, k: 1 - (1 + k * z) ** (-1 / k),
        [[0.5, 1.0, 1e-6], [0.0, 1e-6, 0.1]],
        [[0.5, 1.0], [0.3, -0.2]],
        place=1,
    ),
    _both(
        "logarithm of a generalised Pareto distribution of shape 0",
        lambda t, z, k: t.log(1 - (1 + k * z) ** (-1 / k)),
        [[0.5, 1.0, 1e-6], [0.0, 1e-6, 0.1]],
        [[0.5, 1.0], [0.3, -0.2]],
        place=1,
    ),
    _both(
        "log survival of a generalised Pareto distribution of shape 0",
        lambda t, z, k: t.log((1 + k * z) ** (-1 / k)),
        [[0.5, 1.0, 50.0], [0.0, 1e-6, 0.1]],
        [[0.5, 1.0], [0.3, -0.2]],
        place=1,
    ),
    _both(
        "density of a generalised Pareto distribution of shape 0 and a scale",
        lambda t, z, k, s: (1 + k * z / s) ** (-1 / k - 1) / s,
        [[0.5, 1.0, 2.0], [0.0, 1e-6, 0.3], [2.0, 0.5, 3.0]],
        [[0.5, 1.0], [0.3, -0.2], [2.0, 0.5]],
        place=1,
    ),
    _both(
        "decay chain of two equal rates",
        lambda t, a, b: (t.exp(-a) - t.exp(-b)) / (b - a),
        [[1.0, 1.00001, 2.0], [1.0, 1.0, 3.0]],
        [[1.0, 2.0], [2.0, 3.0]],
        point=1.0,
    ),
    _both(
        "spherical interpolation between equal vectors",
        lambda t, o: t.sin(0.3 * o) / t.sin(o),
        [[0.0, 1e-3, 1.0]],
        [[0.5, 2.0]],
    ),
    _both(
        "spherical interpolation, the fraction learned",
        lambda t, o, u: t.sin((1 - u) * o) / t.sin(o),
        [[0.0, 1e-3, 1.0], [0.3, 0.4, 0.5]],
        [[0.5, 2.0], [0.3, 0.6]],
    ),
    _both(
        "Langevin function by exponentials",
        lambda t, x: (t.exp(x) + t.exp(-x)) / (t.exp(x) - t.exp(-x)) - 1 / x,
        [[0.0, 1e-3, 100.0]],
        [[0.5, 2.0]],
    ),
    _both(
        "Langevin function, the pole first",
        lambda t, x: -1 / x + 1 / t.tanh(x),
        [[0.0, 1e-3, 100.0]],
        [[0.5, 2.0]],
    ),
    _both(
        "x coth x by cosh and sinh",
        lambda t, x: x * t.cosh(x) / t.sinh(x),
        [[0.0, 1e-3, 100.0]],
        [[0.5, 2.0]],
    ),
    _both(
        "spherical Bessel function",
        lambda t, x: t.sin(x) / x**2 - t.cos(x) / x,
        [[0.0, 1e-3, 1.0]],
        [[0.5, 2.0]],
    ),
    _both(
        "second function of exponential integrators",
        lambda t, h: (t.exp(h) - 1 - h) / h**2,
        [[0.0, 1e-3, 2.0]],
        [[0.5, 2.0]],
    ),
    _both(
        "relative growth of a root",
        lambda t, x: (t.sqrt(1 + x) - 1) / x,
        [[0.0, 1e-4, 1.0]],
        [[0.3, 1.0]],
    ),
    _both(
        "Einstein's heat capacity",
        lambda t, x: x**2 * t.exp(x) / (t.exp(x) - 1) ** 2,
        [[0.0, 1e-3, 60.0]],
        [[0.5, 2.0]],
    ),
    _both(
        "Planck's law",
        lambda t, x: 2 * x**3 / (t.exp(x) - 1),
        [[0.0, 1e-3, 100.0]],
        [[0.5, 2.0]],
    ),
    _both(
        "yield curve, curvature at time 0",
        lambda t, x: (1 - t.exp(-x)) / x - t.exp(-x),
        [[0.0, 1e-3, 2.0]],
        [[0.5, 2.0]],
    ),
    Formula(
        "exponential map of the Poincare ball at its origin",
        _squash_to_ball,
        _exact_squash,
        [[[0.0, 0.0], [0.3, 0.4]]],
        [[[0.1, 0.2], [0.3, 0.4]]],
    ),
    Formula(
        "loss weight of a signal-to-noise ratio of 0",
        lambda s: tf.minimum(s, 5.0) / s,
        lambda s: sum(1 if a < 5 else 5 / a for a in s),
        [[0.0, 10.0]],
        [[1.0, 10.0]],
    ),
    _both(
        "ratio of hyperbolic sines",
        lambda t, x: t.sinh(0.3 * x) / t.sinh(x),
        [[0.0, 1e-3, 20.0]],
        [[0.5, 2.0]],
    ),
    _both(
        "two compartments of equal rates at any time",
        lambda t, a, b: b / (b - a) * (t.exp(-3 * a) - t.exp(-3 * b)),
        [[1.0, 1.00001, 2.0], [1.0, 1.0, 3.0]],
        [[1.0, 2.0], [2.0, 3.0]],
        point=1.0,
    ),
    _both(
        "constant turn rate and velocity, driving straight on",
        lambda t, w, h: 5 / w * (t.sin(h + 0.1 * w) - t.sin(h)),
        [[0.0, 1e-5, 0.5], [0.3, 0.3, 0.3]],
        [[0.5, 1.0], [0.3, 1.5]],
    ),
    _both(
        "saturation whose gain vanishes",
        lambda t, g, x: t.tanh(g * x) / t.tanh(g),
        [[0.0, 1e-3, 1.0], [0.5, 0.5, 0.5]],
        [[0.5, 1.0], [0.3, 0.5]],
    ),
    _both(
        "companding without compression",
        lambda t, g, x: t.log1p(g * x) / t.log1p(g),
        [[0.0, 1e-3, 255.0], [0.5, 0.5, 0.5]],
        [[0.5, 255.0], [0.3, 0.5]],
    ),
    _both(
        "idle probability of a queue under full load",
        lambda _, r: (1 - r) / (1 - r**10),
        [[1.0, 1.00001, 0.5]],
        [[0.5, 2.0]],
        point=1.0,
    ),
    _both(
        "annuity that grows at the rate of interest",
        lambda _, r, g: 100 / (r - g) * (1 - ((1 + g) / (1 + r)) ** 10),
        [[0.03125, 0.0625], [0.03125, 0.0312501]],
        [[0.0625, 0.125], [0.03125, 0.03125]],
        point=0.03125,
    ),
    _both(
        "price of a bond at yield 0",
        lambda _, r: 5 * (1 - (1 + r) ** -10) / r + 100 * (1 + r) ** -10,
        [[0.0, 1e-5, 0.05]],
        [[0.04, 0.1]],
    ),
    _both(
        "instalment of a loan without interest",
        lambda _, r: 50 * r * (1 + r) ** 10 / ((1 + r) ** 10 - 1),
        [[0.0, 1e-5, 0.05]],
        [[0.04, 0.1]],
    ),
    _both(
        "Tukey's quantiles of shape 0",
        lambda _, k, p: (p**k - (1 - p) ** k) / k,
        [[0.0, 1e-5, 1.0], [0.25, 0.25, 0.25]],
        [[0.5, 1.0], [0.25, 0.75]],
    ),
    _both(
        "fixation of a neutral mutation",
        lambda t, s, n: (1 - t.exp(-2 * s)) / (1 - t.exp(-4 * n * s)),
        [[0.0, 1e-5, 0.1], [10.0, 10.0, 10.0]],
        [[0.1, 0.2], [5.0, 10.0]],
    ),
    _both(
        "screened less unscreened potential at distance 0",
        lambda t, r: 1 / r - t.exp(-r) / r,
        [[0.0, 1e-5, 2.0]],
        [[1.0, 2.0]],
    ),
    Formula(
        "Frank's copula of independent variables",
        _frank,
        _exact_frank,
        [[0.3, 0.4], [0.5, 0.6], [0.0, 1e-5]],
        [[0.3], [0.5], [2.0]],
    ),
]
