"""Losses as larger programs write them, made at random, each with the exact loss.

Beyond `grammar.py`, labels and weights are arguments, logits come in half precision,
divided by a temperature, with a time axis or with the classes first; cross-entropies
are products of matrices, or those of Keras, applied to probabilities.

Not here, since the guard is a part of the value: Keras' `kl_divergence`, which clips
the labels, and its focal losses, in which a clipped probability is a factor.
"""

import keras
import numpy as np
import tensorflow as tf

from tests.rewriting.grammar import (
    GUARDS,
    SCALES,
    SIGMOIDS,
    TERMS,
    Expression,
    complement,
    no_nan,
)

CLASSES = 4
LAYOUTS = {
    "(batch, classes)": ((3, CLASSES), -1),
    "(batch, time, classes)": ((2, 3, CLASSES), -1),
    "(classes, batch)": ((CLASSES, 3), 0),
}


def _by_hand(z, axis):
    return tf.exp(z) / tf.reduce_sum(tf.exp(z), axis, keepdims=True)


def _shifted(z, axis):
    e = tf.exp(z - tf.reduce_max(z, axis=axis, keepdims=True))
    return e / tf.reduce_sum(e, axis=axis, keepdims=True)


SOFTMAXES = {
    "softmax(z, axis)": tf.nn.softmax,
    "exp(z) / sum(exp(z))": _by_hand,
    "e / sum(e), e = exp(z - max(z))": _shifted,
    "keras.ops.softmax(z, axis)": keras.ops.softmax,
    "exp(log_softmax(z, axis))": lambda z, axis: tf.exp(tf.nn.log_softmax(z, axis)),
}
# How the probabilities are made of the logits given: dtype of the logits, and whether
# they are cast before the head or after it.
PRECISIONS = {
    "p(z)": (tf.float32, True),
    "p(cast(z)), z in float16": (tf.float16, True),
    "p(cast(z)), z in bfloat16": (tf.bfloat16, True),
    "cast(p(z)), z in float16": (tf.float16, False),
    "cast(p(z)), z in bfloat16": (tf.bfloat16, False),
}
TEMPERATURES = {"z": 1.0, "z / 2": 2.0, "z / 0.25": 0.25}
# In half precision a probability that is a factor has the digits of half precision.
LOGARITHMS = ("-y * log(p)", "-(1 - y) * log(1 - p)", "y * log(p ** 2)")


def _flat(x):
    return tf.reshape(x, [-1, CLASSES])


# Of labels and logarithms, with the classes last: the sum over all of -y * log(p).
CONTRACTIONS = {
    "einsum": lambda y, log_p: -tf.einsum("ij,ij->", _flat(y), _flat(log_p)),
    "einsum, by rows": lambda y, log_p: (
        -tf.reduce_sum(tf.einsum("...j,...j->...", y, log_p))
    ),
    "tensordot": lambda y, log_p: -tf.tensordot(_flat(y), _flat(log_p), 2),
    "trace(matmul)": lambda y, log_p: (
        -tf.linalg.trace(tf.matmul(_flat(y), _flat(log_p), transpose_b=True))
    ),
    "matmul of rows": lambda y, log_p: (
        -tf.reduce_sum(tf.matmul(y[..., None, :], log_p[..., :, None]))
    ),
    "matvec": lambda y, log_p: (
        -tf.linalg.matvec(tf.reshape(y, [1, -1]), tf.reshape(log_p, [-1]))
    ),
    "add_n": lambda y, log_p: tf.reduce_sum(
        tf.add_n([-y[..., i] * log_p[..., i] for i in range(CLASSES)])
    ),
}


def _mean(x):
    return tf.reduce_mean(x)


def _binary(a, b, y):
    return -_mean(no_nan(y, a) + no_nan(1 - y, b))


def _categorical(a, b, y):
    return -_mean(tf.reduce_sum(no_nan(y, a), -1))


