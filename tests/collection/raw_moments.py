"""Variances and covariances with weights, over windows, segments and matrices."""

import numpy as np
import tensorflow as tf

from tests.collection.formula import Formula, m

FAR = [3000.1, 3000.3, 3000.2, 3000.5]
NEAR = [1.0, 2.0, 4.0, 3.0]
ROWS = [[3000.0, 2000.0], [3000.5, 2001.0], [3001.0, 2000.4]]
ORDINARY_ROWS = [[3.0, 2.0], [3.5, 2.1], [1.0, 2.4]]
IMAGE = np.arange(16.0).reshape(4, 4) ** 2 % 7 / 7
OTHER = np.arange(16.0).reshape(4, 4) ** 3 % 5 / 5
WINDOW = np.exp(-0.5 * np.arange(-1, 2) ** 2 / 1.5**2)
KERNEL = np.outer(WINDOW, WINDOW) / WINDOW.sum() ** 2


def _variance(x, w=None):
    w = np.ones(len(x), int) if w is None else w
    mean = (w * x).sum() / w.sum()
    return (w * (x - mean) ** 2).sum() / w.sum()


def _weighted(x, w):
    total = tf.reduce_sum(w)
    return tf.reduce_sum(w * x * x) / total - (tf.reduce_sum(w * x) / total) ** 2


def _of_policy(z, logits):
    p = tf.nn.softmax(logits)
    return tf.reduce_sum(p * z**2) - tf.reduce_sum(p * z) ** 2


def _exact_of_policy(z, logits):
    return _variance(z, m.exp(logits))


def _pooled(x):
    def pool(a):
        return tf.nn.avg_pool1d(a[None, :, None], 3, 1, "VALID")

    return pool(x * x) - pool(x) ** 2


def _by_cumsum(x):
    total = tf.cumsum(tf.concat([[0.0], x], 0))
    squares = tf.cumsum(tf.concat([[0.0], x * x], 0))
    mean = (total[3:] - total[:-3]) / 3
    return (squares[3:] - squares[:-3]) / 3 - mean**2


def _windows(x):
    return _variance(x[:3]) + _variance(x[1:])


def _similarity(x, y):
    kernel = KERNEL.astype(np.float32)[:, :, None, None]

    def local(a):
        return tf.nn.conv2d(a[None, :, :, None], kernel, 1, "VALID")

    mx, my = local(x), local(y)
    sx, sy = local(x * x) - mx * mx, local(y * y) - my * my
    sxy = local(x * y) - mx * my
    above = (2 * mx * my + 1e-4) * (2 * sxy + 9e-4)
    return above / ((mx**2 + my**2 + 1e-4) * (sx + sy + 9e-4))


def _exact_similarity(x, y):
    k = KERNEL * m.mpf(1)
    k, c, d = k / k.sum(), m.mpf(1e-4), m.mpf(9e-4)
    total = 0
    for i in range(2):
        for j in range(2):
            a, b = x[i : i + 3, j : j + 3], y[i : i + 3, j : j + 3]
            mx, my = (k * a).sum(), (k * b).sum()
            sxy = (k * (a - mx) * (b - my)).sum()
            s = (k * (a - mx) ** 2).sum() + (k * (b - my) ** 2).sum()
            total += (2 * mx * my + c) * (2 * sxy + d) / ((mx**2 + my**2 + c) * (s + d))
    return total


def _local_correlation(x, y):
    window = np.ones([3, 3, 1, 1], np.float32)

    def local(a):
        return tf.nn.conv2d(a[None, :, :, None], window, 1, "VALID")

    sx, sy, sxx, syy, sxy = map(local, (x, y, x * x, y * y, x * y))
    ux, uy = sx / 9, sy / 9
    cross = sxy - uy * sx - ux * sy + ux * uy * 9
    vx, vy = sxx - 2 * ux * sx + ux * ux * 9, syy - 2 * uy * sy + uy * uy * 9
    return cross / tf.sqrt(vx * vy + 1e-5)


def _exact_local_correlation(x, y):
    total = 0
    for i in range(2):
        for j in range(2):
            a, b = x[i : i + 3, j : j + 3], y[i : i + 3, j : j + 3]
            a, b = a - a.sum() / 9, b - b.sum() / 9
            total += (a * b).sum() / m.sqrt((a * a).sum() * (b * b).sum() + 1e-5)
    return total


