"""Second derivatives of the cross entropies, and slopes in labels, against mpmath."""

import itertools

import mpmath
import numpy as np
import pytest
import tensorflow as tf

from tests.support import modes, oracle
from tfsafe import ops

# Logits are `START + t * ALONG`, and probabilities are computed from them.
START = np.array([[0.5, -1.0, 2.0], [0.25, 1.5, -0.75]])
ALONG = np.array([[1.0, -2.0, 0.5], [-0.5, 1.0, 2.0]])
POINT = 0.25
SOFT = [[0.5, 0.25, 0.25], [0.0, 0.75, 1.5]]
TARGETS = [[0.0, 1.0, 0.25], [0.75, 0.5, 1.0]]
INDICES = [2, 0]
GAMMA, Q, SMOOTHING = 1.5, 0.75, 0.25
ALPHA = [0.25, 1.0, 0.5]


def _log_probs(z, from_logits, is_divided=True):
    """The logarithms of the probabilities of a row, at 60 digits."""
    if not from_logits:
        z = [mpmath.log(1 / (2 + v * v)) for v in z]
    total = mpmath.log(mpmath.fsum(map(mpmath.exp, z)))
    return [v - (total if from_logits or is_divided else 0) for v in z]


def _rows(labels, z, from_logits):
    pairs = zip(labels, _log_probs(z, from_logits), strict=True)
    return -mpmath.fsum(y * v for y, v in pairs)


def _binary(gamma, alpha, smoothing):
    def loss(targets, z, from_logits):
        terms = []
        for y, v in zip(targets, z, strict=True):
            y = (1 - smoothing) * y + smoothing / 2
            p = 1 / (1 + mpmath.exp(-v)) if from_logits else 1 / (2 + v * v)
            term = -y * mpmath.log(p) - (1 - y) * mpmath.log(1 - p)
            term *= (y * (1 - p) + (1 - y) * p) ** gamma
            weight = 1 if alpha is None else y * alpha + (1 - y) * (1 - alpha)
            terms.append(weight * term)
        return mpmath.fsum(terms)

    return loss


def _focal(labels, z, from_logits):
    spread = SMOOTHING * mpmath.fsum(labels) / 3
    labels = [(1 - SMOOTHING) * y + spread for y in labels]
    pairs = zip(ALPHA, labels, _log_probs(z, from_logits), strict=True)
    return mpmath.fsum(-a * y * (1 - mpmath.exp(v)) ** GAMMA * v for a, y, v in pairs)


def _generalized(labels, z, from_logits):
    pairs = zip(labels, _log_probs(z, from_logits, is_divided=False), strict=True)
    return (1 - mpmath.exp(Q * mpmath.fsum(y * v for y, v in pairs))) / Q


ONE_HOT = np.eye(3)[INDICES]
LOSSES = {
    "rows": (ops.categorical_crossentropy, SOFT, {}, _rows, SOFT),
    "indices": (ops.sparse_categorical_crossentropy, INDICES, {}, _rows, ONE_HOT),
    "binary": (ops.binary_crossentropy, TARGETS, {}, _binary(0, None, 0), TARGETS),
    "binary focal": (
        ops.binary_focal_crossentropy,
        TARGETS,
        {"gamma": GAMMA, "alpha": 0.75, "label_smoothing": SMOOTHING},
        _binary(GAMMA, 0.75, SMOOTHING),
        TARGETS,
    ),
    "focal": (
        ops.categorical_focal_crossentropy,
        SOFT,
        {"gamma": GAMMA, "alpha": ALPHA, "label_smoothing": SMOOTHING},
        _focal,
        SOFT,
    ),
    "generalized": (
        ops.categorical_generalized_cross_entropy,
        INDICES,
        {"q": Q},
        _generalized,
        ONE_HOT,
    ),
}
INPUTS = {
    "logits": {"from_logits": True},
    "probabilities": {},
    "bounded": {"bounded": True},
}
# All in eager mode, and each once in one of the others.
CASES = [(*each, "eager") for each in itertools.product(LOSSES, INPUTS)]
CASES += zip(LOSSES, itertools.cycle(INPUTS), itertools.cycle(["xla", "graph"]))


def _inputs(t, from_logits):
    x = START + t * ALONG
    # As probabilities, the same function of t whether or not they are divided by it.
    return x if from_logits else 1 / (2 + x * x)


@pytest.mark.parametrize(("name", "inputs", "mode"), CASES)
def test_the_second_derivative_is_that_of_the_formula(name, inputs, mode):
    loss, labels, options, exact, exact_labels = LOSSES[name]
    options = {**options, **INPUTS[inputs]}
    if labels is not INDICES:
        labels = tf.constant(labels, tf.float64)
    from_logits = inputs == "logits"

    def along(t):
        return tf.reduce_sum(loss(labels, _inputs(t, from_logits), **options))

    def exact_along(t):
        rows = zip(exact_labels, START, ALONG, strict=True)
        return mpmath.fsum(
            exact(y, [v + t * d for v, d in zip(z, ds, strict=True)], from_logits)
            for y, z, ds in rows
        )

    got = modes.second_gradient(along, tf.constant(POINT, tf.float64), mode)
    with mpmath.workdps(oracle.DIGITS):
        truth = mpmath.diff(exact_along, mpmath.mpf(POINT), 2)
    # Sums of about thirty terms of both signs.
    assert oracle.ulp_error(got, np.array(truth, object), 4.0) <= 8


@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("name", ["rows", "binary", "binary focal", "focal"])
def test_the_slopes_in_the_labels_are_those_of_the_formula(name, inputs):
    loss, labels, options, exact, _ = LOSSES[name]
    options, from_logits = {**options, **INPUTS[inputs]}, inputs == "logits"
    x = tf.constant(_inputs(POINT, from_logits))
    _, (slopes,) = modes.value_and_gradients(
        lambda y: loss(y, x, **options), [tf.constant(labels, tf.float64)], "eager"
    )
    truth = np.empty(START.shape, object)
    with mpmath.workdps(oracle.DIGITS):
        for i, j in np.ndindex(*START.shape):

            def in_label(y, i=i, j=j):
                row = [*labels[i][:j], y, *labels[i][j + 1 :]]
                return exact(row, START[i] + POINT * ALONG[i], from_logits)

            truth[i, j] = mpmath.diff(in_label, labels[i][j])
    assert oracle.ulp_error(slopes, truth, 1.0) <= 4
