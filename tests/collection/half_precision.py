"""float16 formulas whose result is representable, and whose parts are not."""

import keras
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


def _rms_norm_of_a_new_axis(x):
    scale = tf.math.rsqrt(tf.reduce_mean(x * x, -1) + tf.cast(1e-6, x.dtype))
    return x * scale[:, None] * tf.cast(W, x.dtype)


def _unit_rows_by_tile(x):
    norm = tf.sqrt(tf.tile(tf.reduce_sum(x * x, -1, keepdims=True), [1, 4]))
    return x / norm * tf.cast(W, x.dtype)


def _unit_columns(x):
    norm = tf.sqrt(tf.transpose(tf.reduce_sum(tf.transpose(x) ** 2, 0, keepdims=True)))
    return x / norm * tf.cast(W, x.dtype)


def _exact_unit_rows(x):
    return sum((r * W).sum() / m.sqrt((r * r).sum()) for r in x)


def _factored_update(g):
    rows = tf.reduce_mean(g * g, 1)
    columns = tf.reduce_mean(g * g, 0)
    variance = rows[:, None] * columns[None] / tf.reduce_mean(rows)
    return g / tf.sqrt(variance) * tf.cast(W, g.dtype)


def _exact_factored_update(g):
    rows, columns = (g * g).mean(1), (g * g).mean(0)
    total = 0
    for i, j in np.ndindex(*g.shape):
        variance = rows[i] * columns[j] / rows.mean()
        total += g[i, j] / m.sqrt(variance) * W[j]
    return total


SEGMENTS = np.array([0, 0, 1, 1])


def _unit_segments(x):
    squares = tf.math.unsorted_segment_sum(x * x, SEGMENTS, 2)
    return x / tf.gather(tf.sqrt(squares), SEGMENTS) * tf.cast(W, x.dtype)