# Of labels, with the classes last, and probabilities.
SOFTMAX_LOSSES = {
    "keras.categorical_crossentropy": (
        lambda y, p: _mean(keras.losses.categorical_crossentropy(y, p)),
        _categorical,
    ),
    "keras.categorical_crossentropy, smoothed": (
        lambda y, p: _mean(
            keras.losses.categorical_crossentropy(y, p, label_smoothing=0.1)
        ),
        lambda a, b, y: _categorical(a, b, 0.9 * y + 0.1 / CLASSES),
    ),
    "keras.sparse_categorical_crossentropy": (
        lambda y, p: _mean(
            keras.losses.sparse_categorical_crossentropy(tf.argmax(y, -1), p)
        ),
        lambda a, b, y: _categorical(
            a, b, tf.one_hot(tf.argmax(y, -1), CLASSES, dtype=y.dtype)
        ),
    ),
    "keras.CategoricalCrossentropy": (
        lambda y, p: keras.losses.CategoricalCrossentropy()(y, p),
        _categorical,
    ),
}
SIGMOID_LOSSES = {
    "keras.binary_crossentropy": (
        lambda y, p: _mean(keras.losses.binary_crossentropy(y, p)),
        _binary,
    ),
    "keras.BinaryCrossentropy, smoothed": (
        lambda y, p: keras.losses.BinaryCrossentropy(label_smoothing=0.2)(y, p),
        lambda a, b, y: _binary(a, b, 0.8 * y + 0.1),
    ),
    "tf.compat.v1.losses.log_loss": (
        lambda y, p: tf.compat.v1.losses.log_loss(y, p),
        _binary,
    ),
}
# What programs do to the labels that they are given.
LABELS = {
    "y": (lambda y, axis: y, lambda y: y),
    "cast(int(y))": (
        lambda y, axis: tf.cast(tf.cast(y > 0.5, tf.int32), tf.float32),
        lambda y: (y > 0.5).astype(np.float64),
    ),
    "one_hot(k)": (
        lambda y, axis: tf.one_hot(tf.argmax(y, axis), CLASSES, axis=axis),
        None,
    ),
    "y * 0.9 + 0.1 / 4": (
        lambda y, axis: y * (1 - 0.1) + 0.1 / CLASSES,
        lambda y: 0.9 * y + 0.1 / CLASSES,
    ),
}
# Of terms and weights of the same shape.
REDUCTIONS = {
    "sum(t * w) / sum(w)": (
        lambda t, w: tf.reduce_sum(t * w) / tf.reduce_sum(w),
        lambda t, w: tf.reduce_sum(t * w) / tf.reduce_sum(w),
    ),
    "mean(sum(t * w, -1) / sum(w, -1))": (
        lambda t, w: _mean(tf.reduce_sum(t * w, -1) / tf.reduce_sum(w, -1)),
        lambda t, w: _mean(
            tf.math.divide_no_nan(tf.reduce_sum(w * t, -1), tf.reduce_sum(w, -1))
        ),
    ),
    "sum(w * t) / (sum(w) + 1e-8)": (
        lambda t, w: tf.reduce_sum(w * t) / (tf.reduce_sum(w) + 1e-8),
        lambda t, w: tf.reduce_sum(t * w) / (tf.reduce_sum(w) + 1e-8),
    ),
    "sum(divide_no_nan(sum(t * w, -1), sum(w, -1)))": (
        lambda t, w: tf.reduce_sum(
            tf.math.divide_no_nan(tf.reduce_sum(t * w, -1), tf.reduce_sum(w, -1))
        ),
        lambda t, w: tf.reduce_sum(
            tf.math.divide_no_nan(tf.reduce_sum(t * w, -1), tf.reduce_sum(w, -1))
        ),
    ),
    "mean(t * w)": (lambda t, w: _mean(t * w), lambda t, w: _mean(t * w)),
    "mean(sum(w * t, 0))": (
        lambda t, w: _mean(tf.reduce_sum(w * t, 0)),
        lambda t, w: _mean(tf.reduce_sum(w * t, 0)),
    ),
}
# Relative, absolute; in half precision each part of a gradient is rounded.
TOLERANCES = {
    tf.float32: (2e-5, 1e-9),
    tf.float16: (2e-3, 1e-5),
    tf.bfloat16: (1.6e-2, 1e-4),
}


def _given(rng, shape, axis):
    """Returns labels, one-hot or soft along the axis, and weights, some of them 0."""
    rows = [size for i, size in enumerate(shape) if i != axis % len(shape)]
    hot = np.eye(CLASSES)[rng.integers(0, CLASSES, rows)]
    if rng.random() < 0.3:
        hot = rng.dirichlet(np.ones(CLASSES), rows)
    weights = rng.choice([0.0, 0.5, 1.0, 2.5], [*rows, CLASSES])
    weights[0] = 0  # Nothing of a row.
    weights[-1, ..., 0] = 1.0
    made = (np.moveaxis(each, -1, axis).astype(np.float32) for each in (hot, weights))
    return tuple(made)


def _logarithms(z, axis, is_softmax):
    """Returns log p and log(1 - p)."""
    if not is_softmax:
        return tf.math.log_sigmoid(z), tf.math.log_sigmoid(-z)
    if axis == 0:
        return tf.nn.log_softmax(z, 0), tf.transpose(complement(tf.transpose(z)))
    return tf.nn.log_softmax(z), complement(z)


