"""Layers, losses and schedules of current models, as their projects write them."""

import math

import numpy as np
import tensorflow as tf

from tests.collection.formula import Formula, m

_TRIANGLE = np.tril(np.ones((3, 3), bool))
_OWN = np.eye(3, dtype=np.float32)
_WEIGHTS = np.float32([1.0, 2.0])
_ROOT = np.float32(math.sqrt(2))


def _total(x, axis=-1):
    return tf.reduce_sum(x, axis)


def _size(x, keepdims=True):
    return m.sqrt((x * x).sum(-1, keepdims=keepdims))


def _posterior(before, beta, start, x):
    alphas = before * (1 - beta)
    return tf.sqrt(before) * beta / (1 - alphas) * start + (
        tf.sqrt(1 - beta) * (1 - before) / (1 - alphas) * x
    )


def _exact_posterior(before, beta, start, x):
    alphas = before * (1 - beta)
    return m.sqrt(before) * beta / (1 - alphas) * start + (
        m.sqrt(1 - beta) * (1 - before) / (1 - alphas) * x
    )


def _composited(alpha, colour):
    rest = tf.math.cumprod(1 - alpha, axis=-1, exclusive=True)
    return _total(rest * alpha * colour)


def _exact_composited(alpha, colour):
    rest = np.cumprod(1 - alpha, -1)
    rest = np.concatenate([np.ones_like(rest[:, :1]), rest[:, :-1]], -1)
    return rest * alpha * colour


def _opacity(near, far):
    p, q = tf.sigmoid(near), tf.sigmoid(far)
    return (p - q) / p


def _exact_opacity(near, far):
    p, q = (1 / (1 + m.exp(-x)) for x in (near, far))
    return (p - q) / p


def _contrastive(similarity, temperature):
    kernel = tf.exp(similarity / temperature)
    own = _total(kernel * _OWN)
    return -tf.math.log(own / (_total(kernel) - own))


def _exact_contrastive(similarity, temperature):
    kernel = m.exp(similarity / temperature)
    own = np.diagonal(kernel)
    others = np.array([
        sum(row[j] for j in range(len(row)) if j != i) for i, row in enumerate(kernel)
    ])
    return -m.log(own / others)


def _memory(entry, forget, x):
    cell = norm = 0.0
    for t in range(2):
        keep, gate = tf.sigmoid(forget[t]), tf.exp(entry[t])
        cell, norm = keep * cell + gate * x[t], keep * norm + gate
    return cell / tf.maximum(tf.abs(norm), 1.0)


def _exact_memory(entry, forget, x):
    cell = norm = 0
    for t in range(2):
        keep, gate = 1 / (1 + m.exp(-forget[t])), m.exp(entry[t])
        cell, norm = keep * cell + gate * x[t], keep * norm + gate
    return cell / max(abs(norm), 1)


def _decay(logs):
    whole = tf.exp(logs)[:, :, None] * tf.exp(-logs)[:, None, :]
    return tf.where(_TRIANGLE, whole, tf.zeros_like(whole))


def _exact_decay(logs):
    whole = m.exp(logs[:, :, None] - logs[:, None, :])
    return np.where(_TRIANGLE, whole, 0)


def _gated(gates, q, k):
    decay = tf.exp(tf.cumsum(gates, 0))
    scores = q * tf.transpose(k) * (decay / tf.transpose(decay))
    return tf.where(_TRIANGLE, scores, tf.zeros_like(scores))


def _exact_gated(gates, q, k):
    logs = np.cumsum(gates, 0)
    return np.where(_TRIANGLE, q * k.T * m.exp(logs - logs.T), 0)


def _factored_update(g):
    squares = tf.square(g)
    rows, columns = (tf.reduce_mean(squares, i, keepdims=True) for i in (-1, -2))
    scale = tf.math.rsqrt(rows / tf.reduce_mean(rows, -2, keepdims=True))
    return g * scale * tf.math.rsqrt(columns) * _WEIGHTS


def _exact_factored_update(g):
    squares = g * g
    rows, columns = (squares.sum(i, keepdims=True) / 2 for i in (-1, -2))
    whole = rows * columns / (rows.sum(-2, keepdims=True) / 2)
    return g / m.sqrt(whole) * _WEIGHTS


def _preconditioned(noise, scale, made):
    weight = (noise**2 + scale**2) / (noise * scale) ** 2
    out = noise * scale / tf.sqrt(noise**2 + scale**2)
    return weight * (out * made) ** 2 + noise * scale


def _generalised_dice(p, y):
    weight = 1 / _total(y) ** 2
    return 2 * _total(weight * _total(p * y)) / _total(weight * _total(p + y))


