"""Losses, layers and policies as they are written by hand in Keras projects."""

import math

import mpmath
import numpy as np
import tensorflow as tf

from tests.collection.formula import Formula, m, off_zero

_ROOT = np.float32(math.sqrt(2))


def _softmax(x):
    e = m.exp(x)
    return e / e.sum(-1, keepdims=True)


def _paths(logits):
    y = tf.nn.softmax(logits)
    blank, label, end = y[0, 0], y[0, 1], 0.0
    for t in range(1, 3):
        blank, label, end = (
            blank * y[t, 0],
            (blank + label) * y[t, 1],
            (label + end) * y[t, 0],
        )
    return -tf.math.log(label + end)


def _exact_paths(logits):
    y = _softmax(logits)
    blank, label, end = y[0, 0], y[0, 1], 0
    for t in (1, 2):
        blank, label, end = (
            blank * y[t, 0],
            (blank + label) * y[t, 1],
            (label + end) * y[t, 0],
        )
    return -mpmath.log(label + end)


def _ratio_of_policies(new, old, actions):
    chosen = tf.one_hot(actions, 3)
    p = tf.reduce_sum(tf.nn.softmax(new) * chosen, axis=1)
    q = tf.reduce_sum(tf.nn.softmax(old) * chosen, axis=1)
    return tf.minimum(p / q, tf.clip_by_value(p / q, 0.8, 1.2))


def _exact_ratio_of_policies(new, old, actions):
    rows = np.arange(len(actions))
    ratio = _softmax(new)[rows, actions] / _softmax(old)[rows, actions]
    return [min(each, mpmath.mpf(np.float32(1.2).item())) for each in ratio]


def _attention(scores, keep, values):
    weights = tf.exp(scores - tf.reduce_max(scores, -1, keepdims=True)) * keep
    return tf.matmul(weights / tf.reduce_sum(weights, -1, keepdims=True), values)


def _attention_at_the_end(scores, keep, values):
    weights = tf.exp(scores - tf.reduce_max(scores, -1, keepdims=True)) * keep
    return tf.matmul(weights, values) / tf.reduce_sum(weights, -1, keepdims=True)


def _exact_attention(scores, keep, values):
    weights = m.exp(scores) * keep
    total = weights.sum(-1, keepdims=True)
    return (weights / np.where(np.equal(total, 0), 1, total)) @ values


def _selected(scores, keep):
    logits = tf.where(keep, scores, -np.inf)
    weights = tf.exp(logits - tf.reduce_max(logits, axis=-1, keepdims=True))
    return weights / tf.reduce_sum(weights, axis=-1, keepdims=True) * scores


def _exact_selected(scores, keep):
    return sum(
        (_softmax(row[k]) * row[k]).sum() for row, k in zip(scores, keep) if k.any()
    )


def _elu(x):
    return tf.nn.elu(x) + 1


def _linear_attention(query, key, value):
    query, key = _elu(query), _elu(key)
    context = tf.matmul(key, value, transpose_a=True)
    total = tf.reduce_sum(key, axis=1, keepdims=True)
    return tf.matmul(query, context) / tf.reduce_sum(query * total, -1, keepdims=True)


def _exact_elu(x):
    return np.where(np.greater(x, 0), x + 1, m.exp(np.where(np.greater(x, 0), 0, x)))


def _exact_linear_attention(query, key, value):
    query, key = _exact_elu(query[0]), _exact_elu(key[0])
    weights = query @ key.T
    return weights @ value[0] / weights.sum(-1, keepdims=True)


def _expected_improvement(deviation, gain):
    z = gain / deviation
    bell = tf.exp(-z * z / 2) / np.float32(math.sqrt(2 * math.pi))
    return gain * 0.5 * (1 + tf.math.erf(z / _ROOT)) + deviation * bell


def _exact_expected_improvement(deviation, gain):
    z = gain / off_zero(deviation)
    return gain * m.ncdf(z) + deviation * m.npdf(z)


def _uncertain(raw, error):
    variance = tf.nn.softplus(raw)
    return 0.5 * (tf.math.log(variance) + tf.square(error) / variance)


def _exact_uncertain(raw, error):
    variance = m.log1p(m.exp(raw))
    return (m.log(variance) + error**2 / variance) / 2


def _sharpened(probs, temperature):
    powers = tf.pow(probs, 1 / temperature)
    return powers / tf.reduce_sum(powers, axis=1, keepdims=True) * probs


def _exact_sharpened(probs, temperature):
    powers = m.power(probs, 1 / temperature)
    return powers / powers.sum(1, keepdims=True) * probs


def _neighbours(distances):
    closeness = tf.exp(-distances)
    closeness = tf.linalg.set_diag(closeness, tf.zeros_like(distances[0]))
    shares = closeness / tf.reduce_sum(closeness, axis=1, keepdims=True)
    return shares * distances


def _exact_neighbours(distances):
    closeness = m.exp(-distances) * (1 - np.eye(len(distances), dtype=int))
    return closeness / closeness.sum(1, keepdims=True) * distances


def _trusted(gradient, weights):
    return tf.norm(weights) / tf.norm(gradient) * gradient


def _exact_trusted(gradient, weights):
    length = mpmath.sqrt((gradient**2).sum())
    return mpmath.sqrt((weights**2).sum()) * gradient / (length or 1)


def _pseudo_huber(error):
    return tf.sqrt(1 + tf.square(error / 2)) - 1


