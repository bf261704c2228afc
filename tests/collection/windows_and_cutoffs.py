"""Windows, cutoffs, flows and activations whose sums cancel at a point."""

import tensorflow as tf

from tests.collection.formula import Formula, m, off_zero

log = tf.math.log


def _planar(w, u, z):
    slope = 1 - tf.tanh(tf.reduce_sum(w * z)) ** 2
    return log(tf.abs(1 + slope * tf.reduce_sum(w * u)))


def _continuous_bernoulli(p):
    return tf.reduce_sum(log(2 * tf.atanh(1 - 2 * p) / (1 - 2 * p)))


def _exact_continuous_bernoulli(p):
    y = off_zero(1 - 2 * p)
    return m.log(2 * m.atanh(y) / y).sum()


FORMULAS = [
    Formula(
        "cosine cutoff of a neighbour that is about to leave",
        lambda r: tf.reduce_sum(0.5 * (tf.cos(r) + 1) * tf.exp(-r * r)),
        lambda r: ((m.cos(r) + 1) / 2 * m.exp(-r * r)).sum(),
        [[3.1415, 3.1413]],
        [[0.5, 2.0]],
    ),
    Formula(
        "last steps of a cosine schedule",
        lambda t: tf.reduce_sum(0.5 + 0.5 * tf.cos(t)),
        lambda t: (1 + m.cos(t)).sum() / 2,
        [[3.1415, 3.1413]],
        [[0.5, 2.0]],
    ),
    Formula(
        "distance from the pole by the sine of a latitude",
        lambda x: tf.reduce_sum(tf.sqrt(2 - 2 * tf.sin(x))),
        lambda x: m.sqrt(2 - 2 * m.sin(x)).sum(),
        [[1.5703, 1.57]],
        [[0.5, -1.0]],
    ),
    Formula(
        "log determinant of a planar flow that does next to nothing",
        _planar,
        lambda w, u, z: m.log(
            abs(1 + (1 - m.tanh((w * z).sum()) ** 2) * (w * u).sum())
        ),
        [[1.0, 2.0], [0.5, 0.25], [8.0, 1.0]],
        [[1.0, 2.0], [0.5, -0.75], [0.8, -0.1]],
    ),
    Formula(
        "normaliser of a continuous Bernoulli distribution",
        _continuous_bernoulli,
        _exact_continuous_bernoulli,
        [[0.5, 0.4999, 0.3]],
        [[0.1, 0.7, 0.3]],
    ),
    Formula(
        "Fisher transform of a correlation near 1 by its complement",
        lambda d: tf.reduce_sum(tf.atanh(1 - d)),
        lambda d: m.atanh(1 - d).sum(),
        [[1e-12, 1e-9]],
        [[0.1, 0.7]],
    ),
    Formula(
        "per-channel energy normalisation of a quiet band",
        lambda e, smooth: tf.reduce_sum(tf.sqrt(e / smooth**0.98 + 4) - 2),
        lambda e, smooth: (m.sqrt(e / smooth ** m.mpf(0.98) + 4) - 2).sum(),
        [[1e-12, 2e-9], [1e-4, 1e-2]],
        [[0.1, 0.5], [0.2, 0.3]],
    ),
    Formula(
        "per-channel energy normalisation with learned powers",
        lambda e, bias, power: tf.reduce_sum((e + bias) ** power - bias**power),
        lambda e, bias, power: ((e + bias) ** power - bias**power).sum(),
        [[1e-8, 1e-7], [2.0, 1.0], [0.5, 0.25]],
        [[0.1, 0.5], [2.0, 1.0], [0.5, 0.25]],
    ),
    Formula(
        "softplus moved through the origin",
        lambda x: tf.reduce_sum(tf.nn.softplus(x) - tf.math.log(2.0)),
        lambda x: (m.log(1 + m.exp(x)) - m.log(m.mpf(2))).sum(),
        [[1e-6, 3e-5]],
        [[0.5, -1.0]],
    ),
]
