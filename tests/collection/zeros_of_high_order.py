"""Sums and quotients of which the first terms of the power series cancel."""

import tensorflow as tf

from tests.collection.formula import Formula, m, off_zero

ORDINARY = [[0.7, 1.5, 4.0]]


def _damping(exp, x):
    term = total = 1
    for k in range(1, 7):
        term = term * 2 * x / k
        total = total + term
    return 1 - exp(-2 * x) * total


def _of(name, function, bad):
    return Formula(
        name,
        lambda x: function(tf, x),
        lambda x: function(m, off_zero(x)),
        bad,
        ORDINARY,
    )


FORMULAS = [
    _of(
        "dispersion damped by Tang and Toennies",
        lambda t, x: -_damping(t.exp, x) / x**6,
        [[0.0, 1e-3, 0.1, 0.5]],
    ),
    _of(
        "chance of a fourth event",
        lambda t, x: 1 - t.exp(-x) * (1 + x + x**2 / 2 + x**3 / 6),
        [[1e-3, 0.01, 0.1]],
    ),
    _of(
        "fourth function of an exponential integrator",
        lambda t, x: (t.exp(x) - 1 - x - x**2 / 2 - x**3 / 6) / x**4,
        [[1e-4, 0.01, 0.2]],
    ),
    _of(
        "third weight of a Runge-Kutta step with exponentials",
        lambda t, x: (-4 - 3 * x - x**2 + t.exp(x) * (4 - x)) / x**3,
        [[1e-4, 0.01, 0.2]],
    ),
    _of(
        "spherical Bessel function of order 3",
        lambda t, x: (15 / x**4 - 6 / x**2) * t.sin(x) - (15 / x**3 - 1 / x) * t.cos(x),
        [[1e-3, 0.05, 0.3]],
    ),
    _of(
        "relativistic energy beyond the second correction",
        lambda t, x: t.sqrt(1 + x**2) - 1 - x**2 / 2 + x**4 / 8,
        [[1e-3, 0.02, 0.1]],
    ),
]
