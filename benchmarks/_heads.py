"""Defines handwritten losses, naive and stable, on top of a model's last layer."""

import math

import numpy as np
import tensorflow as tf

from benchmarks._sizes import CLASSES

MIXTURE = 5


def softmax_naive(outputs, y):
    p = tf.exp(outputs) / tf.reduce_sum(tf.exp(outputs), -1, keepdims=True)
    terms = tf.one_hot(y, CLASSES, dtype=outputs.dtype) * tf.math.log(p)
    return -tf.reduce_mean(tf.reduce_sum(terms, -1))


def softmax_stable(outputs, y):
    terms = tf.one_hot(y, CLASSES, dtype=outputs.dtype) * tf.nn.log_softmax(outputs)
    return -tf.reduce_mean(tf.reduce_sum(terms, -1))


def binary_naive(outputs, y):
    p, y = tf.sigmoid(outputs), tf.one_hot(y, CLASSES, dtype=outputs.dtype)
    return -tf.reduce_mean(y * tf.math.log(p) + (1 - y) * tf.math.log(1 - p))


def binary_stable(outputs, y):
    y = tf.one_hot(y, CLASSES, dtype=outputs.dtype)
    losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=outputs)
    return tf.reduce_mean(losses)


def focal_naive(outputs, y):
    p, y = tf.sigmoid(outputs), tf.one_hot(y, CLASSES, dtype=outputs.dtype)
    positive = y * tf.square(1 - p) * tf.math.log(p)
    negative = (1 - y) * tf.square(p) * tf.math.log(1 - p)
    return -tf.reduce_mean(positive + negative)


def focal_stable(outputs, y):
    y = tf.one_hot(y, CLASSES, dtype=outputs.dtype)
    wrong = tf.sigmoid((1 - 2 * y) * outputs)
    losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=outputs)
    return tf.reduce_mean(tf.square(wrong) * losses)


def mixture_naive(outputs, y):
    weights, means, log_sigmas = tf.split(outputs, 3, axis=-1)
    pi, sigma = tf.nn.softmax(weights), tf.exp(log_sigmas)
    error = tf.cast(y, outputs.dtype)[:, tf.newaxis] - means
    density = tf.exp(-0.5 * tf.square(error / sigma)) / (math.sqrt(2 * math.pi) * sigma)
    return -tf.reduce_mean(tf.math.log(tf.reduce_sum(pi * density, -1)))


def mixture_stable(outputs, y):
    weights, means, log_sigmas = tf.split(outputs, 3, axis=-1)
    error = tf.cast(y, outputs.dtype)[:, tf.newaxis] - means
    exponents = tf.nn.log_softmax(weights) - log_sigmas - 0.5 * math.log(2 * math.pi)
    exponents -= 0.5 * tf.square(error * tf.exp(-log_sigmas))
    return -tf.reduce_mean(tf.reduce_logsumexp(exponents, -1))


def _views(outputs):
    # Two views of each sample, as two augmentations give them.
    noise = np.random.default_rng(1).normal(size=(1, 2, outputs.shape[-1]))
    views = outputs[:, tf.newaxis] + tf.constant(0.1 * noise, outputs.dtype)
    return views[:, 0], views[:, 1]


def contrastive_naive(outputs, _):
    one, other = (
        view / tf.sqrt(tf.reduce_sum(view * view, -1, keepdims=True))
        for view in _views(outputs)
    )
    similar = tf.exp(tf.matmul(one, other, transpose_b=True) / 0.1)
    chosen = tf.linalg.diag_part(similar)
    return -tf.reduce_mean(tf.math.log(chosen / tf.reduce_sum(similar, -1)))


def contrastive_stable(outputs, _):
    one, other = (tf.math.l2_normalize(view, -1) for view in _views(outputs))
    similar = tf.matmul(one, other, transpose_b=True) / 0.1
    return -tf.reduce_mean(tf.linalg.diag_part(tf.nn.log_softmax(similar)))


def normalized_naive(outputs, y):
    mean = tf.reduce_mean(outputs, -1, keepdims=True)
    variance = tf.reduce_mean(tf.square(outputs), -1, keepdims=True) - tf.square(mean)
    return softmax_naive((outputs - mean) / tf.sqrt(variance), y)


def normalized_stable(outputs, y):
    mean = tf.reduce_mean(outputs, -1, keepdims=True)
    centered = outputs - mean
    variance = tf.reduce_mean(tf.square(centered), -1, keepdims=True)
    return softmax_stable(centered * tf.math.rsqrt(variance), y)


# The naive form, the stable one, and how many numbers the last layer gives them.
HEADS = {
    "softmax": (softmax_naive, softmax_stable, CLASSES),
    "binary": (binary_naive, binary_stable, CLASSES),
    "focal": (focal_naive, focal_stable, CLASSES),
    "mixture": (mixture_naive, mixture_stable, 3 * MIXTURE),
    "contrastive": (contrastive_naive, contrastive_stable, 64),
    "layer norm": (normalized_naive, normalized_stable, CLASSES),
}
