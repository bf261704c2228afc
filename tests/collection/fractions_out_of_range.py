"""Quotients whose sides underflow, overflow, cancel or vanish together."""

import mpmath
import numpy as np
import tensorflow as tf

from tests.collection.formula import Formula, m, off_zero


def _attention(q, k, v):
    q, k = tf.nn.elu(q) + 1, tf.nn.elu(k) + 1
    weighted = tf.einsum("bd,bnd,bn->b", q, k, v)
    return weighted / tf.einsum("bd,bd->b", q, tf.reduce_sum(k, 1))


def _exact_attention(q, k, v):
    q, k = _elu_plus_one(q), _elu_plus_one(k)
    weights = (q[:, None] * k).sum(-1)
    return (weights * v).sum(1) / weights.sum(1)


def _elu_plus_one(x):
    return np.where(np.greater(x, 0), x + 1, m.exp(x))


def _gates(x):
    gates = tf.sigmoid(x)
    return (gates / tf.reduce_sum(gates, -1, keepdims=True)) ** 2


def _exact_gates(x):
    gates = 1 / (1 + m.exp(-x))
    return (gates / gates.sum(-1, keepdims=True)) ** 2


def _experts(logits):
    chosen = tf.nn.softmax(logits)[:, :2]
    return (chosen / tf.reduce_sum(chosen, -1, keepdims=True)) ** 2


def _exact_experts(logits):
    chosen = m.exp(logits[:, :2] - logits[0, 0])
    return (chosen / chosen.sum(-1, keepdims=True)) ** 2


def _soft_weights(x):
    weights = tf.nn.softplus(x)
    return tf.reduce_sum(weights / tf.einsum("bk->b", weights)[:, None] * [1.0, 3.0])


def _exact_soft_weights(x):
    weights = m.log1p(m.exp(x))
    return (weights / weights.sum(1, keepdims=True) * [1, 3]).sum()


def _sampled(logits, noise):
    exps = tf.exp((logits + noise) / 0.125)
    return (exps / tf.einsum("bk->b", exps)[:, None]) ** 2


def _exact_sampled(logits, noise):
    exps = m.exp((logits + noise) * 8)
    return (exps / exps.sum(1, keepdims=True)) ** 2


def _si_sdr(clean, estimate):
    scale = tf.reduce_sum(estimate * clean) / tf.reduce_sum(clean * clean)
    target = scale * clean
    noise = estimate - target
    return tf.math.log(tf.reduce_sum(target**2) / tf.reduce_sum(noise**2))


def _exact_si_sdr(clean, estimate):
    target = (estimate * clean).sum() / (clean * clean).sum() * clean
    return m.log((target**2).sum() / ((estimate - target) ** 2).sum())


def _aspect(w, h, true_w, true_h):
    return (tf.atan(true_w / true_h) - tf.atan(w / h)) ** 2


def _inverse_jacobian(t):
    return 1 / t**2 - (1 + tf.cos(t)) / (2 * t * tf.sin(t))


def _exact_inverse_jacobian(t):
    t = off_zero(t)
    return 1 / t**2 - (1 + m.cos(t)) / (2 * t * m.sin(t))


def _inverse_jacobian_by_sine(t):
    return (1 - t * tf.sin(t) / (2 * (1 - tf.cos(t)))) / t**2


def _debye(x):
    return x**4 * tf.exp(x) / (tf.exp(x) - 1) ** 2


def _exact_debye(x):
    x = off_zero(x)
    return x**4 * m.exp(x) / m.expm1(x) ** 2


def _raised_cosine(t):
    return tf.cos(np.float32(np.pi) * t) / (1 - (2 * t) ** 2)


def _exact_raised_cosine(t):
    u = off_zero(1 - 2 * t)
    return m.sin(mpmath.pi * u / 2) / (u * (2 - u))


def _growth(t):
    return 10 * tf.exp(t) / (10 + 0.5 * (tf.exp(t) - 1))


def _look_at(eye, target):
    ahead = target - eye
    return ahead * tf.math.rsqrt(tf.einsum("bi,bi->b", ahead, ahead))[:, None]


def _exact_look_at(eye, target):
    ahead = target - eye
    length = m.sqrt((ahead**2).sum(-1, keepdims=True))
    return ahead / np.where(np.equal(length, 0), mpmath.mpf(1), length)


