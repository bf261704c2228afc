"""Formulas whose parts are split, sliced or moved between the steps."""

import numpy as np
import tensorflow as tf

from tests.collection.formula import Formula, m

log, exp = tf.math.log, tf.exp
_SMOOTHED = np.float32([0.9, 0.05, 0.05])
_POSITIVES = np.array([[0, 1, 0], [1, 0, 0], [0, 1, 0]], np.float32)


def _total(x, axis=-1, keepdims=False):
    return tf.reduce_sum(x, axis, keepdims)


def _log_softmax(x):
    return x - m.log(m.exp(x).sum(-1, keepdims=True))


def _of_two_passes(a, b):
    p, q = tf.split(tf.nn.softmax(tf.concat([a, b], 0)), 2)
    return _total(p * (log(p) - log(q)) + q * (log(q) - log(p))) / 2


def _of_halves(a, b):
    p = tf.nn.softmax(tf.concat([a, b], 0))
    p, q = p[:1], p[1:]
    return _total(p * log(p / q) + q * log(q / p)) / 2


def _exact_of_two_passes(a, b):
    a, b = _log_softmax(a), _log_softmax(b)
    return (m.exp(a) - m.exp(b)) * (a - b) / 2


def _smoothed(logits):
    parts = tf.unstack(tf.nn.softmax(logits), axis=1)
    return -sum(
        weight * log(p) for weight, p in zip(_SMOOTHED.tolist(), parts, strict=True)
    )


def _proxies(distances):
    own, others = tf.split(exp(-distances), [1, 2], 1)
    return log(_total(others)) - tf.squeeze(log(own), 1)


def _contrastive(similarity):
    kernel = exp(similarity - tf.reduce_max(similarity, 1, keepdims=True))
    shifted = similarity - tf.reduce_max(similarity, 1, keepdims=True)
    own = tf.expand_dims(tf.linalg.diag_part(kernel), 1)
    return -_total(_POSITIVES * (shifted - log(_total(kernel, 1, True) - own)))


def _exact_contrastive(similarity):
    others = [
        m.log(sum(m.exp(row[j]) for j in range(3) if j != i))
        for i, row in enumerate(similarity)
    ]
    return -(_POSITIVES * (similarity - np.array(others)[:, None]))


def _pooled(scores, values, kept):
    weights = exp(scores - tf.reduce_max(scores, 1, keepdims=True))
    weights *= tf.cast(kept, tf.float32)
    pooled = tf.matmul(weights[:, None], values)[:, 0]
    return pooled / _total(weights, 1, True)


def _pooled_by_softmax(scores, values, kept):
    scores += log(tf.cast(kept, tf.float32))
    return tf.einsum("bn,bnd->bd", tf.nn.softmax(scores), values)


def _exact_pooled(scores, values, kept):
    weights = kept * m.exp(scores)
    total = weights.sum(1)[:, None]
    whole = (weights[:, :, None] * values).sum(1)
    return whole / np.where(np.equal(total, 0), 1, total)


def _any_of_three(p):
    a, b, c = tf.unstack(1 - p, axis=1)
    return 1 - a * b * c


def _pooled_by_graph(x, graph):
    sums = tf.math.unsorted_segment_sum(x, graph, 3)
    return sums / tf.math.bincount(graph, minlength=3, dtype=tf.float32)


def _exact_pooled_by_graph(x, graph):
    sums = [sum(x[graph == i]) for i in range(3)]
    return np.array(sums) / np.maximum(np.bincount(graph, minlength=3), 1)


def _mish(x):
    squared = (1 + exp(x)) ** 2
    return x * (squared - 1) / (squared + 1)


_SCORES = [[1.0, 2.0, 100.0], [120.0, 2.0, 3.0]]
_VALUES = [[[1.0], [2.0], [3.0]], [[4.0], [5.0], [7.0]]]
_FEW = [[0, 0, 0], [1, 0, 1]]
_SOME = [[1, 1, 0], [1, 0, 1]]
_GRAPHS = [0, 0, 2], [0, 1, 2]
_DISAGREE = [[[200.0, 2.0, 3.0]], [[1.0, 200.0, 3.0]]]
_AGREE = [[[1.0, 2.0, 3.0]], [[0.5, 0.1, 2.0]]]

