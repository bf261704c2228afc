"""Softmax, means and norms over segments, neighbourhoods and ragged rows."""

import numpy as np
import tensorflow as tf

from tests.collection.formula import Formula, m

IDS = [0, 0, 2, 2, 2]
# The logits of segment 2 are far below and above what `exp` can hold.
FAR = [1.0, 2.0, 150.0, 0.1, 149.0]
NEAR = [1.0, 2.0, 0.5, 0.1, -1.0]
WEIGHTS = [0.2, 0.9, -0.4, 0.3, 0.8]


def _segment_softmax(x, w):
    e = tf.exp(x)
    total = tf.math.unsorted_segment_sum(e, IDS, 4)
    return w * e / tf.gather(total, IDS)


def _exact_softmax(x, w):
    e = m.exp(x)
    return sum(
        w[i] * e[i] / sum(e[j] for j in range(5) if IDS[j] == IDS[i]) for i in range(5)
    )


def _shifted_segment_softmax(x, w):
    largest = tf.math.unsorted_segment_max(x, IDS, 4)
    e = tf.exp(x - tf.gather(largest, IDS))
    return w * e / tf.gather(tf.math.unsorted_segment_sum(e, IDS, 4), IDS)


def _log_segment_softmax(x, w):
    e = tf.exp(x)
    return w * tf.math.log(e / tf.gather(tf.math.segment_sum(e, IDS), IDS))


def _exact_log_softmax(x, w):
    e = m.exp(x)
    return sum(
        w[i] * m.log(e[i] / sum(e[j] for j in range(5) if IDS[j] == IDS[i]))
        for i in range(5)
    )


def _segment_logsumexp(x):
    return tf.gather(
        tf.math.log(tf.math.unsorted_segment_sum(tf.exp(x), IDS, 4)), [0, 2]
    )


def _exact_logsumexp(x):
    e = m.exp(x)
    return m.log(e[0] + e[1]) + m.log(e[2] + e[3] + e[4])


def _segment_mean(x):
    sums = tf.math.unsorted_segment_sum(x, IDS, 4)
    counts = tf.math.unsorted_segment_sum(tf.ones_like(x), IDS, 4)
    return tf.reduce_sum(sums / counts * [1.0, 2.0, 3.0, 4.0])


def _segment_norm(x):
    return tf.sqrt(tf.math.unsorted_segment_sum(x * x, IDS, 4))


def _exact_norm(x):
    first, second = (x[:2] ** 2).sum(), (x[2:] ** 2).sum()
    return (m.sqrt(first) if first else 0) + (m.sqrt(second) if second else 0)


def _degrees(a, h):
    degree = tf.reduce_sum(a, -1)
    root = tf.pow(degree, -0.5)
    return tf.linalg.matvec(root[:, None] * a * root[None, :], h)


def _exact_degrees(a, h):
    d = a.sum(-1)
    r = np.array([1 / m.sqrt(each) if each else 0 for each in d], object)
    return ((r[:, None] * a * r[None, :]) * h[None, :]).sum()


def _row_normalised(a, h):
    return tf.linalg.matvec(a / tf.reduce_sum(a, -1, keepdims=True), h)


def _exact_row_normalised(a, h):
    return sum((a[i] * h).sum() / a[i].sum() for i in range(len(a)) if a[i].sum())


ISOLATED = [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
CONNECTED = [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]]
H = [0.5, -1.0, 2.0]


def _ragged_softmax(x, w):
    rows = tf.RaggedTensor.from_row_lengths(x, [2, 0, 3])
    e = tf.exp(rows)
    total = tf.reduce_sum(e, axis=1)
    return w * e.flat_values / tf.gather(total, rows.value_rowids())


def _scattered(x, w):
    e = tf.exp(x)
    total = tf.scatter_nd([[i] for i in IDS], e, [4])
    return w * e / tf.gather(total, IDS)


