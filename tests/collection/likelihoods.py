"""Log-likelihoods whose parts cancel, overflow or underflow."""

import mpmath
import numpy as np
import tensorflow as tf

from tests.collection.formula import Formula, m

lg = tf.math.lgamma
SQRT2 = np.float32(np.sqrt(2))


def _cdf(z):
    return 0.5 * (1 + tf.math.erf(z / SQRT2))


def _softplus(x):
    return m.log1p(m.exp(x))


def _sigmoid(x):
    return 1 / (1 + m.exp(-x))


def _negative_binomial(y, mu, r):
    return (
        lg(y + r)
        - lg(r)
        - lg(y + 1)
        + r * tf.math.log(r / (r + mu))
        + y * tf.math.log(mu / (r + mu))
    )


def _exact_negative_binomial(y, mu, r):
    return (
        m.loggamma(y + r)
        - m.loggamma(r)
        - m.loggamma(y + 1)
        + r * m.log(r / (r + mu))
        + y * m.log(mu / (r + mu))
    )


def _student_t(x, nu):
    return (
        lg((nu + 1) / 2)
        - lg(nu / 2)
        - 0.5 * tf.math.log(np.pi * nu)
        - (nu + 1) / 2 * tf.math.log(1 + x * x / nu)
    )


def _exact_student_t(x, nu):
    return (
        m.loggamma((nu + 1) / 2)
        - m.loggamma(nu / 2)
        - m.log(np.float32(np.pi) * nu) / 2
        - (nu + 1) / 2 * m.log1p(x * x / nu)
    )


def _dirichlet_multinomial(y, a):
    return (
        tf.reduce_sum(lg(y + a) - lg(a))
        + lg(tf.reduce_sum(a))
        - lg(tf.reduce_sum(y + a))
    )


def _exact_dirichlet_multinomial(y, a):
    return (
        (m.loggamma(y + a) - m.loggamma(a)).sum()
        + m.loggamma(a.sum())
        - m.loggamma((y + a).sum())
    )


def _log_beta(a, b):
    return lg(a) + lg(b) - lg(a + b)


def _mixture(x, logits, mu, log_s):
    weights = tf.nn.softmax(logits)
    density = tf.exp(-0.5 * ((x[:, None] - mu) / tf.exp(log_s)) ** 2) / tf.exp(log_s)
    return -tf.math.log(tf.reduce_sum(weights * density, -1))


def _exact_mixture(x, logits, mu, log_s):
    w = m.exp(logits) / m.exp(logits).sum()
    d = m.exp(-(((x[:, None] - mu) / m.exp(log_s)) ** 2) / 2) / m.exp(log_s)
    return -m.log((w * d).sum(-1))


def _logistic(x, mu, log_s):
    upper = tf.sigmoid((x + 0.5 - mu) / tf.exp(log_s))
    lower = tf.sigmoid((x - 0.5 - mu) / tf.exp(log_s))
    return tf.math.log(upper - lower)


def _exact_logistic(x, mu, log_s):
    a, b = (x + m.mpf(0.5) - mu) / m.exp(log_s), (x - m.mpf(0.5) - mu) / m.exp(log_s)
    return m.log(_sigmoid(a) - _sigmoid(b))


def _ordinal(z, cuts):
    upper = tf.concat([tf.sigmoid(cuts - z), [1.0]], 0)
    lower = tf.concat([[0.0], tf.sigmoid(cuts - z)], 0)
    return tf.math.log(tf.gather(upper - lower, 1))


def _exact_ordinal(z, cuts):
    return m.log(_sigmoid(cuts[1] - z) - _sigmoid(cuts[0] - z))


def _interval(a, b):
    return tf.math.log(_cdf(b) - _cdf(a))


def _exact_interval(a, b):
    return m.log(m.erfc(-b / m.sqrt(m.mpf(2))) / 2 - m.erfc(-a / m.sqrt(m.mpf(2))) / 2)


def _partial_likelihood(risk, event):
    total = tf.cumsum(tf.exp(risk), reverse=True)
    return -tf.reduce_sum((risk - tf.math.log(total)) * event)


def _exact_partial(risk, event):
    e = m.exp(risk)
    totals = np.array([e[i:].sum() for i in range(len(e))], object)
    return -((risk - m.log(totals)) * event).sum()


def _evidential(alpha):
    return tf.math.log(np.float32(np.pi) / tf.nn.softplus(alpha))


