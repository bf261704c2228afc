"""float16 formulas whose result is representable, and whose parts are not."""

import numpy as np
import tensorflow as tf

from tests.collection.formula import Formula, m

BIG = [[300.0, 400.0, 100.0, 200.0]]
SMALL = [[3.0, 4.0, 1.0, 2.0]]
TINY = [[3e-4, 4e-4, 1e-4, 2e-4]]
W = np.array([0.5, -1.0, 0.25, 2.0])


def _layer_norm(x):
    mean = tf.reduce_mean(x, -1, keepdims=True)
    variance = tf.reduce_mean((x - mean) ** 2, -1, keepdims=True)
    return (x - mean) / tf.sqrt(variance + tf.cast(1e-5, x.dtype)) * tf.cast(W, x.dtype)


def _exact_layer_norm(x):
    d = x - x.mean(-1, keepdims=True)
    return (
        d / m.sqrt((d * d).mean(-1, keepdims=True) + m.mpf(1.0013580322265625e-05)) * W
    ).sum()


def _rms_norm(x):
    return (
        x
        * tf.math.rsqrt(tf.reduce_mean(x * x, -1, keepdims=True))
        * tf.cast(W, x.dtype)
    )


def _exact_rms_norm(x):
    return (x / m.sqrt((x * x).mean(-1, keepdims=True)) * W).sum()


def _norm(x):
    return tf.sqrt(tf.reduce_sum(x * x))


def _adam(mean, square):
    step = mean / (tf.sqrt(square) + tf.cast(1e-8, mean.dtype))
    return step * tf.cast(1e-4 * W, mean.dtype)


def _lars(w, g):
    ratio = tf.norm(w) / (tf.norm(g) + tf.cast(1e-9, w.dtype))
    return ratio * g


FORMULAS = [
    Formula(
        "layer norm of large activations",
        _layer_norm,
        _exact_layer_norm,
        [BIG],
        [SMALL],
        dtype="float16",
    ),
    Formula(
        "RMS norm of large activations",
        _rms_norm,
        _exact_rms_norm,
        [BIG],
        [SMALL],
        dtype="float16",
    ),
    Formula(
        "RMS norm of small activations",
        _rms_norm,
        _exact_rms_norm,
        [TINY],
        [SMALL],
        dtype="float16",
    ),
    Formula(
        "unit vector of large numbers",
        lambda x: x / _norm(x) * tf.cast(W, x.dtype),
        lambda x: (x / m.sqrt((x * x).sum()) * W).sum(),
        [BIG],
        [SMALL],
        dtype="float16",
    ),
    Formula(
        "norm of large numbers",
        _norm,
        lambda x: m.sqrt((x * x).sum()),
        [BIG],
        [SMALL],
        dtype="float16",
    ),
    Formula(
        "cosine similarity of large vectors",
        lambda u, v: tf.reduce_sum(u * v) / (_norm(u) * _norm(v)),
        lambda u, v: (u * v).sum() / m.sqrt((u * u).sum() * (v * v).sum()),
        [[300.0, 400.0], [500.0, 100.0]],
        [[3.0, 4.0], [5.0, 1.0]],
        dtype="float16",
    ),
    Formula(
        "mean of many large numbers",
        lambda x: tf.reduce_sum(x) / tf.cast(tf.size(x), x.dtype),
        lambda x: x.sum() / x.size,
        [np.linspace(900.0, 1100.0, 96)],
        [np.linspace(0.9, 1.1, 96)],
        dtype="float16",
    ),
    Formula(
        "root mean square error of large errors",
        lambda x: tf.sqrt(tf.reduce_mean(tf.square(x))),
        lambda x: m.sqrt((x * x).mean()),
        [[300.0, 400.0]],
        [[3.0, 4.0]],
        dtype="float16",
    ),
    Formula(
        "Adam's quotient with an epsilon that is 0",
        _adam,
        lambda mean, square: (
            mean / (m.sqrt(square) + m.mpf(1e-8)) * np.float16(1e-4 * W).astype(float)
        ).sum(),
        [[[0.0, 4e-4, -1e-4, 2e-2]], [[0.0, 1.6e-7, 1.2e-7, 4e-4]]],
        [SMALL, SMALL],
        dtype="float16",
        slopes="finite",
    ),
    Formula(
        "logsumexp of a temperature",
        lambda x: tf.math.log(tf.reduce_sum(tf.exp(x / tf.cast(0.1, x.dtype)))),
        lambda x: m.log(m.exp(x / m.mpf(0.0999755859375)).sum()),
        [[1.5, 2.0, 0.5]],
        [[0.2, 0.1, 0.4]],
        dtype="float16",
    ),
    Formula(
        "softmax of logits beyond 11",
        lambda x: tf.exp(x) / tf.reduce_sum(tf.exp(x)) * tf.cast(W, x.dtype),
        lambda x: (m.exp(x) / m.exp(x).sum() * W).sum(),
        [[12.0, 11.0, 10.0, 1.0]],
        [[1.2, 1.1, 1.0, 0.1]],
        dtype="float16",
    ),
    Formula(
        "trust ratio of large weights",
        _lars,
        lambda w, g: (m.sqrt((w * w).sum()) / m.sqrt((g * g).sum()) * g).sum(),
        [[300.0, 400.0], [3.0, 4.0]],
        [[3.0, 4.0], [1.0, 2.0]],
        dtype="float16",
    ),
    Formula(
        "harmonic mean of small numbers",
        lambda x: tf.cast(tf.size(x), x.dtype) / tf.reduce_sum(1 / x),
        lambda x: x.size / (1 / x).sum(),
        [[1.2e-5, 2e-5, 3e-5]],
        [[1.2, 2.0, 3.0]],
        dtype="float16",
    ),
]
