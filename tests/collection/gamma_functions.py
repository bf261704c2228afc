"""Divergences, entropies and likelihoods with gamma functions of large parameters."""

import tensorflow as tf

from tests.collection.formula import Formula, m

lg, digamma, log = tf.math.lgamma, tf.math.digamma, tf.math.log
PARAMETERS = [[3.0, 4.0], [2.0, 1.0], [2.0, 5.0], [1.5, 2.0]]
LARGE = [[1e4, 3e5], [2.0, 1.0], [1.01e4, 3.001e5], [2.001, 1.0]]
BETAS = [[1e5, 1e4], [3.0, 2e4], [1.001e5, 1.01e4], [3.0, 2e4]]


def _gamma(a, b, c, d):
    return (
        (a - c) * digamma(a) + lg(c) - lg(a) + c * (log(b) - log(d)) + a * (d / b - 1.0)
    )


def _exact_gamma(a, b, c, d):
    cancelled = (a - c) * m.digamma(a) + m.loggamma(c) - m.loggamma(a)
    return cancelled + c * m.log(b / d) + a * (d / b - 1)


def _inverse_gamma(a, b, c, d):
    normalisers = -lg(a) + lg(c) + c * log(b / d)
    return tf.reduce_mean((a - c) * digamma(a) + normalisers + a * (d - b) / b)


def _log_beta(a, b):
    return lg(a) + lg(b) - lg(a + b)


def _beta(a, b, c, d):
    return (
        _log_beta(c, d)
        - _log_beta(a, b)
        - (c - a) * digamma(a)
        - (d - b) * digamma(b)
        + (c - a + d - b) * digamma(a + b)
    )


def _beta_by_stack(a, b, c, d):
    p, q = tf.math.lbeta(tf.stack([a, b], -1)), tf.math.lbeta(tf.stack([c, d], -1))
    slopes = (c - a) * digamma(a) + (d - b) * digamma(b)
    return q - p - slopes + (c - a + d - b) * digamma(a + b)


def _exact_log_beta(a, b):
    return m.loggamma(a) + m.loggamma(b) - m.loggamma(a + b)


def _exact_beta(a, b, c, d):
    slopes = (c - a) * m.digamma(a) + (d - b) * m.digamma(b)
    rest = (c - a + d - b) * m.digamma(a + b)
    return _exact_log_beta(c, d) - _exact_log_beta(a, b) - slopes + rest


def _dirichlet(a, b):
    steps = digamma(a) - digamma(tf.reduce_sum(a, -1, keepdims=True))
    return tf.reduce_sum((a - b) * steps, -1) - tf.math.lbeta(a) + tf.math.lbeta(b)


def _exact_dirichlet(a, b):
    total = a.sum(-1, keepdims=True)
    normalisers = m.loggamma(total) - m.loggamma(b.sum(-1, keepdims=True))
    slopes = ((a - b) * (m.digamma(a) - m.digamma(total))).sum()
    return normalisers.sum() - (m.loggamma(a) - m.loggamma(b)).sum() + slopes


def _normal_inverse_gamma(a, b, c, d, v, w):
    return (
        0.5 * w / v
        - 0.5 * log(w / v)
        - 0.5
        + c * log(b / d)
        - (lg(a) - lg(c))
        + (a - c) * digamma(a)
        - (b - d) * a / b
    )


def _exact_normal_inverse_gamma(a, b, c, d, v, w):
    return (w / v - m.log(w / v) - 1) / 2 + _exact_gamma(a, b, c, d)


def _negative_binomial(y, mu, r):
    logs = r * (log(r) - log(r + mu)) + y * (log(mu) - log(r + mu))
    return logs + lg(y + r) - lg(r) - lg(y + 1)


def _exact_negative_binomial(y, mu, r):
    logs = r * m.log(r / (r + mu)) + y * m.log(mu / (r + mu))
    return logs + m.loggamma(y + r) - m.loggamma(r) - m.loggamma(y + 1)


def _beta_binomial(k, n, a, b):
    return (
        lg(n + 1)
        - lg(k + 1)
        - lg(n - k + 1)
        + lg(k + a)
        + lg(n - k + b)
        - lg(n + a + b)
        - lg(a)
        - lg(b)
        + lg(a + b)
    )


def _exact_beta_binomial(k, n, a, b):
    choices = -m.log(n + 1) - _exact_log_beta(n - k + 1, k + 1)
    return choices + _exact_log_beta(k + a, n - k + b) - _exact_log_beta(a, b)


