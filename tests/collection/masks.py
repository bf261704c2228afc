"""Masks before, inside and after a function with a singular point."""

import numpy as np
import tensorflow as tf

from tests.collection.formula import Formula, m

KEEP = [[True, True, False], [True, True, True]]
NONE = [[True, True, False], [False, False, False]]
ALL = [[True, True, True], [True, True, True]]
X = [[0.5, 2.0, 0.0], [1.0, 3.0, 2.0]]
V = [[0.3, 0.2, 0.9], [0.4, -0.2, 0.6]]


def _float(keep, x):
    return tf.cast(keep, x.dtype)


def _additive(x, keep, v):
    return tf.nn.softmax(x + (1 - _float(keep, x)) * tf.cast(-1e9, x.dtype)) * v


def _additive_inf(x, keep, v):
    return tf.nn.softmax(x + (1 - _float(keep, x)) * -np.inf) * v


def _additive_log(x, keep, v):
    return tf.nn.softmax(x + tf.math.log(_float(keep, x))) * v


def _additive_inf_constant(x, v):
    closed = tf.constant(1 - np.array(KEEP, np.float32))
    return tf.nn.softmax(x + closed * -np.inf) * v


def _selected_softmax(x, keep, v):
    return tf.nn.softmax(tf.where(keep, x, -np.inf)) * v


def _softmax_by_product(x, keep, v):
    e = tf.exp(x) * _float(keep, x)
    return e / tf.reduce_sum(e, -1, keepdims=True) * v


def _exact_masked_softmax(x, keep, v):
    total = 0
    for row, k, w in zip(x, keep, v):
        e = [m.exp(a) if b else 0 for a, b in zip(row, k)]
        s = sum(e)
        total += sum(a * b / s for a, b in zip(e, w)) if s else 0
    return total


def _after(
    function, exact, bad, ordinary=((1.0, 2.0, 3.0),), keep=(1.0, 1.0, 0.0), **options
):
    mask = np.asarray(keep, np.float32)
    return (
        lambda x: tf.constant(mask) * function(x),
        lambda x: sum(exact(a) for a, k in zip(x, keep) if k),
        bad,
        ordinary,
        options,
    )


def _formula(name, parts):
    function, exact, bad, ordinary, options = parts
    return Formula(name, function, exact, bad, ordinary, **options)


def _mean(x, keep):
    keep = _float(keep, x)
    return tf.reduce_sum(x * keep, -1) / tf.reduce_sum(keep, -1)


def _exact_mean(x, keep):
    return sum(r[k].mean() for r, k in zip(x, keep) if any(k))


def _mapped(x):
    return tf.map_fn(lambda a: tf.where(a > 0, tf.math.log(a), 0.0), x)


def _while(x):
    return tf.while_loop(
        lambda i, total: i < 3,
        lambda i, total: (
            i + 1,
            total + tf.where(x[i] > 0, x[i] * tf.math.log(x[i]), 0.0),
        ),
        (0, tf.constant(0.0)),
        maximum_iterations=3,
    )[1]


def _contracted(x):
    length = tf.norm(x, axis=-1, keepdims=True)
    beyond = (2 - 1 / tf.norm(x, axis=-1, keepdims=True)) * x / length
    return tf.where(length <= 1, x, beyond) * [1.0, -0.5]


def _exact_contracted(x):
    total = 0
    for row in x:
        length = m.sqrt((row * row).sum())
        scale = (2 - 1 / length) / length if length > 1 else 1
        total += (row * scale * [1, m.mpf(-0.5)]).sum()
    return total


