"""Losses as people write them, made at random, each with the exact loss beside it.

An expression is a head (how the probabilities are written), a guard, a term, labels, a
mask and a reduction. The exact form is written in float64 with what the literature
recommends, never with tfsafe.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

ROWS, CLASSES = 3, 4
# Logits of a network that works, of one that is sure, of one that is far too sure.
SCALES = (1.0, 12.0, 150.0)


@dataclasses.dataclass(frozen=True)
class Expression:
    """A loss of logits.

    Attributes:
      text: How it is written.
      naive: Takes float32 logits.
      exact: Takes the logits in float64.
      logits: Logits to take the loss at.
      given: What else `naive` takes.
      tolerance: Relative and absolute.
    """

    text: str
    naive: Callable[..., tf.Tensor]
    exact: Callable[[tf.Tensor], tf.Tensor]
    logits: np.ndarray
    given: tuple[np.ndarray, ...] = ()
    tolerance: tuple[float, float] = (2e-5, 1e-9)


def _by_hand(z):
    return tf.exp(z) / tf.reduce_sum(tf.exp(z), -1, keepdims=True)


def _shifted(z):
    e = tf.exp(z - tf.reduce_max(z, axis=-1, keepdims=True))
    return e / tf.reduce_sum(e, axis=-1, keepdims=True)


def _expanded(z):
    e = tf.math.exp(z)
    return e / tf.expand_dims(tf.reduce_sum(e, axis=1), 1)


def _other_axis(z):
    return tf.transpose(tf.nn.softmax(tf.transpose(z), axis=0))


def _reshaped(z):
    return tf.reshape(tf.nn.softmax(z), [ROWS, CLASSES])


def _renormalised(z):
    p = tf.nn.softmax(z)
    return p / tf.reduce_sum(p, -1, keepdims=True)


SOFTMAXES = {
    "softmax(z)": tf.nn.softmax,
    "exp(z) / sum(exp(z))": _by_hand,
    "e / sum(e), e = exp(z - max(z))": _shifted,
    "e / expand_dims(sum(e))": _expanded,
    "transpose(softmax(transpose(z), 0))": _other_axis,
    "reshape(softmax(z))": _reshaped,
    "p / sum(p), p = softmax(z)": _renormalised,
    "keras.activations.softmax(z)": keras.activations.softmax,
    "keras.ops.softmax(z)": keras.ops.softmax,
    "exp(log_softmax(z))": lambda z: tf.exp(tf.nn.log_softmax(z)),
    "exp(z - logsumexp(z))": lambda z: tf.exp(
        z - tf.reduce_logsumexp(z, -1, keepdims=True)
    ),
    "softmax(z / 2 * 2 + 1)": lambda z: tf.nn.softmax(z / 2 * 2 + 1),
    "exp(z) * (1 / sum(exp(z)))": lambda z: (
        tf.exp(z) * (1 / tf.reduce_sum(tf.exp(z), 1, keepdims=True))
    ),
    "exp(z) / (sum(exp(z)) + 1e-12)": lambda z: (
        tf.exp(z) / (tf.reduce_sum(tf.exp(z), 1, keepdims=True) + 1e-12)
    ),
}
SIGMOIDS = {
    "sigmoid(z)": tf.sigmoid,
    "1 / (1 + exp(-z))": lambda z: 1 / (1 + tf.exp(-z)),
    "1 / (exp(-z) + 1)": lambda z: 1.0 / (tf.exp(-z) + 1.0),
    "exp(z) / (1 + exp(z))": lambda z: tf.exp(z) / (1 + tf.exp(z)),
    "(tanh(z / 2) + 1) / 2": lambda z: (tf.tanh(z / 2) + 1) / 2,
    "0.5 * (1 + tanh(0.5 * z))": lambda z: 0.5 * (1 + tf.tanh(0.5 * z)),
    "keras.activations.sigmoid(z)": keras.activations.sigmoid,
    "1 - sigmoid(-z)": lambda z: 1 - tf.sigmoid(-z),
    "reciprocal(1 + exp(-z))": lambda z: tf.math.reciprocal(1 + tf.exp(-z)),
    "exp(-softplus(-z))": lambda z: tf.exp(-tf.nn.softplus(-z)),
    "softmax([0, z])[1]": lambda z: tf.nn.softmax(tf.stack([tf.zeros_like(z), z], -1))[
        ..., 1
    ],
}
EPSILON = 1e-7


def _same(x):
    return x


# What people do to a probability, and to the argument of a logarithm.
GUARDS = {
    "none": (_same, _same),
    "+ eps": (_same, lambda x: x + EPSILON),
    "p = clip(p)": (lambda p: tf.clip_by_value(p, EPSILON, 1 - EPSILON), _same),
    "log(clip(.))": (_same, lambda x: tf.clip_by_value(x, EPSILON, 1 - EPSILON)),
    "log(maximum(., eps))": (_same, lambda x: tf.maximum(x, EPSILON)),
}


def complement(z):
    """Returns log(1 - softmax(z)), from the sum of the other classes."""
    others = tf.where(tf.eye(CLASSES, dtype=tf.bool), -np.inf, z[..., None, :])
    return tf.reduce_logsumexp(others, -1) - tf.reduce_logsumexp(z, -1, keepdims=True)


def no_nan(weight, term):
    """Returns a product that is 0 where the weight is, with a gradient of 0."""
    used = tf.not_equal(weight, 0)
    return tf.where(used, weight, 0) * tf.where(used, term, 0)


# Of a probability p, labels y and the guarded logarithm: the naive form, and the exact
# one of log p and log(1 - p) in float64.
TERMS = {
    "-y * log(p)": (
        lambda p, y, log: -y * log(p),
        lambda a, b, y: -no_nan(y, a),
    ),
    "-log(p) * y": (
        lambda p, y, log: -log(p) * y,
        lambda a, b, y: -no_nan(y, a),
    ),
    "-(1 - y) * log(1 - p)": (
        lambda p, y, log: -(1 - y) * log(1 - p),
        lambda a, b, y: -no_nan(1 - y, b),
    ),
    "-(y * log(p) + (1 - y) * log(1 - p))": (
        lambda p, y, log: -(y * log(p) + (1 - y) * log(1 - p)),
        lambda a, b, y: -(no_nan(y, a) + no_nan(1 - y, b)),
    ),
    "-y * (1 - p)**2 * log(p)": (
        lambda p, y, log: -y * (1 - p) ** 2 * log(p),
        lambda a, b, y: -no_nan(y, tf.exp(2 * b) * a),
    ),
    "y * (log(y) - log(p))": (
        lambda p, y, log: y * (tf.math.log(y) - log(p)),
        lambda a, b, y: no_nan(y, tf.math.log(tf.where(y > 0, y, tf.ones_like(y))) - a),
    ),
    "log(1 / p) * y": (
        lambda p, y, log: log(1 / p) * y,
        lambda a, b, y: -no_nan(y, a),
    ),
    "y * log(p ** 2)": (
        lambda p, y, log: y * log(p**2),
        lambda a, b, y: 2 * no_nan(y, a),
    ),
    "y * log(sqrt(p))": (
        lambda p, y, log: y * log(tf.sqrt(p)),
        lambda a, b, y: no_nan(y, a) / 2,
    ),
    # Not with a clipped p: that one stays a factor, as it stands.
    "p * log(p)": (
        lambda p, y, log: p * log(p),
        lambda a, b, y: tf.exp(a) * a,
    ),
}
# A guard against a small argument is none where the argument is large.
UNGUARDED = {"log(1 / p) * y"}
# A term of all the classes of a row at once.
PICKS = {
    "-log(sum(y * p, -1))": (
        lambda p, k, log: -log(tf.reduce_sum(tf.one_hot(k, CLASSES) * p, -1)),
        lambda a, k: -tf.gather(a, k, batch_dims=1),
    ),
    "-log(gather(p, k, batch_dims=1))": (
        lambda p, k, log: -log(tf.gather(p, k, batch_dims=1)),
        lambda a, k: -tf.gather(a, k, batch_dims=1),
    ),
    "-log(gather_nd(p, [i, k]))": (
        lambda p, k, log: -log(tf.gather_nd(p, tf.stack([tf.range(ROWS), k], 1))),
        lambda a, k: -tf.gather(a, k, batch_dims=1),
    ),
    "-gather(log(p), k, batch_dims=1)": (
        lambda p, k, log: -tf.gather(log(p), k, batch_dims=1),
        lambda a, k: -tf.gather(a, k, batch_dims=1),
    ),
    "-sum(one_hot * log(p))": (
        lambda p, k, log: -tf.reduce_sum(tf.one_hot(k, CLASSES) * log(p), -1),
        lambda a, k: -tf.gather(a, k, batch_dims=1),
    ),
}
MASKS = {
    "{}": (lambda term, m: term, lambda term, m: term),
    "m * {}": (lambda term, m: m * term, lambda term, m: no_nan(m, term)),
    "where(m, {}, 0)": (
        lambda term, m: tf.where(m > 0, term, tf.zeros_like(term)),
        lambda term, m: no_nan(m, term),
    ),
    "boolean_mask({}, m)": (
        lambda term, m: tf.boolean_mask(term, m > 0),
        lambda term, m: tf.boolean_mask(term, m > 0),
    ),
}
REDUCTIONS = {
    "sum({})": (tf.reduce_sum, tf.reduce_sum),
    "sum({}) / 3": (
        lambda term: tf.reduce_sum(term) / 3,
        lambda term: tf.reduce_sum(term) / 3,
    ),
    "mean(-({}))": (
        lambda term: tf.reduce_mean(-term),
        lambda term: tf.reduce_mean(-term),
    ),
    "mean({})": (tf.reduce_mean, tf.reduce_mean),
    "mean(sum({}, 0))": (
        lambda term: tf.reduce_mean(tf.reduce_sum(term, 0)),
        lambda term: tf.reduce_mean(tf.reduce_sum(term, 0)),
    ),
    "0.3 * sum({})": (
        lambda term: 0.3 * tf.reduce_sum(term),
        lambda term: 0.3 * tf.reduce_sum(term),
    ),
}


def _labels(rng: np.random.Generator) -> tuple[str, np.ndarray]:
    """Returns one-hot, soft, smoothed or all-zero labels."""
    hot = np.eye(CLASSES)[rng.integers(0, CLASSES, ROWS)]
    kind = rng.choice(["one-hot", "soft", "smoothed", "zero"])
    if kind == "soft":
        hot = rng.dirichlet(np.ones(CLASSES), ROWS)
    elif kind == "smoothed":
        hot = 0.9 * hot + 0.1 / CLASSES
    elif kind == "zero":
        hot = np.zeros_like(hot)
    return str(kind), hot.astype(np.float32)


def make(seed: int) -> Expression:
    """Returns the expression with this number."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0, rng.choice(SCALES), (ROWS, CLASSES)).astype(np.float32)
    if rng.random() < 0.2:
        # A tie of all the classes.
        z[0] = z[0, 0]
    multiclass = rng.random() < 0.6
    heads: dict[str, Any] = SOFTMAXES if multiclass else SIGMOIDS
    head = str(rng.choice(list(heads)))
    if multiclass and rng.random() < 0.35:
        term = str(rng.choice(list(PICKS)))
        labels, y = "indices", rng.integers(0, CLASSES, ROWS).astype(np.int32)
        m = (rng.random(ROWS) < 0.6).astype(np.float32)
    else:
        term = str(rng.choice(list(TERMS)))
        labels, y = _labels(rng)
        m = (rng.random((ROWS, CLASSES)) < 0.6).astype(np.float32)
    m.flat[0] = 1
    guard = str(rng.choice(list(GUARDS)))
    if term in UNGUARDED or (term == "p * log(p)" and guard == "p = clip(p)"):
        guard = "none"
    mask = str(rng.choice(list(MASKS)))
    reduction = str(rng.choice(list(REDUCTIONS)))

    def naive(z: tf.Tensor) -> tf.Tensor:
        on_p, on_argument = GUARDS[guard]
        form = PICKS[term][0] if term in PICKS else TERMS[term][0]
        made = form(
            on_p(heads[head](z)),
            tf.constant(y),
            lambda argument: tf.math.log(on_argument(argument)),
        )
        return REDUCTIONS[reduction][0](MASKS[mask][0](made, m))

    def exact(z: tf.Tensor) -> tf.Tensor:
        log_p = tf.nn.log_softmax(z) if multiclass else tf.math.log_sigmoid(z)
        log_q = complement(z) if multiclass else tf.math.log_sigmoid(-z)
        if term in PICKS:
            made = PICKS[term][1](log_p, tf.constant(y))
        else:
            made = TERMS[term][1](log_p, log_q, tf.constant(y, tf.float64))
        m64 = tf.constant(m, tf.float64)
        return REDUCTIONS[reduction][1](MASKS[mask][1](made, m64))

    text = f"#{seed} {reduction.format(mask.format(term))}, p = {head}"
    return Expression(f"{text}, guard {guard}, {labels} labels", naive, exact, z)
