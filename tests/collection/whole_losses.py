"""Whole losses with masks, counts and quotients of quotients."""

import numpy as np
import tensorflow as tf

from tests.collection.formula import Formula, m

BOX, OTHER = [[0.5, 0.7], [1.0, 2.0]], [[0.5, 0.7], [1.5, 1.0]]
KEPT = [[True, True, False], [True, True, True]]
FIXATED = [[True, True, False], [False, True, True]]


def _sides(boxes):
    return boxes[:, 0], boxes[:, 1]


def _aspect(a, b):
    (w, h), (v, g) = _sides(a), _sides(b)
    both = tf.minimum(w, v) * tf.minimum(h, g)
    overlap = both / (w * h + v * g - both)
    angle = 4 / np.pi**2 * tf.square(tf.atan(w / h) - tf.atan(v / g))
    weight = angle / (1 - overlap + angle)
    return tf.reduce_mean(1 - overlap + weight * angle)


def _exact_aspect(a, b):
    losses = []
    for (w, h), (v, g) in zip(a, b, strict=True):
        both = min(w, v) * min(h, g)
        overlap = both / (w * h + v * g - both)
        angle = m.mpf(4 / np.pi**2) * (m.atan(w / h) - m.atan(v / g)) ** 2
        rest = 1 - overlap + angle
        losses.append(1 - overlap + (angle**2 / rest if rest else 0))
    return sum(losses) / len(losses)


def _tweedie(claim, mean):
    power = 1.5
    return tf.reduce_sum(
        2
        * (
            tf.pow(claim, 2 - power) / ((1 - power) * (2 - power))
            - claim * tf.pow(mean, 1 - power) / (1 - power)
            + tf.pow(mean, 2 - power) / (2 - power)
        )
    )


def _exact_tweedie(claim, mean):
    return sum(
        4 * (m.sqrt(b) - (m.sqrt(a) if a else 0)) ** 2 / m.sqrt(b)
        for a, b in zip(claim, mean, strict=True)
    )


def _cured(time, risk, cured):
    survival = tf.exp(-tf.exp(risk) * time)
    return -tf.reduce_mean(cured + (1 - cured) * survival)


def _exact_cured(time, risk, cured):
    return -(cured + (1 - cured) * m.exp(-m.exp(risk) * time)).mean()


def _gompertz(time, ageing):
    hazard = 0.01 / ageing * (tf.exp(ageing * time) - 1)
    return tf.reduce_sum(tf.pow(1 + 0.5 * hazard, -2.0))


def _exact_gompertz(time, ageing):
    hazard = m.mpf(0.01) / ageing * (m.exp(ageing * time) - 1)
    return ((1 + hazard / 2) ** -2).sum()


def _normalised(x, kept):
    mask = tf.cast(kept, x.dtype)
    count = tf.reduce_sum(mask, -1, keepdims=True)
    mean = tf.reduce_sum(x * mask, -1, keepdims=True) / count
    squares = tf.square(x - mean) * mask
    deviation = tf.sqrt(tf.reduce_sum(squares, -1, keepdims=True) / count)
    return (x - mean) / deviation * mask * [1.0, 2.0, 4.0]


def _exact_normalised(x, kept):
    total = 0
    for row, mask in zip(x, kept, strict=True):
        d = row[mask] - row[mask].mean() if mask.any() else row[mask]
        if any(d):
            scores = d / m.sqrt((d * d).mean())
            total += (scores * np.array([1, 2, 4])[mask]).sum()
    return total


def _scanpath(saliency, fixated):
    saliency = saliency / tf.reduce_max(saliency, -1, keepdims=True)
    mean = tf.reduce_mean(saliency, -1, keepdims=True)
    score = (saliency - mean) / tf.math.reduce_std(saliency, -1, keepdims=True)
    fixated = tf.cast(fixated, saliency.dtype)
    return tf.reduce_sum(fixated * score, -1) / tf.reduce_sum(fixated, -1)


def _exact_scanpath(saliency, fixated):
    total = 0
    for row, mask in zip(saliency, fixated, strict=True):
        d = row - row.mean()
        if any(d) and mask.any():
            total += (d / m.sqrt((d * d).mean()))[mask].mean()
    return total


FORMULAS = [
    Formula(
        "aspect penalty of two equal boxes",
        _aspect,
        _exact_aspect,
        [BOX, OTHER],
        [OTHER[::-1], BOX],
        slopes="finite",
    ),
    Formula(
        "Tweedie deviance of no claim",
        _tweedie,
        _exact_tweedie,
        [[0.0, 1.0, 2.5], [0.7, 1.7, 1.2]],
        [[0.5, 1.0, 2.5], [0.7, 1.7, 1.2]],
        slopes="finite",
    ),
    Formula(
        "survival of those at a high risk, some cured",
        _cured,
        _exact_cured,
        [[1.3, 0.2], [95.0, 1.0], [0.3, 0.1]],
        [[1.3, 0.2], [0.5, 1.0], [0.3, 0.1]],
    ),
    Formula(
        "survival of a frail old age",
        _gompertz,
        _exact_gompertz,
        [[60.0, 3.0], [2.0, 0.5]],
        [[2.0, 3.0], [2.0, 0.5]],
    ),
    Formula(
        "normalised over what a mask keeps of a constant",
        _normalised,
        _exact_normalised,
        [[[2.0, 2.0, 5.0], [1.0, 2.0, 4.0]], KEPT],
        [[[2.0, 3.0, 5.0], [1.0, 2.0, 5.0]], KEPT],
        slopes="finite",
    ),
    Formula(
        "scanpath score of a map without saliency",
        _scanpath,
        _exact_scanpath,
        [[[0.0, 0.0, 0.0], [1.0, 2.0, 4.0]], FIXATED],
        [[[2.0, 3.0, 5.0], [1.0, 2.0, 5.0]], FIXATED],
        slopes="finite",
    ),
]
