"""Quotients of polynomials that overflow far from 0, as many fields saturate by."""

import mpmath

from tests.collection.formula import Formula

FORMULAS = [
    Formula(
        "Holling's third functional response to a glut",
        lambda n: n * n / (n * n + 1),
        lambda n: n * n / (n * n + 1),
        [[1e20, 3e19, 2.0]],
        [[0.5, 2.0, 3.0]],
    ),
    Formula(
        "Michaelis-Menten rate in large units",
        lambda s, a, b, c: a * s / (b + c * s),
        lambda s, a, b, c: a * s / (b + c * s),
        [[1e30], [1e10], [1.0], [1e10]],
        [[2.0], [3.0], [1.0], [2.0]],
    ),
    Formula(
        "Haldane's rate with an inhibiting substrate",
        lambda s, k, i: 2 * s / (k + s + s**2 / i),
        lambda s, k, i: 2 * s / (k + s + s**2 / i),
        [[1e20], [1.0], [1e25]],
        [[2.0], [1.0], [3.0]],
    ),
    Formula(
        "Geman-McClure loss of an outlier",
        lambda r, s: s * r**2 / (s + r**2),
        lambda r, s: s * r**2 / (s + r**2),
        [[1e20, 1.0], [2.0, 2.0]],
        [[2.0, 1.0], [1.0, 2.0]],
    ),
    Formula(
        "influence of an outlier on Cauchy's loss",
        lambda r: r / (1 + r * r),
        lambda r: r / (1 + r * r),
        [[1e20, 3e10]],
        [[0.5, 3.0]],
    ),
    Formula(
        "softened gravity of a distant mass",
        lambda r, c: r / (r**2 + c) ** 1.5,
        lambda r, c: r / (r**2 + c) ** mpmath.mpf("1.5"),
        [[1e13, 1e10], [1.0, 2.0]],
        [[2.0, 0.5], [1.0, 0.5]],
    ),
    Formula(
        "quotient of quadratics far out",
        lambda x: (2 * x**2 + 3 * x + 1) / (x**2 + x + 4),
        lambda x: (2 * x**2 + 3 * x + 1) / (x**2 + x + 4),
        [[1e20, -1.0]],
        [[2.0, -3.0]],
    ),
    Formula(
        "Lorentzian line at half its height, in hertz",
        lambda x, g: g**2 / ((x - 1) ** 2 + g**2),
        lambda x, g: g**2 / ((x - 1) ** 2 + g**2),
        [[1e20], [1e20]],
        [[2.0], [3.0]],
    ),
]