FORMULAS = [
    Formula(
        "additive mask of -1e9 in half precision",
        _additive,
        _exact_masked_softmax,
        [X, KEEP, V],
        [[[0.5, 2.0, 1.0], [1.0, 3.0, 2.0]], ALL, V],
        dtype="float16",
    ),
    Formula(
        "additive mask of -inf times a float mask",
        _additive_inf,
        _exact_masked_softmax,
        [X, KEEP, V],
        [X, KEEP, V],
    ),
    Formula(
        "additive mask of -inf times a mask that is known",
        _additive_inf_constant,
        lambda x, v: _exact_masked_softmax(x, KEEP, v),
        [X, V],
        [X, V],
    ),
    Formula(
        "additive mask by the logarithm of a mask, a row without any",
        _additive_log,
        _exact_masked_softmax,
        [X, NONE, V],
        [X, KEEP, V],
    ),
    Formula(
        "softmax of a row that is masked altogether with -inf",
        _selected_softmax,
        _exact_masked_softmax,
        [X, NONE, V],
        [X, KEEP, V],
    ),
    Formula(
        "exponentials times a mask over their sum",
        _softmax_by_product,
        _exact_masked_softmax,
        [X, NONE, V],
        [X, KEEP, V],
    ),
    _formula(
        "mask times a logarithm",
        _after(tf.math.log, lambda a: m.log(a), [[1.0, 2.0, 0.0]]),
    ),
    _formula(
        "mask times a reciprocal",
        _after(lambda x: 1 / x, lambda a: 1 / a, [[1.0, 2.0, 0.0]]),
    ),
    _formula(
        "mask times a root", _after(tf.sqrt, lambda a: m.sqrt(a), [[1.0, 2.0, 0.0]])
    ),
    _formula(
        "mask times an exponential",
        _after(tf.exp, lambda a: m.exp(a), [[1.0, 2.0, 200.0]]),
    ),
    _formula(
        "mask times a square",
        _after(lambda x: x**2, lambda a: a**2, [[1.0, 2.0, 1e30]]),
    ),
    _formula(
        "mask times a power",
        _after(lambda x: x**1.5, lambda a: a ** m.mpf(1.5), [[1.0, 2.0, -1.0]]),
    ),
    _formula(
        "mask times an inverse cosine",
        _after(
            tf.acos, lambda a: m.acos(a), [[0.1, 0.2, 2.0]], ordinary=[[0.1, 0.2, 0.3]]
        ),
    ),
    _formula(
        "mask times an inverse hyperbolic tangent",
        _after(
            tf.atanh,
            lambda a: m.atanh(a),
            [[0.1, 0.2, 1.0]],
            ordinary=[[0.1, 0.2, 0.3]],
        ),
    ),
    _formula(
        "mask times a gamma function",
        _after(
            tf.math.lgamma,
            lambda a: m.loggamma(a),
            [[1.5, 2.5, 0.0]],
            ordinary=[[1.5, 2.5, 3.5]],
        ),
    ),
    Formula(
        "mean of kept elements, a row without any",
        _mean,
        _exact_mean,
        [X, NONE],
        [X, KEEP],
    ),
    Formula(
        "division before the mask",
        lambda x, n: tf.where(n > 0, x / n, tf.zeros_like(x)),
        lambda x, n: sum(a / b for a, b in zip(x, n) if b > 0),
        [[1.0, 2.0, 0.0], [2.0, 0.0, 0.0]],
        [[1.0, 2.0, 0.0], [2.0, 1.0, 3.0]],
        slopes="finite",
    ),
    Formula(
        "selection inside map_fn",
        _mapped,
        lambda x: sum(m.log(a) for a in x if a > 0),
        [[1.0, 2.0, 0.0]],
        [[1.0, 2.0, 3.0]],
        slopes="finite",
    ),
    Formula(
        "selection inside a while loop",
        _while,
        lambda x: sum(a * m.log(a) for a in x if a > 0),
        [[1.0, 2.0, 0.0]],
        [[1.0, 2.0, 3.0]],
        slopes="finite",
    ),
    Formula(
        "boolean mask after a logarithm",
        lambda x: tf.reduce_sum(tf.boolean_mask(tf.math.log(x) * x, x > 0)),
        lambda x: sum(a * m.log(a) for a in x if a > 0),
        [[1.0, 2.0, 0.0]],
        [[1.0, 2.0, 3.0]],
        slopes="finite",
    ),
    Formula(
        "weighted log-likelihood with weight 0",
        lambda p: tf.constant([1.0, 1.0, 0.0]) * -tf.math.log(p),
        lambda p: -m.log(p[0]) - m.log(p[1]),
        [[0.5, 0.2, 0.0]],
        [[0.5, 0.2, 0.3]],
    ),
    Formula(
        "squared logarithm with weight 0",
        lambda p: tf.constant([1.0, 1.0, 0.0]) * tf.math.log(p) ** 2,
        lambda p: m.log(p[0]) ** 2 + m.log(p[1]) ** 2,
        [[0.5, 0.2, 0.0]],
        [[0.5, 0.2, 0.3]],
    ),
    Formula(
        "power sum of distances masked after the fact",
        lambda x: (1 - tf.eye(3)) / tf.sqrt((x[:, None] - x[None, :]) ** 2),
        lambda x: sum(
            1 / abs(x[i] - x[j]) for i in range(3) for j in range(3) if i != j
        ),
        [[1.0, 2.0, 4.0]],
        [[1.0, 2.0, 4.0]],
    ),
    Formula(
        "screened sum of distances masked before the division",
        lambda x: (
            tf.cast(abs(x[:, None] - x[None, :]) < 9, x.dtype)
            * (1 - tf.eye(3))
            * tf.exp(-abs(x[:, None] - x[None, :]))
            / abs(x[:, None] - x[None, :])
        ),
        lambda x: sum(
            m.exp(-abs(x[i] - x[j])) / abs(x[i] - x[j])
            for i in range(3)
            for j in range(3)
            if i != j
        ),
        [[1.0, 2.0, 4.0]],
        [[1.0, 2.0, 4.0]],
    ),
    Formula(
        "difference of powers of distances of a triangle of pairs",
        lambda x: (
            tf.linalg.band_part(tf.linalg.set_diag(tf.ones((3, 3)), tf.zeros(3)), 0, -1)
            * (
                (1 / abs(x[:, None] - x[None, :])) ** 4
                - abs(x[:, None] - x[None]) ** -2
            )
        ),
        lambda x: sum(
            abs(x[i] - x[j]) ** -4 - abs(x[i] - x[j]) ** -2
            for i in range(3)
            for j in range(i + 1, 3)
        ),
        [[1.0, 2.0, 4.0]],
        [[1.0, 2.0, 4.0]],
    ),
    Formula(
        "sine over a square where it is not 0",
        lambda x: tf.where(x > 0, tf.sin(x) / x**2, 0.0),
        lambda x: sum(m.sin(a) / a**2 for a in x if a > 0),
        [[0.0, 0.5]],
        [[0.4, 0.5]],
        slopes="finite",
    ),
    Formula(
        "scene outside the unit ball contracted to a ball of radius 2",
        _contracted,
        _exact_contracted,
        [[[0.0, 0.0], [4.0, -5.0], [0.1, 0.2]]],
        [[[0.5, 0.5], [4.0, -5.0], [0.1, 0.2]]],
    ),
]
