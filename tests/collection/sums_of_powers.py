"""Roots of sums of powers that leave the range of the dtype."""

import tensorflow as tf

from tests.collection.formula import Formula, m

FORMULAS = [
    Formula(
        "evaporation by Fu's curve of a desert",
        lambda x, w: tf.reduce_sum(1 + x - (1 + x**w) ** (1 / w)),
        lambda x, w: (1 + x - (1 + x**w) ** (1 / w)).sum(),
        [[30.0, 2.0], [40.0, 2.5]],
        [[1.5, 2.0], [2.5, 2.5]],
    ),
    Formula(
        "Gumbel's copula of a strong dependence",
        lambda u, v, t: tf.reduce_sum(
            tf.exp(-(((-tf.math.log(u)) ** t + (-tf.math.log(v)) ** t) ** (1 / t)))
        ),
        lambda u, v, t: m.exp(
            -(((-m.log(u)) ** t + (-m.log(v)) ** t) ** (1 / t))
        ).sum(),
        [[0.02, 0.98], [0.0201, 0.9801], [90.0, 60.0]],
        [[0.3, 0.9], [0.4, 0.8], [2.0, 3.0]],
    ),
    Formula(
        "Clayton's copula of rare events",
        lambda u, v, t: tf.reduce_sum((u ** (-t) + v ** (-t) - 1) ** (-1 / t)),
        lambda u, v, t: ((u**-t + v**-t - 1) ** (-1 / t)).sum(),
        [[1e-10, 1e-12], [2e-10, 1e-11], [5.0, 4.0]],
        [[0.3, 0.9], [0.4, 0.8], [2.0, 3.0]],
    ),
    Formula(
        "output of two goods in large units",
        lambda k, n, r: tf.reduce_sum((0.25 * k**r + 0.75 * n**r) ** (1 / r)),
        lambda k, n, r: ((k**r / 4 + 3 * n**r / 4) ** (1 / r)).sum(),
        [[1e20, 1e15], [2e20, 3e15], [-3.0, 4.0]],
        [[1.5, 2.0], [0.5, 1.0], [-3.0, 0.5]],
    ),
]