FORMULAS = [
    Formula(
        "divergence of two passes of a batch that is split again",
        _of_two_passes,
        _exact_of_two_passes,
        _DISAGREE,
        _AGREE,
    ),
    Formula(
        "divergence of the halves of a batch, by quotients",
        _of_halves,
        _exact_of_two_passes,
        _DISAGREE,
        _AGREE,
    ),
    Formula(
        "smoothed labels, the probabilities unstacked",
        _smoothed,
        lambda logits: -(_SMOOTHED.astype(float) * _log_softmax(logits)),
        [[[-120.0, 110.0, 1.0]]],
        [[[0.1, 0.2, 0.3]]],
    ),
    Formula(
        "neighbourhood of a proxy, split from the others",
        _proxies,
        lambda d: d[:, 0] + m.log(m.exp(-d[:, 1:]).sum(-1)),
        [[[120.0, 130.0, 140.0]]],
        [[[1.0, 2.0, 3.0]]],
    ),
    Formula(
        "contrastive loss less the pair of each with itself, as a column",
        _contrastive,
        _exact_contrastive,
        [[[200.0, 1.0, 0.0], [1.0, 200.0, 0.5], [0.0, 0.5, 200.0]]],
        [[[1.0, 0.1, 0.0], [0.1, 1.0, 0.5], [0.0, 0.5, 1.0]]],
    ),
    Formula(
        "attention pooled by a product of matrices, a text without tokens",
        _pooled,
        _exact_pooled,
        [_SCORES, _VALUES, _FEW],
        [[[1.0, 2.0, 1.0], [1.0, 2.0, 3.0]], _VALUES, _SOME],
    ),
    Formula(
        "attention masked by the logarithm of integers, a text without tokens",
        _pooled_by_softmax,
        _exact_pooled,
        [_SCORES, _VALUES, _FEW],
        [[[1.0, 2.0, 1.0], [1.0, 2.0, 3.0]], _VALUES, [[1, 1, 1], [1, 1, 1]]],
    ),
    Formula(
        "returns by the differences of logarithms of prices",
        lambda prices: tf.keras.ops.diff(log(prices)),
        lambda prices: m.log(prices[1:] / prices[:-1]),
        [[1e6, 1e6 + 0.0625, 1e6 + 0.25]],
        [[1.0, 2.0, 5.0]],
    ),
    Formula(
        "returns by logarithms that are taken twice",
        lambda prices: log(prices)[1:] - log(prices)[:-1],
        lambda prices: m.log(prices[1:] / prices[:-1]),
        [[1e6, 1e6 + 0.0625, 1e6 + 0.25]],
        [[1.0, 2.0, 5.0]],
    ),
    Formula(
        "chance of any of three rare events, unstacked",
        _any_of_three,
        lambda p: 1 - (1 - p).prod(1),
        [[[1e-8, 2e-8, 1e-9]]],
        [[[0.1, 0.2, 0.3]]],
    ),
    Formula(
        "mean over graphs by their counts, one of them empty",
        _pooled_by_graph,
        _exact_pooled_by_graph,
        [[1.0, 2.0, 3.0], _GRAPHS[0]],
        [[1.0, 2.0, 3.0], _GRAPHS[1]],
    ),
    Formula(
        "mish by a square",
        _mish,
        lambda x: x * m.tanh(m.log(1 + m.exp(x))),
        [[100.0, 1.0]],
        [[1.0, -2.0]],
    ),
    Formula(
        "divergence of two histograms with an empty bin",
        lambda p, q: _total(p * log(p / q)),
        lambda p, q: (
            p * m.log(np.where(np.equal(p, 0), 1, p) / np.where(np.equal(q, 0), 1, q))
        ),
        [[0.25, 0.75, 0.0], [0.5, 0.5, 0.0]],
        [[0.25, 0.5, 0.25], [0.5, 0.25, 0.25]],
        slopes="finite",
    ),
    Formula(
        "divergence of the other histogram, in bits",
        lambda p, q: -_total(p * (log(q / p) / log(2.0))),
        lambda p, q: (
            p
            * m.log(np.where(np.equal(p, 0), 1, p) / np.where(np.equal(q, 0), 1, q))
            / m.log(2 + 0 * p)
        ),
        [[0.25, 0.75, 0.0], [0.5, 0.5, 0.0]],
        [[0.25, 0.5, 0.25], [0.5, 0.25, 0.25]],
        slopes="finite",
    ),
]