def _gated_mean(gate, pool):
    def mean(z, v):
        g = gate(z)
        return tf.gather(pool(g * v, IDS, 4) / pool(g, IDS, 4), [0, 2])

    return mean


def _exact_gated_mean(gate):
    def mean(z, v):
        g = gate(z)
        first, second = (g[:2] * v[:2]).sum(), (g[2:] * v[2:]).sum()
        return first / g[:2].sum() + second / g[2:].sum()

    return mean


# Near and below the smallest number that a sigmoid or a softplus can be.
FAINT = [-102.0, -105.0, -101.0, -100.0, -104.0]
VALUES = [1.0, 2.0, 30.0, 4.0, -7.0]

SOURCES, TARGETS = [0, 1, 1, 2], [1, 0, 2, 1]


def _messages(w):
    degree = tf.math.unsorted_segment_sum(w, TARGETS, 3)
    root = tf.math.rsqrt(degree)
    return w * tf.gather(root, SOURCES) * tf.gather(root, TARGETS)


def _exact_messages(w):
    degree = [w[1], w[0] + w[3], w[2]]
    root = [1 / m.sqrt(each) if each else 0 for each in degree]
    edges = zip(SOURCES, TARGETS, strict=True)
    return sum(w[i] * root[a] * root[b] for i, (a, b) in enumerate(edges))


# Node 2 has no edges; the edges come sorted by row.
EDGES = np.array([[0, 0], [0, 1], [1, 0], [1, 2], [3, 1]], np.int64)
FEATURES = [[1.0, 2.0], [0.5, -1.0], [3.0, 0.2], [-2.0, 1.0]]
SCALES = np.array([[1.0], [0.5], [2.0], [-1.0]], np.float32)


def _edges(w):
    return tf.sparse.SparseTensor(EDGES, w, [4, 4])


def _sparse_attention(w, h):
    a = _edges(tf.exp(w))
    above = tf.sparse.sparse_dense_matmul(a, h)
    return SCALES * above / tf.sparse.sparse_dense_matmul(a, tf.ones([4, 1]))


def _sparse_attention_by_sums(w, h):
    a = _edges(tf.exp(w))
    above = tf.sparse.sparse_dense_matmul(a, h)
    return SCALES * (above / tf.sparse.reduce_sum(a, axis=1)[:, None])


def _exact_sparse_mean(w, h):
    total = 0
    for row in (0, 1, 3):
        own = [i for i, edge in enumerate(EDGES) if edge[0] == row]
        above = sum(w[i] * h[EDGES[i][1]].sum() for i in own)
        total += SCALES[row][0] * above / sum(w[i] for i in own)
    return total