def _zero_inflated(gate, rate):
    pi = tf.sigmoid(gate)
    return -tf.math.log(pi + (1 - pi) * tf.exp(-rate))


def _exact_zero_inflated(gate, rate):
    p = _sigmoid(gate)
    return -m.log(p + (1 - p) * m.exp(-rate))


def _bessel_ratio(x):
    return tf.math.bessel_i1(x) / tf.math.bessel_i0(x)


def _i(n):
    return np.frompyfunc(lambda x: mpmath.besseli(n, x), 1, 1)


def _kl_dirichlet(a, b):
    total = tf.reduce_sum(a)
    return (
        lg(total)
        - lg(tf.reduce_sum(b))
        - tf.reduce_sum(lg(a) - lg(b))
        + tf.reduce_sum((a - b) * (tf.math.digamma(a) - tf.math.digamma(total)))
    )


def _exact_kl_dirichlet(a, b):
    total = a.sum()
    return (
        m.loggamma(total)
        - m.loggamma(b.sum())
        - (m.loggamma(a) - m.loggamma(b)).sum()
        + ((a - b) * (m.digamma(a) - m.digamma(total))).sum()
    )


FORMULAS = [
    Formula(
        "negative binomial with a large dispersion",
        _negative_binomial,
        _exact_negative_binomial,
        [[3.0], [2.5], [1e7]],
        [[3.0], [2.5], [4.0]],
    ),
    Formula(
        "Student's t with many degrees of freedom",
        _student_t,
        _exact_student_t,
        [[0.5, 2.0], [1e7, 1e6]],
        [[0.5, 2.0], [3.0, 5.0]],
    ),
    Formula(
        "Dirichlet multinomial with large concentrations",
        _dirichlet_multinomial,
        _exact_dirichlet_multinomial,
        [[2.0, 3.0], [1e6, 2e6]],
        [[2.0, 3.0], [0.5, 1.5]],
    ),
    Formula(
        "logarithm of the beta function, one argument large",
        _log_beta,
        lambda a, b: m.loggamma(a) + m.loggamma(b) - m.loggamma(a + b),
        [[2.5], [1e6]],
        [[2.5], [1.5]],
    ),
    Formula(
        "KL divergence of nearly equal large Dirichlets",
        _kl_dirichlet,
        _exact_kl_dirichlet,
        [[1e4, 2e4, 3e4], [1.001e4, 2e4, 3e4]],
        [[1.0, 2.0, 3.0], [1.5, 1.0, 2.0]],
    ),
    Formula(
        "Gaussian mixture with densities summed",
        _mixture,
        _exact_mixture,
        [[30.0, 0.1], [0.1, 0.3], [0.0, 1.0], [0.0, 0.1]],
        [[0.5, 0.1], [0.1, 0.3], [0.0, 1.0], [0.0, 0.1]],
    ),
    Formula(
        "discretised logistic in the tail",
        _logistic,
        _exact_logistic,
        [[40.0, -60.0], [0.0, 0.0], [0.0, 0.1]],
        [[1.0, -2.0], [0.0, 0.0], [0.0, 0.1]],
    ),
    Formula(
        "ordinal regression, cut points behind concat and gather",
        _ordinal,
        _exact_ordinal,
        [30.0, [-1.0, 1.0]],
        [0.3, [-1.0, 1.0]],
    ),
    Formula(
        "interval of the normal distribution in the tail",
        _interval,
        _exact_interval,
        [[8.0, -9.0], [8.5, -8.0]],
        [[0.5, -1.0], [1.5, -0.3]],
    ),
    Formula(
        "normal survival log(1 - cdf)",
        lambda z: tf.math.log(1 - _cdf(z)),
        lambda z: m.log(m.erfc(z / m.sqrt(m.mpf(2))) / 2),
        [[7.0, 10.0]],
        [[0.5, -1.0]],
    ),
    Formula(
        "normal log cdf far below",
        lambda z: tf.math.log(_cdf(z)),
        lambda z: m.log(m.erfc(-z / m.sqrt(m.mpf(2))) / 2),
        [[-7.0, -12.0]],
        [[0.5, -1.0]],
    ),
    Formula(
        "inverse Mills ratio",
        lambda z: tf.exp(-0.5 * z * z) / (1 - _cdf(z)),
        lambda z: m.exp(-z * z / 2) * 2 / m.erfc(z / m.sqrt(m.mpf(2))),
        [[7.0, 12.0]],
        [[0.5, -1.0]],
    ),
    Formula(
        "Cox's partial likelihood",
        _partial_likelihood,
        _exact_partial,
        [[100.0, 2.0, 1.0], [1.0, 0.0, 1.0]],
        [[0.5, 2.0, 1.0], [1.0, 0.0, 1.0]],
    ),
    Formula(
        "evidential regression log(pi / softplus(z))",
        _evidential,
        lambda z: m.log(m.mpf(float(np.float32(np.pi))) / _softplus(z)),
        [[-120.0, 1.0]],
        [[-1.0, 1.0]],
    ),
    Formula(
        "logarithm of softplus",
        lambda z: tf.math.log(tf.nn.softplus(z)),
        lambda z: m.log(_softplus(z)),
        [[-120.0, 1.0]],
        [[-1.0, 1.0]],
    ),
    Formula(
        "zero-inflated Poisson at zero",
        _zero_inflated,
        _exact_zero_inflated,
        [[-120.0, 0.5], [110.0, 2.0]],
        [[0.3, 0.5], [1.5, 2.0]],
    ),
    Formula(
        "logarithm of the Bessel function i0",
        lambda x: tf.math.log(tf.math.bessel_i0(x)),
        lambda x: m.log(_i(0)(x)),
        [[100.0, 2.0]],
        [[1.0, 2.0]],
    ),
    Formula(
        "ratio of Bessel functions of von Mises",
        _bessel_ratio,
        lambda x: _i(1)(x) / _i(0)(x),
        [[100.0, 2.0]],
        [[1.0, 2.0]],
    ),
    Formula(
        "von Mises log density",
        lambda x, k: (
            k * tf.cos(x) - tf.math.log(2 * np.float32(np.pi) * tf.math.bessel_i0(k))
        ),
        lambda x, k: (
            k * m.cos(x) - m.log(2 * m.mpf(float(np.float32(np.pi))) * _i(0)(k))
        ),
        [[0.3], [100.0]],
        [[0.3], [2.0]],
    ),
    Formula(
        "Weibull log survival and density",
        lambda t, k: tf.math.log(tf.exp(-(t**k))) + tf.math.log(k * t ** (k - 1)),
        lambda t, k: -(t**k) + m.log(k) + (k - 1) * m.log(t),
        [[20.0, 1.5], [2.0, 3.0]],
        [[1.2, 0.5], [2.0, 3.0]],
    ),
    Formula(
        "binomial log-likelihood of a probability that rounds to 1",
        lambda k, z: (
            k * tf.math.log(tf.sigmoid(z)) + (10.0 - k) * tf.math.log(1 - tf.sigmoid(z))
        ),
        lambda k, z: -k * _softplus(-z) - (10 - k) * _softplus(z),
        [[3.0, 10.0], [30.0, -120.0]],
        [[3.0, 7.0], [0.3, -1.0]],
        slopes="exact",
    ),
    Formula(
        "geometric number of failures",
        lambda k, z: tf.math.log(tf.sigmoid(z) * (1 - tf.sigmoid(z)) ** k),
        lambda k, z: -_softplus(-z) - k * _softplus(z),
        [[3.0], [40.0]],
        [[3.0], [0.5]],
    ),
    Formula(
        "Poisson log-likelihood with a rate by exp",
        lambda y, z: y * tf.math.log(tf.exp(z)) - tf.exp(z),
        lambda y, z: y * z - m.exp(z),
        [[2.0, 0.0], [-120.0, 1.0]],
        [[2.0, 0.0], [0.5, 1.0]],
    ),
    Formula(
        "log odds ratio of two small probabilities",
        lambda a, b: tf.math.log(
            tf.sigmoid(a) / (1 - tf.sigmoid(a)) / (tf.sigmoid(b) / (1 - tf.sigmoid(b)))
        ),
        lambda a, b: a - b,
        [[40.0], [30.0]],
        [[0.5], [0.2]],
    ),
    Formula(
        "Bernoulli mixture of two experts",
        lambda g, a, b: tf.math.log(
            tf.sigmoid(g) * tf.sigmoid(a) + (1 - tf.sigmoid(g)) * tf.sigmoid(b)
        ),
        lambda g, a, b: m.log(_sigmoid(g) * _sigmoid(a) + _sigmoid(-g) * _sigmoid(b)),
        [[0.5], [-120.0], [-115.0]],
        [[0.5], [-1.0], [1.0]],
    ),
    Formula(
        "log determinant of a product of triangular matrices",
        lambda d: tf.math.log(tf.abs(tf.linalg.det(tf.linalg.diag(d)))),
        lambda d: m.log(abs(d)).sum(),
        [[1e-20, 1e-15, 1e-10]],
        [[1.0, 2.0, 0.5]],
    ),
    Formula(
        "log determinant of a flow, log of abs of a product",
        lambda d: tf.math.log(tf.abs(tf.reduce_prod(d))),
        lambda d: m.log(abs(d)).sum(),
        [[1e-20, -1e-15, 1e-10]],
        [[1.0, -2.0, 0.5]],
    ),
    Formula(
        "binomial coefficient of a large number",
        lambda n, k: lg(n + 1) - lg(k + 1) - lg(n - k + 1),
        lambda n, k: m.loggamma(n + 1) - m.loggamma(k + 1) - m.loggamma(n - k + 1),
        [[3e6], [3.0]],
        [[8.0], [3.0]],
    ),
    Formula(
        "Dirichlet multinomial, sums apart",
        lambda y, a: (
            tf.reduce_sum(lg(y + a), -1)
            - tf.reduce_sum(lg(a), -1)
            + (lg(tf.reduce_sum(a, -1)) - lg(tf.reduce_sum(y + a, -1)))
        ),
        lambda y, a: (
            (m.loggamma(y + a) - m.loggamma(a)).sum(-1)
            + m.loggamma(a.sum(-1))
            - m.loggamma((y + a).sum(-1))
        ),
        [[[2.0, 3.0]], [[1e6, 2e6]]],
        [[[2.0, 3.0]], [[0.5, 1.5]]],
    ),
    Formula(
        "beta binomial with large concentrations",
        lambda k, a, b: _log_beta(k + a, 10.0 - k + b) - _log_beta(a, b),
        lambda k, a, b: (
            m.loggamma(k + a)
            - m.loggamma(a)
            + m.loggamma(10 - k + b)
            - m.loggamma(b)
            + m.loggamma(a + b)
            - m.loggamma(a + b + 10)
        ),
        [[3.0], [1e6], [2e6]],
        [[3.0], [2.0], [1.5]],
    ),
    Formula(
        "chi-square normaliser of many degrees of freedom",
        lambda k: tf.exp(lg((k + 1) * 0.5) - lg(0.5 * k)) / tf.sqrt(k),
        lambda k: m.exp(m.loggamma((k + 1) / 2) - m.loggamma(k / 2)) / m.sqrt(k),
        [[1e6, 1e5]],
        [[3.0, 5.0]],
        slopes="finite",
    ),
    Formula(
        "truncated normal mean, hazard of a tail by erf",
        lambda z: (
            np.float32(np.sqrt(2 / np.pi))
            * tf.exp(-tf.square(z) / 2)
            / (1 - tf.math.erf(z / SQRT2))
        ),
        lambda z: (
            m.mpf(float(np.float32(np.sqrt(2 / np.pi))))
            * m.exp(-z * z / 2)
            / m.erfc(z / m.sqrt(m.mpf(2)))
        ),
        [[6.0, 14.0]],
        [[0.5, -1.0]],
    ),
    Formula(
        "tail of the normal distribution",
        lambda z: 1.0 - 0.5 * (1.0 + tf.math.erf(z / SQRT2)),
        lambda z: m.erfc(z / m.sqrt(m.mpf(2))) / 2,
        [[6.0, 7.0]],
        [[0.5, -1.0]],
    ),
    Formula(
        "interval censored in the upper tail by erfc",
        lambda a, b: tf.math.log(
            tf.math.erfc(a / SQRT2) / 2.0 - tf.math.erfc(b / SQRT2) / 2.0
        ),
        _exact_interval,
        [[11.0, -16.0], [11.5, -15.0]],
        [[0.5, -1.0], [1.5, -0.3]],
    ),
    Formula(
        "log determinant of scaled matrices",
        lambda d: tf.math.log(tf.square(tf.linalg.det(tf.linalg.diag(d)))),
        lambda d: 2 * m.log(abs(d)).sum(),
        [[1e-20, -1e-15, 1e-10]],
        [[1.0, -2.0, 0.5]],
    ),
]
