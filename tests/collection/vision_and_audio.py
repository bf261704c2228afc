"""Overlaps of empty masks, equal images, silence and colour curves."""

import numpy as np
import tensorflow as tf

from tests.collection.formula import Formula, m

EMPTY = [0.0, 0.0, 0.0]
MASK = [1.0, 0.0, 1.0]
SOFT = [0.8, 0.1, 0.6]


def _dice(y, p):
    return 2 * tf.reduce_sum(y * p) / (tf.reduce_sum(y) + tf.reduce_sum(p))


def _exact_dice(y, p):
    total = y.sum() + p.sum()
    return 2 * (y * p).sum() / total if total else m.mpf(0)


def _iou(y, p):
    shared = tf.reduce_sum(y * p)
    return shared / (tf.reduce_sum(y) + tf.reduce_sum(p) - shared)


def _exact_iou(y, p):
    shared = (y * p).sum()
    total = y.sum() + p.sum() - shared
    return shared / total if total else m.mpf(0)


def _tversky(y, p):
    hit = tf.reduce_sum(y * p)
    return hit / (
        hit + 0.3 * tf.reduce_sum((1 - y) * p) + 0.7 * tf.reduce_sum(y * (1 - p))
    )


def _exact_tversky(y, p):
    hit = (y * p).sum()
    a, b = m.mpf(float(np.float32(0.3))), m.mpf(float(np.float32(0.7)))
    total = hit + a * ((1 - y) * p).sum() + b * (y * (1 - p)).sum()
    return hit / total if total else m.mpf(0)


def _si_sdr(s, e):
    scale = tf.reduce_sum(s * e) / tf.reduce_sum(s * s)
    target = scale * s
    noise = e - target
    return (
        10
        * tf.math.log(tf.reduce_sum(target**2) / tf.reduce_sum(noise**2))
        / np.float32(np.log(10))
    )


def _exact_si_sdr(s, e):
    scale = (s * e).sum() / (s * s).sum()
    t = scale * s
    return (
        10
        * m.log((t * t).sum() / ((e - t) ** 2).sum())
        / m.mpf(float(np.float32(np.log(10))))
    )


def _gem(x):
    return tf.reduce_mean(x**3.0) ** (1.0 / 3.0)


def _srgb(x):
    return tf.where(x <= 0.0031308, 12.92 * x, 1.055 * x ** (1 / 2.4) - 0.055)


def _float32(number):
    return m.mpf(float(np.float32(number)))


def _exact_srgb(x):
    return sum(
        _float32(12.92) * a
        if a <= _float32(0.0031308)
        else _float32(1.055) * a ** _float32(1 / 2.4) - _float32(0.055)
        for a in x
    )


def _coulomb(x):
    d = x[:, None, :] - x[None, :, :]
    r = tf.sqrt(tf.reduce_sum(d * d, -1))
    return tf.reduce_sum(tf.linalg.set_diag(1 / r, tf.zeros([3])))


def _exact_coulomb(x):
    return sum(
        1 / m.sqrt(((x[i] - x[j]) ** 2).sum())
        for i in range(3)
        for j in range(3)
        if i != j
    )


PLACES = [[0.0, 0.0], [1.0, 0.5], [2.0, -1.0]]
FORMULAS = [
    Formula(
        "Dice of two empty masks",
        _dice,
        _exact_dice,
        [EMPTY, EMPTY],
        [MASK, SOFT],
        slopes="finite",
    ),
    Formula(
        "IoU of two empty masks",
        _iou,
        _exact_iou,
        [EMPTY, EMPTY],
        [MASK, SOFT],
        slopes="finite",
    ),
    Formula(
        "Tversky of two empty masks",
        _tversky,
        _exact_tversky,
        [EMPTY, EMPTY],
        [MASK, SOFT],
        slopes="finite",
    ),
    Formula(
        "log of a mel spectrum of silence, weighted 0",
        lambda x, w: w * tf.math.log(x),
        lambda x, w: sum(a * m.log(b) for a, b in zip(w, x) if b),
        [[0.0, 0.5], [0.0, 1.0]],
        [[0.2, 0.5], [0.0, 1.0]],
        slopes="finite",
    ),
    Formula(
        "amplitude of a silent frame",
        lambda re, im: tf.sqrt(re * re + im * im),
        lambda re, im: sum(
            m.sqrt(a * a + b * b) if a or b else m.mpf(0) for a, b in zip(re, im)
        ),
        [[0.0, 0.3], [0.0, 0.4]],
        [[0.1, 0.3], [0.2, 0.4]],
        slopes="finite",
    ),
    Formula(
        "phase of a silent frame",
        lambda re, im: tf.atan2(im, re),
        lambda re, im: sum(
            m.atan2(b, a) if a or b else m.mpf(0) for a, b in zip(re, im)
        ),
        [[0.0, 0.3], [0.0, 0.4]],
        [[0.1, 0.3], [0.2, 0.4]],
        slopes="finite",
    ),
    Formula(
        "scale-invariant SDR",
        _si_sdr,
        _exact_si_sdr,
        [[1e-22, 2e-22, -1e-22], [1.1e-22, 1.8e-22, -1.2e-22]],
        [[1.0, 2.0, -1.0], [1.1, 1.8, -1.2]],
    ),
    Formula(
        "generalised mean pooling of zeros",
        _gem,
        lambda x: m.cbrt((x**3).mean()) if any(x) else m.mpf(0),
        [[0.0, 0.0, 0.0]],
        [[0.1, 0.5, 0.3]],
        slopes="finite",
    ),
    Formula(
        "gamma curve at black",
        lambda x: x ** (1 / 2.2),
        lambda x: sum(
            a ** m.mpf(float(np.float32(1 / 2.2))) if a else m.mpf(0) for a in x
        ),
        [[0.0, 0.5]],
        [[0.1, 0.5]],
        slopes="finite",
    ),
    Formula("sRGB at black", _srgb, _exact_srgb, [[0.0, 0.5]], [[0.1, 0.5]]),
    Formula(
        "Coulomb sum with the diagonal set afterwards",
        _coulomb,
        _exact_coulomb,
        [PLACES],
        [PLACES],
    ),
    Formula(
        "Coulomb sum with a masked diagonal",
        lambda x: tf.where(
            tf.eye(3, dtype=tf.bool),
            0.0,
            1 / tf.norm(x[:, None, :] - x[None, :, :], axis=-1),
        ),
        _exact_coulomb,
        [PLACES],
        [PLACES],
    ),
    Formula(
        "relative error of a zero target, weighted 0",
        lambda y, p: tf.where(tf.equal(y, 0), 0.0, tf.abs(y - p) / tf.abs(y)),
        lambda y, p: sum(abs(a - b) / abs(a) for a, b in zip(y, p) if a),
        [[0.0, 2.0], [0.1, 1.5]],
        [[0.5, 2.0], [0.1, 1.5]],
        slopes="finite",
    ),
    Formula(
        "contrastive loss of an identical pair",
        lambda a, b: (
            tf.maximum(0.0, 1.0 - tf.sqrt(tf.reduce_sum((a - b) ** 2, -1))) ** 2
        ),
        lambda a, b: sum(
            max(m.mpf(0), 1 - (m.sqrt(((u - v) ** 2).sum()) if any(u != v) else 0)) ** 2
            for u, v in zip(a, b)
        ),
        [[[1.0, 2.0]], [[1.0, 2.0]]],
        [[[1.0, 2.0]], [[1.3, 2.4]]],
        slopes="finite",
    ),
]
