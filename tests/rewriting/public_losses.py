"""Losses of widely used public projects, in our own words, each with its exact form.

Every one is taken at an input that training meets sooner or later: a network that is
sure, a pair of equal points, an empty mask.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Public:
    """A loss, an input at which it fails, and what it should be there.

    Attributes:
      project: Where people copy it from.
      naive: The loss of float32 tensors.
      exact: The same of float64 tensors, by the stable form.
      args: The tensors, all differentiated.
    """

    project: str
    naive: Callable[..., tf.Tensor]
    exact: Callable[..., tf.Tensor]
    args: Sequence[Any]


# --- keras-retinanet: the focal loss of detectors, on sigmoid outputs -------------
ANCHORS = np.array([[1, 0], [0, 0], [0, 1]], np.float32)


def retinanet(z):
    p = tf.sigmoid(z)
    labels = tf.constant(ANCHORS)
    alpha = tf.where(tf.equal(labels, 1), 0.25, 0.75)
    weight = tf.where(tf.equal(labels, 1), 1 - p, p)
    weight = alpha * weight**2.0
    entropy = -(labels * tf.math.log(p) + (1 - labels) * tf.math.log(1 - p))
    return tf.reduce_sum(weight * entropy)


def retinanet_exact(z):
    signed = tf.where(ANCHORS == 1, z, -z)
    alpha = tf.where(ANCHORS == 1, tf.constant(0.25, tf.float64), 0.75)
    weight = alpha * tf.exp(2 * tf.math.log_sigmoid(-signed))
    return -tf.reduce_sum(weight * tf.math.log_sigmoid(signed))


# --- segmentation_models: the focal loss of classes, clipped ----------------------
PIXELS = np.eye(3, dtype=np.float32)[[0, 2]]


def segmentation(z):
    p = tf.nn.softmax(z)
    p = tf.clip_by_value(p, 1e-7, 1.0 - 1e-7)
    loss = -tf.constant(PIXELS) * (0.25 * tf.pow(1 - p, 2.0) * tf.math.log(p))
    return tf.reduce_mean(loss)


def segmentation_exact(z):
    log_p = tf.nn.log_softmax(z)
    others = tf.where(tf.eye(3, dtype=tf.bool), -np.inf, z[:, None, :])
    log_q = tf.reduce_logsumexp(others, -1) - tf.reduce_logsumexp(z, -1, keepdims=True)
    return tf.reduce_mean(-PIXELS * 0.25 * tf.exp(2 * log_q) * log_p)


# --- the first GAN: discriminator and generator by log of a sigmoid ---------------
def gan(real, fake):
    on_real, on_fake = tf.sigmoid(real), tf.sigmoid(fake)
    discriminator = -tf.reduce_mean(tf.math.log(on_real) + tf.math.log(1.0 - on_fake))
    return discriminator - tf.reduce_mean(tf.math.log(on_fake))


def gan_exact(real, fake):
    discriminator = -tf.reduce_mean(
        tf.math.log_sigmoid(real) + tf.math.log_sigmoid(-fake)
    )
    return discriminator - tf.reduce_mean(tf.math.log_sigmoid(fake))


# --- triplet loss with the pairwise distances of a batch --------------------------
def triplet(x):
    dot = tf.matmul(x, x, transpose_b=True)
    square = tf.linalg.diag_part(dot)
    distances = square[None, :] - 2.0 * dot + square[:, None]
    distances = tf.sqrt(tf.maximum(distances, 0.0))
    return tf.reduce_sum(distances)


def triplet_exact(x):
    squares = tf.reduce_sum((x[:, None] - x[None]) ** 2, -1)
    apart = squares > 0
    return tf.reduce_sum(tf.where(apart, tf.sqrt(tf.where(apart, squares, 1)), 0))


# --- mixture density networks: the likelihood of a Gaussian mixture ---------------
def mixture(logits, mean, log_sigma):
    weight = tf.nn.softmax(logits)
    sigma = tf.exp(log_sigma)
    y = tf.constant([[40.0], [-1.0]])
    normal = tf.exp(-((y - mean) ** 2) / (2 * sigma**2)) / (sigma * 2.5066282746)
    return -tf.reduce_mean(tf.math.log(tf.reduce_sum(weight * normal, 1)))


def mixture_exact(logits, mean, log_sigma):
    y = tf.constant([[40.0], [-1.0]], tf.float64)
    each = -0.5 * ((y - mean) * tf.exp(-log_sigma)) ** 2 - log_sigma
    each += tf.nn.log_softmax(logits) - np.log(2.5066282746)
    return -tf.reduce_mean(tf.reduce_logsumexp(each, 1))


# --- contrastive predictive coding: InfoNCE with a temperature --------------------
def info_nce(scores):
    scaled = tf.exp(scores / 0.01)
    positive = tf.linalg.diag_part(scaled)
    return tf.reduce_mean(-tf.math.log(positive / tf.reduce_sum(scaled, axis=1)))


def info_nce_exact(scores):
    return -tf.reduce_mean(tf.linalg.diag_part(tf.nn.log_softmax(scores / 0.01)))


# --- actor and critic: policy gradient and entropy bonus --------------------------
def actor_critic(z):
    p = tf.nn.softmax(z)
    taken = tf.reduce_sum(p * tf.one_hot([1, 0], 3), 1)
    advantage = tf.constant([2.0, -1.0])
    policy = -tf.reduce_mean(tf.math.log(taken) * advantage)
    entropy = -tf.reduce_mean(tf.reduce_sum(p * tf.math.log(p), 1))
    return policy - 0.01 * entropy


def actor_critic_exact(z):
    log_p = tf.nn.log_softmax(z)
    taken = tf.gather(log_p, [1, 0], batch_dims=1)
    policy = -tf.reduce_mean(taken * tf.constant([2.0, -1.0], tf.float64))
    entropy = -tf.reduce_mean(tf.reduce_sum(tf.exp(log_p) * log_p, 1))
    return policy - 0.01 * entropy


# --- proximal policy optimisation: the ratio of two densities ---------------------
def clipped_ratio(new, old):
    ratio = tf.exp(new) / tf.exp(old)
    return -tf.reduce_mean(tf.minimum(ratio, tf.clip_by_value(ratio, 0.8, 1.2)))


def clipped_ratio_exact(new, old):
    ratio = tf.exp(new - old)
    return -tf.reduce_mean(tf.minimum(ratio, tf.clip_by_value(ratio, 0.8, 1.2)))


# --- the translation tutorial: a masked mean over tokens --------------------------
TOKENS = np.array([[1, 2], [0, 0]])


def translation(z):
    mask = tf.cast(tf.not_equal(tf.constant(TOKENS), 0), z.dtype)
    p = tf.nn.softmax(z)
    each = -tf.math.log(tf.gather(p, tf.constant(TOKENS), batch_dims=2)) * mask
    by_sentence = tf.reduce_sum(each, 1) / tf.reduce_sum(mask, 1)
    return tf.reduce_sum(by_sentence)


def translation_exact(z):
    each = -tf.gather(tf.nn.log_softmax(z), TOKENS, batch_dims=2)
    return tf.reduce_mean(each[0])


# --- survival analysis: the partial likelihood of Cox -----------------------------
def cox(risk):
    total = tf.math.log(tf.cumsum(tf.exp(risk)))
    return -tf.reduce_mean(risk - total)


def cox_exact(risk):
    total = tf.math.cumulative_logsumexp(risk)
    return -tf.reduce_mean(risk - total)


# --- WGAN-GP: the norm of a gradient that is 0 where the critic is saturated ------
def gradient_penalty(slopes):
    norm = tf.sqrt(tf.reduce_sum(tf.square(slopes), axis=1))
    return tf.reduce_mean((norm - 1.0) ** 2)


def gradient_penalty_exact(slopes):
    squares = tf.reduce_sum(slopes**2, 1)
    some = squares > 0
    norm = tf.where(some, tf.sqrt(tf.where(some, squares, 1)), 0)
    return tf.reduce_mean((norm - 1) ** 2)


# --- the Keras examples: a cross-entropy with Keras' own functions ----------------
def keras_tutorial(z):
    y = tf.constant([[1.0, 0.0], [0.0, 1.0]])
    p = keras.activations.sigmoid(z)
    p = keras.ops.clip(p, 1e-7, 1 - 1e-7)
    each = y * keras.ops.log(p) + (1 - y) * keras.ops.log(1 - p)
    return -keras.ops.mean(keras.ops.sum(each, axis=-1))


def keras_tutorial_exact(z):
    y = tf.constant([[1.0, 0.0], [0.0, 1.0]], tf.float64)
    each = tf.nn.sigmoid_cross_entropy_with_logits(y, z)
    return tf.reduce_mean(tf.reduce_sum(each, -1))


LOSSES = [
    Public(
        "keras-retinanet",
        retinanet,
        retinanet_exact,
        [[[-120.0, 30.0], [1.0, -2.0], [90.0, 0.5]]],
    ),
    Public(
        "segmentation_models",
        segmentation,
        segmentation_exact,
        [[[-60.0, 0.0, 3.0], [25.0, 1.0, 0.0]]],
    ),
    Public("the first GAN", gan, gan_exact, [[-110.0, 2.0], [40.0, -120.0]]),
    Public(
        "triplet loss",
        triplet,
        triplet_exact,
        [[[1.0, 2.0], [1.0, 2.0], [4.0, 6.0]]],
    ),
    Public(
        "mixture density networks",
        mixture,
        mixture_exact,
        [
            [[1.0, 0.0], [0.0, 2.0]],
            [[0.0, 1.0], [0.0, -1.0]],
            [[0.0, 0.1], [0.2, 0.0]],
        ],
    ),
    Public(
        "contrastive predictive coding",
        info_nce,
        info_nce_exact,
        [[[1.0, 0.9], [0.97, 0.95]]],
    ),
    Public(
        "actor and critic",
        actor_critic,
        actor_critic_exact,
        [[[150.0, 0.0, 1.0], [0.0, 120.0, 3.0]]],
    ),
    Public(
        "proximal policy optimisation",
        clipped_ratio,
        clipped_ratio_exact,
        [[-110.0, 1.0], [-110.1, 1.05]],
    ),
    Public(
        "the translation tutorial",
        translation,
        translation_exact,
        [[[[0.0, 1.0, -150.0], [2.0, 0.0, 1.0]], [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]],
    ),
    Public("survival analysis", cox, cox_exact, [[95.0, 3.0, 101.0]]),
    Public(
        "WGAN-GP",
        gradient_penalty,
        gradient_penalty_exact,
        [[[0.0, 0.0], [3.0, 4.0]]],
    ),
    Public(
        "the Keras examples",
        keras_tutorial,
        keras_tutorial_exact,
        [[[-20.0, 1.0], [30.0, 25.0]]],
    ),
]