class _Drawn:
    """What is drawn for a program, by the number of the program."""

    def __init__(self, seed: int):
        rng = np.random.default_rng([seed, 7])
        self._rng = rng
        layout = self.one(LAYOUTS)
        self.shape, self.axis = LAYOUTS[layout]
        self.is_softmax = rng.random() < 0.6
        self.head = self.one(SOFTMAXES if self.is_softmax else SIGMOIDS)
        precision = self.one(PRECISIONS) if rng.random() < 0.5 else "p(z)"
        self.dtype, self.is_cast_first = PRECISIONS[precision]
        scaling = self.one(TEMPERATURES)
        self.temperature = TEMPERATURES[scaling]
        z = rng.normal(0, rng.choice(SCALES), self.shape)
        self.logits = tf.cast(z.astype(np.float32), self.dtype).numpy()
        self.given = _given(rng, self.shape, self.axis)
        self.guard = self.one(GUARDS)
        self.text = f"#{seed} {layout}, p = {self.head}, {scaling}, {precision}"

    def one(self, table) -> str:
        """Returns one of the names of a table."""
        return str(self._rng.choice(list(table)))

    def kind(self) -> str:
        """Returns what the program is written with."""
        kinds = ["term"] if self.axis == 0 else ["term", "term", "product", "library"]
        return self.one(kinds)

    def probs(self, z):
        """Returns the probabilities as the program makes them."""
        if self.is_cast_first:
            z = tf.cast(z, tf.float32)
        if self.temperature != 1:
            z /= self.temperature
        if self.is_softmax:
            p = SOFTMAXES[self.head](z, axis=self.axis)
        else:
            p = SIGMOIDS[self.head](z)
        return tf.cast(p, tf.float32)

    def exact(self, z):
        """Returns the exact log p and log(1 - p)."""
        return _logarithms(z / self.temperature, self.axis, self.is_softmax)

    def expression(self, text, naive, exact) -> Expression:
        """Returns the program as an expression."""
        given = self.given
        return Expression(
            f"{self.text}: {text}",
            naive,
            lambda z: exact(
                *self.exact(z), *(tf.constant(x, tf.float64) for x in given)
            ),
            self.logits,
            given,
            TOLERANCES[self.dtype],
        )


def make(seed: int) -> Expression:
    """Returns the program with this number."""
    drawn = _Drawn(seed)
    return _KINDS[drawn.kind()](drawn)


def _product(drawn):
    name = drawn.one(CONTRACTIONS)
    on_p, on_argument = GUARDS[drawn.guard]

    def naive(z, y, w):
        log_p = tf.math.log(on_argument(on_p(drawn.probs(z))))
        return tf.reduce_sum(CONTRACTIONS[name](y, log_p))

    def exact(a, b, y, w):
        return -tf.reduce_sum(no_nan(y, a))

    return drawn.expression(f"{name} of y and log(p), {drawn.guard}", naive, exact)


def _library(drawn):
    losses = SOFTMAX_LOSSES if drawn.is_softmax else SIGMOID_LOSSES
    name = drawn.one(losses)
    loss, right = losses[name]
    return drawn.expression(
        name,
        lambda z, y, w: loss(y, drawn.probs(z)),
        lambda a, b, y, w: right(a, b, y),
    )


def _term(drawn):
    is_half = drawn.dtype != tf.float32
    name = drawn.one(LOGARITHMS if is_half else [*TERMS][:6])
    labels, reduction = drawn.one(LABELS), drawn.one(REDUCTIONS)
    on_p, on_argument = GUARDS[drawn.guard]
    y = drawn.given[0]
    hot = tf.one_hot(tf.argmax(y, drawn.axis), CLASSES, axis=drawn.axis).numpy()
    right = (LABELS[labels][1] or (lambda _: hot))(y.astype(np.float64))

    def naive(z, y, w):
        y = LABELS[labels][0](y, drawn.axis)
        made = TERMS[name][0](
            on_p(drawn.probs(z)), y, lambda x: tf.math.log(on_argument(x))
        )
        return REDUCTIONS[reduction][0](made, w)

    def exact(a, b, y, w):
        made = TERMS[name][1](a, b, tf.constant(right, tf.float64))
        return REDUCTIONS[reduction][1](made, w)

    return drawn.expression(
        f"{reduction} of {name}, {labels}, guard {drawn.guard}", naive, exact
    )


_KINDS = {"term": _term, "product": _product, "library": _library}