FORMULAS = [
    Formula("KL divergence of gammas", _gamma, _exact_gamma, LARGE, PARAMETERS),
    Formula(
        "KL divergence of inverse gammas, averaged",
        _inverse_gamma,
        lambda *args: _exact_gamma(*args).sum() / 2,
        LARGE,
        PARAMETERS,
    ),
    Formula(
        "equation for the shape of a gamma distribution",
        lambda shape, spread: log(shape) - digamma(shape) - spread,
        lambda shape, spread: m.log(shape) - m.digamma(shape) - spread,
        [[1e3, 1e6], [2.0**-12, 2.0**-22]],
        [[3.0, 0.5], [0.25, 1.5]],
    ),
    Formula(
        "weighted slope of a gamma likelihood",
        lambda shape, weight: weight * (log(shape) - digamma(shape)),
        lambda shape, weight: weight * (m.log(shape) - m.digamma(shape)),
        [[1e3, 1e6], [0.25, 2.0]],
        [[3.0, 0.5], [0.25, 1.5]],
    ),
    Formula("KL divergence of betas", _beta, _exact_beta, BETAS, PARAMETERS),
    Formula(
        "KL divergence of betas by lbeta",
        _beta_by_stack,
        _exact_beta,
        BETAS,
        PARAMETERS,
    ),
    Formula(
        "KL divergence of proportional Dirichlets by lbeta",
        _dirichlet,
        _exact_dirichlet,
        [[[1e4, 2e4, 3e4]], [[1.001e4, 2.002e4, 3.003e4]]],
        [[[1.0, 2.0, 3.0]], [[1.5, 1.0, 2.0]]],
    ),
    Formula(
        "KL divergence from a Dirichlet with a vanishing and a large concentration",
        _dirichlet,
        _exact_dirichlet,
        [[[1e4, 2e4, 3e4]], [[1.001e4, 2.002e4, 3.003e4]]],
        [[[1.0, 2.0, 3.0]], [[1e-30, 1.0, 2.0]]],
    ),
    Formula(
        "KL divergence of normal inverse gammas",
        _normal_inverse_gamma,
        _exact_normal_inverse_gamma,
        [[1e5], [2.0], [1.001e5], [2.002], [2.0], [2.0]],
        [[3.0], [1.0], [2.0], [2.0], [2.0], [1.5]],
    ),
    Formula(
        "entropy of a gamma distribution",
        lambda a, b: a - log(b) + lg(a) + (1 - a) * digamma(a),
        lambda a, b: a - m.log(b) + m.loggamma(a) + (1 - a) * m.digamma(a),
        [[1e6, 1e4], [1e3, 100.0]],
        [[2.0, 0.5], [1.0, 3.0]],
    ),
    Formula(
        "Poisson likelihood of large counts",
        lambda y, rate: y * log(rate) - rate - lg(y + 1.0),
        lambda y, rate: y * m.log(rate) - rate - m.loggamma(y + 1),
        [[1e6, 2e5], [1.001e6, 2e5]],
        [[3.0, 0.0], [2.0, 1.5]],
    ),
    Formula(
        "binomial likelihood of many trials, by logits",
        lambda k, n, z: (
            lg(n + 1) - lg(k + 1) - lg(n - k + 1) + k * z - n * tf.nn.softplus(z)
        ),
        lambda k, n, z: (
            -m.log(n + 1)
            - _exact_log_beta(n - k + 1, k + 1)
            + k * z
            - n * m.log1p(m.exp(z))
        ),
        [[3e5], [1e6], [-0.8473]],
        [[3.0], [10.0], [0.3]],
    ),
    Formula(
        "negative binomial of many counts, logarithms apart",
        _negative_binomial,
        _exact_negative_binomial,
        [[1e4, 5.0], [1.1e4, 6.0], [3e3, 1e5]],
        [[3.0, 0.0], [2.5, 1.0], [4.0, 2.0]],
    ),
    Formula(
        "negative binomial of a logarithm of the mean and of the dispersion",
        lambda y, m, t: _negative_binomial(y, tf.exp(m), tf.exp(t)),
        lambda y, a, b: _exact_negative_binomial(y, m.exp(a), m.exp(b)),
        [[3.0, 5.0, 4.0], [0.55, 1.5, 0.0], [12.0, 20.0, 0.0]],
        [[3.0, 0.0], [0.5, 0.1], [1.0, -1.0]],
    ),
    Formula(
        "beta binomial with its coefficient",
        _beta_binomial,
        _exact_beta_binomial,
        [[3.0, 3e3], [10.0, 1e4], [1e6, 1e4], [2e6, 2e4]],
        [[3.0], [10.0], [2.0], [1.5]],
    ),
]
