"""Losses that people write by hand."""

import tensorflow as tf

from tests.catalogue.rows import FINITE, formula
from tfsafe import ops


def _usual_gaussian(error, raw):
    variance = tf.nn.softplus(raw)
    return 0.5 * (tf.math.log(variance) + error * error / variance)


def _gaussian(error, raw):
    log_variance = ops.where_apply(
        raw > -15, lambda s: tf.math.log(tf.nn.softplus(s)), raw, lambda s: s
    )
    return 0.5 * (log_variance + ops.exp(2 * ops.log(tf.abs(error)) - log_variance))


def _usual_mixture(x):
    return -tf.math.log(0.5 * tf.exp(-0.5 * x**2) + 0.5 * tf.exp(-0.5 * (x - 40) ** 2))


def _mixture(x):
    exponents = tf.stack([-0.5 * x**2, -0.5 * (x - 40) ** 2])
    return -ops.logsumexp(exponents + tf.math.log(0.5))


def _triplet(norm):
    negative = tf.constant([3.0, 2.0])

    def loss(anchor, positive):
        gap = norm(anchor - positive) - norm(anchor - negative)
        return tf.nn.relu(gap + 3)

    return loss


def _giou(divide):
    def loss(box):
        area = (box[2] - box[0]) * (box[3] - box[1])
        return divide(area, area) - divide(area - area, area)

    return loss


ROWS = [
    formula("L46", "triplet loss by tf.norm, anchor and positive the same",
            "ops.norm", _triplet(tf.norm), _triplet(ops.norm),
            [[1, 2], [1, 2]], 1, [[1, 0], [0, 0]]),
    formula("L80", "Gaussian likelihood by hand, softplus(-120) for a variance",
            "ops.where_apply", _usual_gaussian, _gaussian, [0, -120], -60, [0, 0.5]),
    formula("L81", "mixture likelihood by hand, 20 deviations away",
            "ops.logsumexp", _usual_mixture, _mixture, [20], 200, [0], is_by_hand=True),
    formula("L82", "KL term of a VAE, exp(100) with weight 0", "ops.multiply_no_nan",
            lambda lv: 0.0 * -0.5 * (1 + lv - tf.exp(lv)),
            lambda lv: ops.multiply_no_nan(-0.5 * (1 + lv - ops.exp(lv)), 0.0),
            [100], 0, [0]),
    formula("L83", "a sample mu + exp(lv / 2) * eps, exp(100) with eps 0",
            "ops.exp", lambda lv: 1 + tf.exp(0.5 * lv) * 0,
            lambda lv: 1 + ops.multiply_no_nan(ops.exp(0.5 * lv), 0.0), [200], 1, [0],
            is_by_hand=True),
    formula("L84", "tf.nn.softmax(z / 0), a temperature annealed to 0", "ops.softmax",
            lambda z: tf.nn.softmax(z / 0), lambda z: ops.softmax(z, temperature=0.0),
            [[1, 2]], [0, 1], [[0, 0]], is_by_hand=True),
    formula("L85", "GIoU by hand of two boxes of size 0", "ops.divide",
            _giou(tf.divide), _giou(ops.divide), [[1, 1, 1, 1]], FINITE, [FINITE],
            is_by_hand=True),
    formula("L86", "log of a product of 200 probabilities of 0.5", "ops.log",
            lambda p: tf.math.log(tf.reduce_prod(p)),
            lambda p: tf.reduce_sum(ops.log(p)),
            [[0.5] * 200], -138.62943611, [[2.0] * 200], is_by_hand=True),
]  # fmt: skip