def _concentration(k):
    return k / tf.tanh(k) - 1 + tf.math.log(k / tf.sinh(k))


def _cdf(x):
    return 0.5 * (1 + tf.math.erf(x / _ROOT))


def _crps(y, mean, scale):
    z = (tf.math.log(y) - mean) / scale
    rest = _cdf(z - scale) + _cdf(scale / _ROOT) - 1
    return y * (2 * _cdf(z) - 1) - 2 * tf.exp(mean + scale**2 / 2) * rest


def _exact_crps(y, mean, scale):
    root = m.sqrt(2 + 0 * scale)
    z = (m.log(y) - mean) / scale
    low, step = m.erf((z - scale) / root), m.erf(scale / 2)
    return y * m.erf(z / root) - m.exp(mean + scale**2 / 2) * (low + step)


def _scale_invariant(depth, target):
    d = tf.math.log(depth) - tf.math.log(target)
    return tf.sqrt(tf.reduce_mean(d**2, -1) - 0.85 * tf.reduce_mean(d, -1) ** 2)


def _exact_scale_invariant(depth, target):
    d = m.log(depth / target)
    n, share = d.shape[-1], float(np.float32(0.85))
    return m.sqrt((d * d).sum(-1) / n - share * (d.sum(-1) / n) ** 2)


def _of_known(known, depth, target):
    d = tf.math.log(depth) - tf.math.log(target)
    count = _total(known)
    return _total(known * d**2) / count - 0.5 * (_total(known * d) / count) ** 2


def _exact_of_known(known, depth, target):
    d = m.log(np.where(np.equal(depth, 0), 1, depth) / target)
    count = known.sum()
    return (known * d * d).sum() / count - ((known * d).sum() / count) ** 2 / 2


def _load(clean, threshold, noise):
    z = (clean - threshold) / tf.math.log(1 + tf.exp(noise))
    return tf.math.log(_cdf(z))


def _exact_load(clean, threshold, noise):
    z = (clean - threshold) / m.log(1 + m.exp(noise))
    return m.log(m.erfc(-z / m.sqrt(2 + 0 * z)) / 2)