def _exact_unit_segments(x):
    norms = [m.sqrt((x[i : i + 2] ** 2).sum()) for i in (0, 2)]
    return sum(x[i] * W[i] / norms[i // 2] for i in range(4))


def _negative_log_likelihood(x, v):
    return 0.5 * (v + x * x * tf.exp(-v))


def _exact_likelihood(x, v):
    return ((v + x * x * m.exp(-v)) / 2).sum()


def _keras_rms_norm(x):
    mean = keras.ops.mean(x**2, axis=-1, keepdims=True)
    return x / keras.ops.sqrt(mean) * tf.cast(W, x.dtype)


def _gated_rms_norm(x):
    gated = x * tf.sigmoid(x) * x
    root = tf.sqrt(tf.reduce_mean(gated**2, -1, keepdims=True))
    return gated / root * tf.cast(W, x.dtype)


def _exact_gated_rms_norm(x):
    gated = x * x / (1 + m.exp(-x))
    return (gated / m.sqrt((gated * gated).mean(-1, keepdims=True)) * W).sum()


def _edge_softmax(x):
    e = tf.exp(x)
    total = tf.math.unsorted_segment_sum(e, SEGMENTS, 3)
    above = tf.math.unsorted_segment_sum(e * tf.cast(W, x.dtype), SEGMENTS, 3)
    return tf.math.divide_no_nan(above, total)


def _exact_edge_softmax(x):
    e = m.exp(x)
    return sum((e[i : i + 2] * W[i : i + 2]).sum() / e[i : i + 2].sum() for i in (0, 2))


STEPS = np.array([[0.5, -1.0], [2.0, 0.25], [-1.5, 1.0], [3.0, -0.5]])
TRANSITION = np.array([[0.875, 0.125], [0.25, 0.75]])


def _forward(x):
    step = tf.cast(TRANSITION, x.dtype)

    def body(i, state):
        return i + 1, tf.linalg.matvec(step, state, transpose_a=True) * tf.exp(x[i])

    start = (1, tf.exp(x[0]))
    state = tf.while_loop(lambda i, _: i < 4, body, start, maximum_iterations=4)[1]
    return tf.math.log(tf.reduce_sum(state))


def _exact_forward(x):
    state = m.exp(x[0])
    for row in x[1:]:
        state = (state[:, None] * TRANSITION).sum(0) * m.exp(row)
    return m.log(state.sum())


def _scanned_attention(x):
    def step(state, pair):
        above, below = state
        weight = tf.exp(pair[0])
        return above * 0.5 + weight * pair[1], below * 0.5 + weight

    values = tf.cast(STEPS, x.dtype)
    nothing = tf.zeros([2], x.dtype)
    above, below = tf.scan(step, (x, values), (nothing, nothing))
    return above / below * tf.cast(W[:2], x.dtype)


def _exact_scanned_attention(x):
    above = below = total = 0
    for row, values in zip(m.exp(x), STEPS, strict=True):
        above, below = above / 2 + row * values, below / 2 + row
        total += (above / below * W[:2]).sum()
    return total


FORMULAS = [
    *(
        Formula(name, function, exact, bad, [STEPS / 2], dtype="float16")
        for name, function, exact, bad in (
            (
                "forward algorithm by a loop in half precision",
                _forward,
                _exact_forward,
                [STEPS - 8],
            ),
            (
                "attention scanned in half precision",
                _scanned_attention,
                _exact_scanned_attention,
                [STEPS * 5],
            ),
        )
    ),
    *(
        Formula(name, function, exact, [bad], [ordinary], dtype="float16")
        for name, function, exact, bad, ordinary in (
            (
                "RMS norm whose root has a new axis",
                _rms_norm_of_a_new_axis,
                _exact_rms_norm,
                BIG,
                SMALL,
            ),
            (
                "negative log-likelihood by a logarithm of the variance",
                lambda x: _negative_log_likelihood(x, 8 + x / 400),
                lambda x: _exact_likelihood(x, 8 + x / 400),
                BIG,
                SMALL,
            ),
            ("RMS norm by keras.ops", _keras_rms_norm, _exact_rms_norm, BIG, SMALL),
            (
                "RMS norm of a gate",
                _gated_rms_norm,
                _exact_gated_rms_norm,
                BIG,
                SMALL,
            ),
            (
                "real part of a phase",
                lambda x: (x * x - 1e4) / (x * x + 1e4),
                lambda x: ((x * x - 10**4) / (x * x + 10**4)).sum(),
                BIG,
                SMALL,
            ),
            (
                "softmax over segments, one of them empty",
                _edge_softmax,
                _exact_edge_softmax,
                [60.0, 61.0, 30.0, 28.0],
                SMALL[0],
            ),
            (
                "ratio of powers in decibels",
                lambda x: tf.math.log(
                    tf.reduce_sum(x**2) / tf.reduce_sum((x[::-1] * 0.125) ** 2)
                ),
                lambda x: m.log((x * x).sum() / ((x[::-1] / 8) ** 2).sum()),
                BIG[0],
                SMALL[0],
            ),
            ("unit rows by tile", _unit_rows_by_tile, _exact_unit_rows, BIG, SMALL),
            ("unit rows by transpose", _unit_columns, _exact_unit_rows, BIG, SMALL),
            (
                "update by factored second moments",
                _factored_update,
                _exact_factored_update,
                [*BIG, [40.0, 90.0, 300.0, 20.0]],
                [*SMALL, [0.5, 1.5, 3.0, 2.0]],
            ),
            (
                "unit segments",
                _unit_segments,
                _exact_unit_segments,
                BIG[0],
                SMALL[0],
            ),
            (
                "mean over segments by a sum",
                lambda x: tf.math.unsorted_segment_sum(x, SEGMENTS, 2) / 2,
                lambda x: x.sum() / 2,
                [60000.0, 40000.0, 1.0, 2.0],
                SMALL[0],
            ),
        )
    ),
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