_KEPT = [[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
_SCORES = [[1.0, 2.0, 3.0], [2.0, 0.5, 1.0]]
_VALUES = [[0.5], [1.5], [-1.0]]


def _yeo_johnson(x, k):
    above = (tf.pow(x + 1.0, k) - 1.0) / k
    below = (tf.pow(1.0 - x, 2.0 - k) - 1.0) / (2.0 - k)
    return tf.where(x >= 0, above, -below)


def _exact_yeo_johnson(x, k):
    def power(base, k):
        return (m.exp(k * m.log(base)) - 1) / k

    k = off_zero(np.broadcast_to(k, x.shape))
    above = power(np.where(x >= 0, x + 1, 1), k)
    below = power(np.where(x >= 0, 1, 1 - x), 2 - k)
    return np.where(x >= 0, above, -below)


FORMULAS = [
    Formula(
        "alignment paths in a loop that begins at 0",
        _paths,
        _exact_paths,
        [[[60.0, -60.0], [70.0, -60.0], [70.0, -50.0]]],
        [[[0.6, -0.6], [0.7, -0.6], [0.7, -0.5]]],
    ),
    Formula(
        "clipped ratio of two policies that saturate",
        _ratio_of_policies,
        _exact_ratio_of_policies,
        [[[200.0, 0.0, 1.0]], [[201.0, 1.25, 1.0]], [1]],
        [[[0.5, 0.0, 1.0]], [[0.25, 0.5, 1.0]], [1]],
    ),
    Formula(
        "attention with a float mask, a row of it 0",
        _attention,
        _exact_attention,
        [_SCORES, _KEPT, _VALUES],
        [_SCORES, [[1.0, 1.0, 0.5], [0.5, 1.0, 1.0]], _VALUES],
        slopes="finite",
    ),
    Formula(
        "attention normalised at the end, a row of the mask 0",
        _attention_at_the_end,
        _exact_attention,
        [_SCORES, _KEPT, _VALUES],
        [_SCORES, [[1.0, 1.0, 0.5], [0.5, 1.0, 1.0]], _VALUES],
        slopes="finite",
    ),
    Formula(
        "softmax by hand of a row that is masked altogether",
        _selected,
        _exact_selected,
        [_SCORES, [[True, True, False], [False, False, False]]],
        [_SCORES, [[True, True, False], [True, False, True]]],
    ),
    Formula(
        "linear attention of faint queries and keys by matmul",
        _linear_attention,
        _exact_linear_attention,
        [[[[-120.0, -130.0]]], [[[-100.0, -90.0], [-95.0, -110.0]]], [[[1.0], [2.0]]]],
        [[[[-1.0, 0.5]]], [[[-1.0, 0.9], [0.5, -1.0]]], [[[1.0], [2.0]]]],
    ),
    Formula(
        "expected improvement where nothing is uncertain",
        _expected_improvement,
        _exact_expected_improvement,
        [[0.0, 0.5], [1.0, 1.0]],
        [[0.25, 0.5], [1.0, 1.0]],
        slopes="finite",
    ),
    Formula(
        "Gaussian likelihood of no error and a variance that underflows",
        _uncertain,
        _exact_uncertain,
        [[-110.0, 1.0], [0.0, 0.2]],
        [[-1.0, 1.0], [0.1, 0.2]],
    ),
    Formula(
        "sharpened probabilities that are all faint",
        _sharpened,
        _exact_sharpened,
        [[[1e-20, 2e-20, 1e-20]], [0.25]],
        [[[0.5, 0.2, 0.3]], [0.5]],
    ),
    Formula(
        "shares of neighbours that are all far, the diagonal set to 0",
        _neighbours,
        _exact_neighbours,
        [[[0.0, 400.0, 401.0], [400.0, 0.0, 400.5], [401.0, 400.5, 0.0]]],
        [[[0.0, 1.0, 2.0], [1.0, 0.0, 0.5], [2.0, 0.5, 0.0]]],
    ),
    Formula(
        "trust ratio of a zero gradient, the quotient first",
        _trusted,
        _exact_trusted,
        [[0.0, 0.0], [1.0, 2.0]],
        [[1.0, 0.5], [1.0, 2.0]],
        slopes="finite",
    ),
    Formula(
        "pseudo-Huber loss of large errors in half precision",
        _pseudo_huber,
        lambda error: m.sqrt(1 + error**2 / 4) - 1,
        [[600.0, 1.0]],
        [[3.0, 1.0]],
        dtype="float16",
    ),
    Formula(
        "Yeo-Johnson transform with a learned power",
        _yeo_johnson,
        _exact_yeo_johnson,
        [[0.5, -2.0, 3.0], [0.7]],
        [[0.5, -0.25, 0.75], [0.7]],
    ),
    Formula(
        "Yeo-Johnson transform with a power of 0",
        _yeo_johnson,
        _exact_yeo_johnson,
        [[0.5, -2.0, 3.0], [0.0]],
        [[0.5, -0.25, 0.75], [0.5]],
    ),
    Formula(
        "generalised cross-entropy of a hopeless class",
        lambda s: (1.0 - tf.pow(tf.nn.softmax(s)[:, 1], 0.7)) / 0.7,
        lambda s: (1 - m.power(_softmax(s)[:, 1], mpmath.mpf(0.7))) / mpmath.mpf(0.7),
        [[[130.0, -130.0], [1.0, 2.0]]],
        [[[0.5, -1.0], [1.0, 2.0]]],
    ),
]