FORMULAS = [
    Formula(
        "posterior mean of a diffusion with little noise",
        _posterior,
        _exact_posterior,
        [[1.0, 1 - 2.0**-23], [1e-8, 1e-7], [1.0, 2.0], [2.0, 1.0]],
        [[0.9, 0.5], [0.01, 0.02], [1.0, 2.0], [2.0, 1.0]],
    ),
    Formula(
        "colours behind an opaque sample",
        _composited,
        _exact_composited,
        [[[0.5, 1.0, 0.25], [1.0, 1.0, 0.5]], [[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]],
        [[[0.5, 0.2, 0.25]], [[1.0, 2.0, 3.0]]],
    ),
    Formula(
        "opacity between two distances to a surface, both outside",
        _opacity,
        _exact_opacity,
        [[20.0, 14.0], [19.0, 12.0]],
        [[1.0, 0.5], [0.5, -0.5]],
    ),
    Formula(
        "positive pair over the sum less that pair",
        _contrastive,
        _exact_contrastive,
        [[[1.0, 0.5, 0.25], [0.5, 1.0, 0.0], [0.0, 0.25, 1.0]], 0.0039],
        [[[1.0, 0.5, 0.25], [0.5, 1.0, 0.0], [0.0, 0.25, 1.0]], 0.5],
    ),
    Formula(
        "memory with exponential gates and a floor below its norm",
        _memory,
        _exact_memory,
        [[100.0, 95.0], [2.0, 1.0], [1.0, -1.0]],
        [[1.0, 0.5], [2.0, 1.0], [1.0, -1.0]],
    ),
    Formula(
        "decay between two positions as a product of exponentials",
        _decay,
        _exact_decay,
        [[[-100.0, -101.0, -103.0]]],
        [[[-1.0, -1.5, -2.0]]],
    ),
    Formula(
        "scores of gated linear attention",
        _gated,
        _exact_gated,
        [[[-100.0], [-1.0], [-2.0]], [[1.0], [2.0], [0.5]], [[1.0], [0.5], [2.0]]],
        [[[-1.0], [-0.5], [-0.25]], [[1.0], [2.0], [0.5]], [[1.0], [0.5], [2.0]]],
    ),
    Formula(
        "root mean square norm with a gain, without epsilon",
        lambda x, gain: (
            gain * x * tf.math.rsqrt(tf.reduce_mean(tf.square(x), -1, keepdims=True))
        ),
        lambda x, gain: gain * x / (_size(x) / m.sqrt(2 + 0 * _size(x))),
        [[[1e-25, 3e-25], [1e25, 2e25]], [1.0, 5.0]],
        [[[1.0, 3.0], [3.0, 1.0]], [1.0, 5.0]],
    ),
    Formula(
        "weight normalisation by an inverse root",
        lambda v, g: g * v * tf.math.rsqrt(tf.reduce_sum(v**2, 1, keepdims=True)),
        lambda v, g: g * v / _size(v),
        [[[1e-25, 2e-25], [1e25, 2e25]], [[1.0], [2.0]]],
        [[[1.0, 2.0], [3.0, 2.0]], [[1.0], [2.0]]],
    ),
    Formula(
        "update by second moments of rows and columns",
        _factored_update,
        _exact_factored_update,
        [[[1e-25, 2e-25], [3e-25, 1e-25]]],
        [[[1.0, 2.0], [3.0, 1.0]]],
    ),
    Formula(
        "weighted loss of a preconditioned denoiser",
        _preconditioned,
        lambda noise, scale, made: made * made + noise * scale,
        [[1e-25, 1e-24], [0.5], [1.0, 2.0]],
        [[0.25, 2.0], [0.5], [1.0, 2.0]],
        slopes="finite",
    ),
    Formula(
        "generalised Dice with weights of tiny classes",
        _generalised_dice,
        lambda p, y: 2 * (p * y).sum(-1) / (p + y).sum(-1),
        [[[1e-25, 2e-25]], [[1e-25, 1e-25]]],
        [[[0.25, 0.5]], [[0.5, 0.125]]],
    ),
    Formula(
        "gradient penalty of tiny and of huge gradients",
        lambda g: tf.abs(tf.sqrt(_total(tf.square(g))) - 1),
        lambda g: abs(_size(g, keepdims=False) - 1),
        [[[1e-25, 2e-25], [1e25, 2e25]]],
        [[[1.0, 2.0], [0.25, 0.5]]],
    ),
    Formula(
        "pseudo-Huber loss of a vector",
        lambda x, c: tf.sqrt(_total(x**2) + c**2) - c,
        lambda x, c: m.sqrt((x * x).sum(-1) + c * c) - c,
        [[[1e-4, 2e-4], [1e25, 2.0]], 0.125],
        [[[1.0, 2.0], [3.0, 4.0]], 0.125],
    ),
    Formula(
        "divergence of a von Mises-Fisher distribution from the uniform one",
        _concentration,
        lambda k: k / m.tanh(k) - 1 + m.log(k / m.sinh(k)),
        [[1e-4, 0.01, 200.0]],
        [[1.0, 2.0, 0.5]],
    ),
    Formula(
        "CRPS of a narrow log-normal distribution",
        _crps,
        _exact_crps,
        [[1.0, 1e-5], [0.0, -12.0], [1e-4, 1e-3]],
        [[1.0, 2.0], [0.0, 1.0], [1.0, 0.5]],
    ),
    Formula(
        "logarithm of a Kent distribution's normaliser",
        lambda k, b: tf.math.log(2 * np.pi * tf.exp(k) * (k**2 - 4 * b**2) ** -0.5),
        lambda k, b: m.log(2 * np.pi) + k - m.log((k - 2 * b) * (k + 2 * b)) / 2,
        [[200.0, 10.0], [50.0, 4.9999995]],
        [[2.0, 1.0], [0.5, 0.25]],
    ),
    Formula(
        "scale-invariant loss of a depth near its target",
        _scale_invariant,
        _exact_scale_invariant,
        [[[0.5, 0.25, 0.125]], [[0.50001, 0.25001, 0.12501]]],
        [[[0.5, 0.25, 0.125]], [[0.6, 0.2, 0.1]]],
    ),
    Formula(
        "scale-invariant loss of depths of which some are missing",
        _of_known,
        _exact_of_known,
        [[[1.0, 1.0, 0.0]], [[0.5, 0.4, 0.0]], [[0.4, 0.4, 0.3]]],
        [[[1.0, 1.0, 0.0]], [[0.5, 0.4, 0.2]], [[0.4, 0.3, 0.3]]],
        slopes="finite",
    ),
    Formula(
        "Bhattacharyya distance of two variances near each other",
        lambda a, b: tf.math.log((a + b) / (2 * tf.sqrt(a * b))),
        lambda a, b: m.log((a + b) / (2 * m.sqrt(a * b))),
        [[1.0, 2.0], [1.0001, 2.0001]],
        [[1.0, 2.0], [2.0, 3.0]],
    ),
    Formula(
        "load of noisy experts",
        _load,
        _exact_load,
        [[10.0, -10.0], [0.0, 0.0], [-100.0, 1.0]],
        [[1.0, 2.0], [0.5, 3.0], [0.25, 1.0]],
    ),
]
