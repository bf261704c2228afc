"""Quotients of sums over data that are all 0, empty or constant."""

import numpy as np
import tensorflow as tf

from tests.collection.formula import Formula, m

ZEROS = [0.0, 0.0, 0.0]
X = [1.0, 2.0, 5.0]
Y = [0.5, 3.0, 4.0]
GRAPH = [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
PATHS = [[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]]
LABELS = np.array([0, 0, 2])
EACH = np.array([0, 1, 2])


def _formula(name, function, exact, bad, ordinary, **options):
    return Formula(name, function, exact, bad, ordinary, slopes="finite", **options)


def _over(x, y):
    """Returns the quotient, 0 for 0 / 0."""
    return np.where(np.equal(x, 0), 0, x / np.where(np.equal(y, 0), 1, y))


def _spread(x):
    return m.sqrt(((x - x.mean()) ** 2).mean())


def _matthews(y, p):
    tp, tn = tf.reduce_sum(y * p), tf.reduce_sum((1 - y) * (1 - p))
    fp, fn = tf.reduce_sum((1 - y) * p), tf.reduce_sum(y * (1 - p))
    below = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return (tp * tn - fp * fn) / tf.sqrt(below)


def _exact_matthews(y, p):
    tp, tn = (y * p).sum(), ((1 - y) * (1 - p)).sum()
    fp, fn = ((1 - y) * p).sum(), (y * (1 - p)).sum()
    below = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return _over(tp * tn - fp * fn, m.sqrt(below))


def _prototypes(x, labels):
    places = tf.one_hot(labels, 3, dtype=x.dtype)
    return tf.linalg.matvec(places, x, transpose_a=True) / tf.reduce_sum(places, 0)


def _scattered(x, labels):
    total = tf.tensor_scatter_nd_add(tf.zeros([3], x.dtype), labels[:, None], x)
    count = tf.math.bincount(tf.cast(labels, tf.int32), minlength=3)
    return total / tf.cast(count, x.dtype)


def _exact_means(x, labels):
    return sum(x[labels == place].mean() for place in set(labels.tolist()))


def _convolution(a, x):
    inverse = tf.linalg.diag(tf.pow(tf.reduce_sum(a, 1), -0.5))
    return tf.linalg.matvec(inverse @ a @ inverse, x)


def _exact_convolution(a, x):
    degrees = a.sum(1)
    inverse = np.array([1 / m.sqrt(d) if d else 0 for d in degrees], object)
    return (inverse[:, None] * a * inverse[None, :] * x[None, :]).sum()


FORMULAS = [
    _formula(
        "symmetric percentage error of zeros",
        lambda y, p: 2 * tf.abs(p - y) / (tf.abs(y) + tf.abs(p)),
        lambda y, p: (2 * _over(abs(p - y), abs(y) + abs(p))).sum(),
        [[0.0, 1.0, 2.0], [0.0, 3.0, 2.0]],
        [X, Y],
    ),
    _formula(
        "mean over deviation of zeros",
        lambda x: tf.reduce_mean(x) / tf.math.reduce_std(x) * 15.8745,
        lambda x: _over(x.mean(), _spread(x)) * m.mpf(float(np.float32(15.8745))),
        [ZEROS],
        [X],
    ),
    _formula(
        "Gini coefficient of zeros",
        lambda x: (
            tf.reduce_mean(tf.abs(x[:, None] - x[None, :])) / (2 * tf.reduce_mean(x))
        ),
        lambda x: _over(abs(x[:, None] - x[None, :]).mean(), 2 * x.mean()),
        [ZEROS],
        [X],
    ),
    _formula(
        "Matthews correlation of one class",
        _matthews,
        _exact_matthews,
        [ZEROS, ZEROS],
        [[1.0, 0.0, 1.0], [0.8, 0.3, 0.6]],
    ),
    _formula(
        "a constant row scaled by its range",
        lambda x: (x - tf.reduce_min(x)) / (tf.reduce_max(x) - tf.reduce_min(x)),
        lambda x: _over(x - x.min(), x.max() - x.min()).sum(),
        [[0.1, 0.1, 0.1]],
        [X],
    ),
    _formula(
        "relative error of zeros",
        lambda y, p: tf.norm(y - p) / tf.norm(y),
        lambda y, p: _over(m.sqrt(((y - p) ** 2).sum()), m.sqrt((y * y).sum())),
        [ZEROS, ZEROS],
        [X, Y],
    ),
    _formula(
        "class prototypes of a class without examples",
        _prototypes,
        _exact_means,
        [X, LABELS],
        [X, EACH],
    ),
    _formula(
        "scattered means with an empty place",
        _scattered,
        _exact_means,
        [X, LABELS],
        [X, EACH],
    ),
    _formula(
        "graph convolution by diagonal matrices, a node without edges",
        _convolution,
        _exact_convolution,
        [GRAPH, X],
        [PATHS, X],
    ),
    Formula(
        "additive mask of -1e9 times a float argument in half precision",
        lambda x, keep: tf.nn.softmax(x + (1.0 - tf.cast(keep, x.dtype)) * -1e9) ** 2,
        lambda x, keep: ((m.exp(x[keep > 0]) / m.exp(x[keep > 0]).sum()) ** 2).sum(),
        [[0.5, 1.0, 0.2], np.array([1, 1, 0])],
        [[0.5, 1.0, 0.2], np.array([1, 1, 0])],
        dtype="float16",
    ),
    Formula(
        "mean square in decibels in half precision",
        lambda x: 10 * tf.math.log(tf.reduce_mean(x * x)),
        lambda x: 10 * m.log((x * x).mean()),
        [[3e-4, 2e-4]],
        [[0.3, 0.2]],
        dtype="float16",
    ),
]