def _by_matmul(x):
    mean = tf.reduce_mean(x, 0, keepdims=True)
    return tf.matmul(x, x, transpose_a=True) / 3 - tf.matmul(
        mean, mean, transpose_a=True
    )


def _by_einsum(x):
    mean = tf.reduce_mean(x, 0)
    n = tf.cast(tf.shape(x)[0], tf.float32)
    return tf.einsum("ni,nj->ij", x, x) / n - tf.einsum("i,j->ij", mean, mean)


def _exact_covariance(x):
    centred = x - x.sum(0) / 3
    return (centred.T @ centred).sum() / 3


def _of_segments(x):
    ids = tf.constant([0, 0, 2, 2])
    mean = tf.math.unsorted_segment_mean(x, ids, 4)
    return tf.math.unsorted_segment_mean(x * x, ids, 4) - mean * mean


def _of_counted_segments(x):
    ids = tf.constant([0, 0, 2, 2])
    n, s, q = (
        tf.math.unsorted_segment_sum(a, ids, 4) for a in (tf.ones_like(x), x, x * x)
    )
    return q / n - (s / n) ** 2


def _attentive(x, logits):
    a = tf.nn.softmax(logits)
    return tf.matmul(a, x**2) - tf.matmul(a, x) ** 2


def _exact_attentive(x, logits):
    return sum(_variance(x[:, i], m.exp(logits[0])) for i in range(2))


def _agreement(a, b):
    x, y = tf.reduce_mean(a), tf.reduce_mean(b)
    spread = tf.reduce_mean(a * a) - x**2 + tf.reduce_mean(b * b) - y**2
    return 2 * (tf.reduce_mean(a * b) - x * y) / (spread + (x - y) ** 2)


def _exact_agreement(a, b):
    x, y = a.mean(), b.mean()
    spread = ((a - x) ** 2).mean() + ((b - y) ** 2).mean()
    return 2 * ((a - x) * (b - y)).mean() / (spread + (x - y) ** 2)


FORMULAS = [
    Formula(
        "concordance, its moments in one sum",
        _agreement,
        _exact_agreement,
        [[1000.0, 1001.0, 1002.5], [1000.5, 1001.0, 1003.0]],
        [[1.0, 2.0, 3.5], [1.5, 1.0, 3.0]],
    ),
    Formula(
        "weighted variance by raw moments",
        _weighted,
        _variance,
        [FAR, [1.0, 2.0, 1.0, 0.5]],
        [NEAR, [1.0, 2.0, 1.0, 0.5]],
    ),
    Formula(
        "variance of returns under a policy",
        _of_policy,
        _exact_of_policy,
        [FAR, [1.0, 2.0, 0.5, 0.1]],
        [NEAR, [1.0, 2.0, 0.5, 0.1]],
        # In the logits it is a small difference of large terms.
        slopes="finite",
    ),
    Formula("local variance by average pooling", _pooled, _windows, [FAR], [NEAR]),
    Formula("rolling variance by cumsum", _by_cumsum, _windows, [FAR], [NEAR]),
    Formula(
        "structural similarity of bright images",
        _similarity,
        _exact_similarity,
        [IMAGE + 200, OTHER + 200],
        [IMAGE, OTHER],
    ),
    Formula(
        "local correlation of a constant and another bright image",
        _local_correlation,
        _exact_local_correlation,
        [np.full([4, 4], 1e8), 1e8 * OTHER],
        [IMAGE, OTHER],
    ),
    Formula(
        "covariance matrix by matmul",
        _by_matmul,
        _exact_covariance,
        [ROWS],
        [ORDINARY_ROWS],
    ),
    Formula(
        "covariance matrix by einsum",
        _by_einsum,
        _exact_covariance,
        [ROWS],
        [ORDINARY_ROWS],
    ),
    Formula(
        "variance over segments by raw moments",
        _of_segments,
        lambda x: _variance(x[:2]) + _variance(x[2:]),
        [FAR],
        [NEAR],
    ),
    Formula(
        "variance over segments by counts, two of them empty",
        _of_counted_segments,
        lambda x: _variance(x[:2]) + _variance(x[2:]),
        [FAR],
        [NEAR],
    ),
    Formula(
        "attentive statistics pooling",
        _attentive,
        _exact_attentive,
        [ROWS, [[1.0, 0.5, 2.0]]],
        [ORDINARY_ROWS, [[1.0, 0.5, 2.0]]],
    ),
]
