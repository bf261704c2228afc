"""Products of quantities in units in which they are very large or very small."""

import tensorflow as tf

from tests.collection.formula import Formula, m

sqrt = tf.sqrt


def _heron(a, b, c):
    half = (a + b + c) / 2
    return sqrt(half * (half - a) * (half - b) * (half - c))


def _exact_heron(a, b, c):
    half = (a + b + c) / 2
    return m.sqrt(half * (half - a) * (half - b) * (half - c))


def _bayes(likelihood, prior, other, rest):
    return likelihood * prior / (likelihood * prior + other * rest)


FORMULAS = [
    Formula(
        "attraction of two stars",
        lambda a, b, r: 6.674e-11 * a * b / r**2,
        lambda a, b, r: 6.674e-11 * a * b / r**2,
        [[2e30, 1e-25], [6e24, 3e-25], [1.5e11, 1e-12]],
        [[1.0], [3.0], [2.0]],
    ),
    Formula(
        "kinetic energy of an electron by its momentum",
        lambda p, mass: tf.square(p) / (2 * mass),
        lambda p, mass: p**2 / (2 * mass),
        [[2e-24, 1e25], [9.109e-31, 1e30]],
        [[1.0], [3.0]],
    ),
    Formula(
        "period of an orbit",
        lambda a, mass: 6.2831855 * sqrt(a**3 / (6.674e-11 * mass)),
        lambda a, mass: 6.2831855 * m.sqrt(a**3 / (6.674e-11 * mass)),
        [[1.5e13], [2e30]],
        [[1.0], [3.0]],
    ),
    Formula(
        "mass of two bodies that move about each other",
        lambda a, b: a * b / (a + b),
        lambda a, b: a * b / (a + b),
        [[1.67e-27, 2e30], [9.1e-31, 6e24]],
        [[1.0], [3.0]],
    ),
    Formula(
        "two resistances in parallel by an inverse of their sum",
        lambda a, b: a * b * (1 / (a + b)),
        lambda a, b: a * b / (a + b),
        [[1e-25, 1e25], [2e-25, 3e25]],
        [[1.0], [3.0]],
    ),
    Formula(
        "posterior of a likelihood that is faint",
        _bayes,
        _bayes,
        [[1e-25], [2e-25], [3e-25], [1e-25]],
        [[0.1], [0.3], [0.2], [0.4]],
    ),
    Formula(
        "geometric mean of two numbers",
        lambda a, b: sqrt(a * b),
        lambda a, b: m.sqrt(a * b),
        [[1e-25, 1e25], [2e-25, 3e25]],
        [[1.0], [3.0]],
    ),
    Formula(
        "geometric mean of three numbers",
        lambda a, b, c: (a * b * c) ** (1 / 3),
        lambda a, b, c: m.exp((m.log(a) + m.log(b) + m.log(c)) / 3),
        [[1e-25, 1e25], [2e-25, 3e25], [3e-20, 2e20]],
        [[1.0], [3.0], [2.0]],
    ),
    Formula(
        "area of a triangle by its sides",
        _heron,
        _exact_heron,
        [[3e-13, 3e12], [4e-13, 4e12], [4e-13, 4e12]],
        [[3.0], [4.0], [4.0]],
    ),
    Formula(
        "product of two quotients",
        lambda a, b, c, d: (a / b) * (c / d),
        lambda a, b, c, d: (a / b) * (c / d),
        [[1e-25], [2e25], [3e25], [1e-22]],
        [[1.0], [3.0], [2.0], [4.0]],
    ),
    Formula(
        "logarithm of a quotient of a small and a large number",
        lambda a, b: tf.math.log(a / b),
        lambda a, b: m.log(a) - m.log(b),
        [[1e-30, 1e30], [1e20, 1e-15]],
        [[1.0], [2.0]],
    ),
    Formula(
        "distance of an image from a thin lens",
        lambda f, d: 1 / (1 / f - 1 / d),
        lambda f, d: f * d / (d - f),
        [[1e-24, 1e24], [2e-24, 3e24]],
        [[1.0, 2.0], [3.0, 5.0]],
    ),
    Formula(
        "harmonic mean of precision and recall of rare events",
        lambda p, r: 2 / (1 / p + 1 / r),
        lambda p, r: 2 * p * r / (p + r),
        [[1e-24, 0.5], [3e-24, 0.25]],
        [[0.25, 0.5], [0.75, 0.5]],
    ),
    Formula(
        "harmonic mean of small rates",
        lambda x: 1 / tf.reduce_mean(1 / x),
        lambda x: x.size / (1 / x).sum(),
        [[1e-24, 2e-24, 4e-24]],
        [[1.0, 2.0, 4.0]],
    ),
]