FORMULAS = [
    *(
        Formula(
            name,
            function,
            lambda w, h: _exact_sparse_mean(m.exp(w), h),
            [[150.0, 149.0, 1.0, -2.0, -120.0], FEATURES],
            [NEAR, FEATURES],
            slopes="finite",
        )
        for name, function in (
            ("attention by a sparse matrix", _sparse_attention),
            ("attention by a sparse matrix and its sums", _sparse_attention_by_sums),
        )
    ),
    Formula(
        "mean over neighbours by a sparse matrix",
        lambda w, h: (
            SCALES
            * (
                tf.sparse.sparse_dense_matmul(_edges(w), h)
                / tf.sparse.reduce_sum(_edges(w), axis=1, keepdims=True)
            )
        ),
        _exact_sparse_mean,
        [np.abs(NEAR), FEATURES],
        [np.abs(NEAR), FEATURES],
    ),
    Formula(
        "messages of a node to which no edge leads",
        _messages,
        _exact_messages,
        [[1.0, 2.0, 0.0, 3.0]],
        [[1.0, 2.0, 0.5, 0.25]],
        slopes="finite",
    ),
    Formula(
        "mean over segments, weighted by faint gates",
        _gated_mean(tf.sigmoid, tf.math.unsorted_segment_sum),
        _exact_gated_mean(lambda z: 1 / (1 + m.exp(-z))),
        [FAINT, VALUES],
        [NEAR, VALUES],
    ),
    Formula(
        "quotient of means over segments of a product of faint gates",
        _gated_mean(
            lambda z: tf.nn.softplus(z) * tf.sigmoid(-2 * z),
            tf.math.unsorted_segment_mean,
        ),
        _exact_gated_mean(lambda z: m.log1p(m.exp(z)) / (1 + m.exp(2 * z))),
        [FAINT, VALUES],
        [NEAR, VALUES],
    ),
    Formula(
        "softmax over segments",
        _segment_softmax,
        _exact_softmax,
        [FAR, WEIGHTS],
        [NEAR, WEIGHTS],
    ),
    Formula(
        "softmax over segments, shifted by the largest",
        _shifted_segment_softmax,
        _exact_softmax,
        [FAR, WEIGHTS],
        [NEAR, WEIGHTS],
    ),
    Formula(
        "logarithm of a softmax over sorted segments",
        lambda x, w: _log_segment_softmax(x, w),
        _exact_log_softmax,
        [FAR, WEIGHTS],
        [NEAR, WEIGHTS],
    ),
    Formula(
        "logsumexp over segments", _segment_logsumexp, _exact_logsumexp, [FAR], [NEAR]
    ),
    Formula(
        "mean over segments, two of them empty",
        _segment_mean,
        lambda x: x[:2].sum() / 2 + 3 * x[2:].sum() / 3,
        [NEAR],
        [NEAR],
    ),
    Formula(
        "norm over segments, one of them zero",
        _segment_norm,
        _exact_norm,
        [[0.0, 0.0, 3.0, 4.0, 0.0]],
        [[1.0, 2.0, 3.0, 4.0, 5.0]],
        slopes="finite",
    ),
    Formula(
        "norm over segments of tiny and of huge numbers",
        lambda x: tf.gather(_segment_norm(x), [0, 2]) * [1.0, 1e-25],
        lambda x: (
            m.sqrt((x[:2] ** 2).sum()) + np.float32(1e-25) * m.sqrt((x[2:] ** 2).sum())
        ),
        [[3e-25, 4e-25, 2e25, -1e25, 3e25]],
        [[1.0, 2.0, 3.0, 4.0, 5.0]],
    ),
    Formula(
        "symmetric degree normalisation with an isolated node",
        _degrees,
        _exact_degrees,
        [ISOLATED, H],
        [CONNECTED, H],
        slopes="finite",
    ),
    Formula(
        "row normalisation with an isolated node",
        _row_normalised,
        _exact_row_normalised,
        [ISOLATED, H],
        [CONNECTED, H],
        slopes="finite",
    ),
    Formula(
        "softmax over ragged rows",
        _ragged_softmax,
        _exact_softmax,
        [FAR, WEIGHTS],
        [NEAR, WEIGHTS],
    ),
    Formula(
        "softmax over scattered sums",
        _scattered,
        _exact_softmax,
        [FAR, WEIGHTS],
        [NEAR, WEIGHTS],
    ),
    Formula(
        "mean over the neighbours of each node",
        lambda x: (
            tf.math.unsorted_segment_sum(x, IDS, 4)
            / tf.maximum(tf.math.unsorted_segment_sum(tf.ones_like(x), IDS, 4), 0.0)
            * [1.0, 0.0, 1.0, 0.0]
        ),
        lambda x: x[:2].sum() / 2 + x[2:].sum() / 3,
        [NEAR],
        [NEAR],
    ),
    Formula(
        "softmax attention over edges with a leaky ReLU",
        lambda x, w: _segment_softmax(tf.nn.leaky_relu(x, 0.2), w),
        lambda x, w: _exact_softmax(
            np.where(x > 0, x, x * m.mpf(0.20000000298023224)), w
        ),
        [FAR, WEIGHTS],
        [NEAR, WEIGHTS],
    ),
]