def _value_rescaling(x):
    return tf.sign(x) * (tf.sqrt(tf.abs(x) + 1) - 1) + 0.125 * x


def _symlog(x):
    return tf.sign(x) * tf.math.log(tf.abs(x) + 1)


def _odd(function):
    return lambda x: np.where(np.less(x, 0), -function(abs(x)), function(abs(x)))


TINY = [2e-25, 5e-25, 1e-25]
USUAL = [0.5, 2.0, 1.5]
VALUES = [3.0, -2.0, 7.0]


def _weighted_by(weights):
    def mean(w, v):
        found = weights(w)
        return tf.reduce_sum(found * v) / tf.reduce_sum(found)

    return mean


def _exact_weighted_by(weights):
    return lambda w, v: (weights(w) * v).sum() / weights(w).sum()


FORMULAS = [
    Formula(
        "deviation of a wide log-normal distribution",
        lambda s: tf.sqrt(tf.exp(s**2) - 1),
        lambda s: m.sqrt(m.exp(s**2) - 1),
        [[0.5, 12.0]],
        [[0.5, 1.5]],
    ),
    Formula(
        "log determinant of a tiny matrix by hand",
        lambda a, b, c, d: tf.math.log(tf.abs(a * d - b * c)),
        lambda a, b, c, d: m.log(abs(a * d - b * c)),
        [1e-25, 1e-26, 2e-26, 3e-25],
        [1.0, 0.5, 2.0, 3.0],
    ),
    Formula(
        "effective sample size of tiny weights",
        lambda w: tf.square(tf.reduce_sum(w)) / tf.reduce_sum(tf.square(w)),
        lambda w: w.sum() ** 2 / (w**2).sum(),
        [TINY],
        [USUAL],
    ),
    Formula(
        "mean weighted by the squares of tiny rectified scores",
        _weighted_by(lambda w: tf.nn.relu(w) ** 2),
        _exact_weighted_by(lambda w: np.where(np.greater(w, 0), w, 0) ** 2),
        [TINY, VALUES],
        [USUAL, VALUES],
    ),
    Formula(
        "interpolation by inverse distances of far points",
        lambda d, v: tf.reduce_sum(v / d**4) / tf.reduce_sum(1 / d**4),
        _exact_weighted_by(lambda d: 1 / d**4),
        [[1e12, 2e12, 1.5e12], VALUES],
        [USUAL, VALUES],
    ),
    Formula(
        "gain of a Wiener filter for a faint and for a loud signal",
        lambda s, n: tf.square(s) / (tf.square(s) + tf.square(n)),
        lambda s, n: s**2 / (s**2 + n**2),
        [[2e-25, 3e25], [1e-25, 5e25]],
        [[0.5, 2.0], [1.0, 3.0]],
    ),
    Formula(
        "level of near silence in decibels",
        lambda x: tf.math.log(tf.reduce_mean(tf.square(x))) * 4.0,
        lambda x: m.log((x**2).sum() / 3) * 4,
        [TINY],
        [USUAL],
    ),
    Formula(
        "linear attention to keys that are all faint",
        _attention,
        _exact_attention,
        [[[-100.0, -95.0]], [[[-100.0, -99.0], [-96.0, -101.0]]], [[1.0, 3.0]]],
        [[[1.0, -0.5]], [[[0.25, -1.0], [0.5, 0.125]]], [[1.0, 3.0]]],
    ),
    Formula(
        "gates that are all nearly shut, normalised",
        _gates,
        _exact_gates,
        [[[-200.0, -201.0]]],
        [[[-2.0, 1.0]]],
    ),
    Formula(
        "weights of the two chosen experts",
        _experts,
        _exact_experts,
        [[[-300.0, -301.0, 0.0]]],
        [[[-0.25, -0.5, 0.0]]],
    ),
    Formula(
        "weights by softplus, normalised by einsum",
        _soft_weights,
        _exact_soft_weights,
        [[[-200.0, -201.0]]],
        [[[-2.0, 1.0]]],
    ),
    Formula(
        "softmax of noisy logits by einsum",
        _sampled,
        _exact_sampled,
        [[[20.0, 20.125, 3.0]], [[0.5, 0.25, 1.0]]],
        [[[0.5, 0.25, 0.125]], [[0.0, 0.125, 0.25]]],
    ),
    Formula(
        "scale-invariant SDR of faint signals",
        _si_sdr,
        _exact_si_sdr,
        [[1e-25, 2e-25, -1.5e-25], [1.125e-25, 1.75e-25, -1.375e-25]],
        [[0.5, 1.0, -0.75], [0.625, 0.875, -0.75]],
    ),
    Formula(
        "regression slope of tiny numbers",
        lambda x, y: tf.einsum("i,i->", x, y) / tf.einsum("i,i->", x, x),
        lambda x, y: (x * y).sum() / (x * x).sum(),
        [[1e-24, 2e-24], [3e-24, 5e-24]],
        [[1.0, 2.0], [3.0, 5.0]],
    ),
    Formula(
        "aspect ratio penalty of an empty box",
        _aspect,
        lambda w, h, a, b: (m.atan2(a, b) - m.atan2(w, h)) ** 2,
        [[0.0, 1.0], [0.0, 2.0], [1.0, 1.0], [1.0, 2.0]],
        [[0.5, 1.0], [0.75, 2.0], [1.0, 1.0], [1.0, 2.0]],
        slopes="finite",
    ),
    Formula(
        "angle of a vertical slope",
        lambda y, x: tf.atan(y / x),
        m.atan2,
        [[1.0, 2.0], [0.0, 1.0]],
        [[1.0, 2.0], [0.5, 1.0]],
    ),
    Formula(
        "inverse left Jacobian of a small rotation",
        _inverse_jacobian,
        _exact_inverse_jacobian,
        [[0.0, 1e-3, 1.0]],
        [[0.5, 1.0]],
    ),
    Formula(
        "inverse left Jacobian by sine and cosine",
        _inverse_jacobian_by_sine,
        _exact_inverse_jacobian,
        [[0.0, 1e-3, 1.0]],
        [[0.5, 1.0]],
    ),
    Formula(
        "Debye heat capacity, cold and hot",
        _debye,
        _exact_debye,
        [[0.0, 100.0, 1.0]],
        [[0.5, 2.0]],
    ),
    Formula(
        "raised cosine filter at its pole",
        _raised_cosine,
        _exact_raised_cosine,
        [[0.5, 0.25]],
        [[0.25, 0.125]],
    ),
    Formula(
        "Hill equation far above saturation",
        lambda x: x**4 / (0.5**4 + x**4),
        lambda x: x**4 / (mpmath.mpf("0.0625") + x**4),
        [[1e15, 1.0]],
        [[0.5, 2.0]],
    ),
    Formula(
        "logistic growth after a long time",
        _growth,
        lambda t: 10 / (10 * m.exp(-t) + (1 - m.exp(-t)) / 2),
        [[200.0, 1.0]],
        [[2.0, 1.0]],
    ),
    Formula(
        "repression by a Hill function",
        lambda x: 1 - x**4 / (1 + x**4),
        lambda x: 1 / (1 + x**4),
        [[200.0]],
        [[0.5, 2.0]],
    ),
    Formula(
        "log survival as 1 minus a distribution",
        lambda t: tf.math.log(1 - t**8 / (1 + t**8)),
        lambda t: -m.log1p(t**8),
        [[0.5, 1e6]],
        [[0.5, 2.0]],
    ),
    Formula(
        "likelihood of a category far up an ordinal scale",
        lambda a, b: tf.math.log(tf.sigmoid(b) - tf.sigmoid(a)),
        lambda a, b: m.log(1 / (1 + m.exp(-b)) - 1 / (1 + m.exp(-a))),
        [[100.0, 3.0], [101.0, 4.0]],
        [[1.0, 3.0], [1.5, 4.0]],
    ),
    Formula(
        "direction to where one stands",
        _look_at,
        _exact_look_at,
        [[[1.0, 1.0, 1.0]], [[1.0, 1.0, 1.0]]],
        [[[1.0, 1.0, 1.0]], [[2.0, 0.0, 1.0]]],
        slopes="finite",
    ),
    Formula(
        "symmetric logarithm of a return of 0",
        _symlog,
        _odd(m.log1p),
        [[0.0, 1e-6, -3.0]],
        [[0.5, -2.0]],
    ),
    Formula(
        "rescaled value of a return of 0",
        _value_rescaling,
        lambda x: _odd(lambda size: m.sqrt(size + 1) - 1)(x) + x / 8,
        [[0.0, 1e-6, -3.0]],
        [[0.5, -2.0]],
    ),
]
