"""Second derivatives of the cross entropies along a line, against mpmath."""

import itertools

import mpmath
import numpy as np
import pytest
import tensorflow as tf

from tests.support import modes, oracle
from tfsafe import ops

# Inputs are `START + t * ALONG`, logits as they are and probabilities as given below.
START = np.array([[0.5, -1.0, 2.0], [0.25, 1.5, -0.75]])
ALONG = np.array([[1.0, -2.0, 0.5], [-0.5, 1.0, 2.0]])
POINT = 0.25
SOFT = [[0.5, 0.25, 0.25], [0.0, 0.75, 1.5]]
TARGETS = [[0.0, 1.0, 0.25], [0.75, 0.5, 1.0]]
INDICES = [2, 0]
GAMMA, Q = 1.5, 0.75
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


def _binary(gamma, alpha):
    def loss(targets, z, from_logits):
        terms = []
        for y, v in zip(targets, z, strict=True):
            p = 1 / (1 + mpmath.exp(-v)) if from_logits else 1 / (2 + v * v)
            term = -y * mpmath.log(p) - (1 - y) * mpmath.log(1 - p)
            term *= (y * (1 - p) + (1 - y) * p) ** gamma
            terms.append(term * (y * alpha + (1 - y) * (1 - alpha)))
        return mpmath.fsum(terms)

    return loss


def _focal(labels, z, from_logits):
    pairs = zip(ALPHA, labels, _log_probs(z, from_logits), strict=True)
    return mpmath.fsum(-a * y * (1 - mpmath.exp(v)) ** GAMMA * v for a, y, v in pairs)


def _generalized(labels, z, from_logits):
    pairs = zip(labels, _log_probs(z, from_logits, is_divided=False), strict=True)
    return (1 - mpmath.exp(Q * mpmath.fsum(y * v for y, v in pairs))) / Q


ONE_HOT = np.eye(3)[INDICES]
LOSSES = {
    "rows": (ops.categorical_crossentropy, SOFT, {}, _rows, SOFT),
    "indices": (ops.sparse_categorical_crossentropy, INDICES, {}, _rows, ONE_HOT),
    "binary": (ops.binary_crossentropy, TARGETS, {}, _binary(0, 0.5), TARGETS),
    "binary focal": (
        ops.binary_focal_crossentropy,
        TARGETS,
        {"gamma": GAMMA, "alpha": 0.75},
        _binary(GAMMA, 0.75),
        TARGETS,
    ),
    "focal": (
        ops.categorical_focal_crossentropy,
        SOFT,
        {"gamma": GAMMA, "alpha": ALPHA},
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


@pytest.mark.parametrize(("name", "inputs", "mode"), CASES)
def test_the_second_derivative_is_that_of_the_formula(name, inputs, mode):
    loss, labels, options, exact, exact_labels = LOSSES[name]
    options = {**options, **INPUTS[inputs]}
    if labels is not INDICES:
        labels = tf.constant(labels, tf.float64)
    from_logits = inputs == "logits"

    def along(t):
        x = START + t * ALONG
        # The same function of t whether or not it is divided by its sum.
        x = x if from_logits else 1 / (2 + x * x)
        return tf.reduce_sum(loss(labels, x, **options))

    def exact_along(t):
        rows = zip(exact_labels, START, ALONG, strict=True)
        return mpmath.fsum(
            exact(y, [v + t * d for v, d in zip(z, ds, strict=True)], from_logits)
            for y, z, ds in rows
        )

    # `binary_crossentropy` has no weights: those of 1/2 halve it.
    factor = 2 if name == "binary" else 1
    got = modes.second_gradient(along, tf.constant(POINT, tf.float64), mode)
    with mpmath.workdps(oracle.DIGITS):
        truth = factor * mpmath.diff(exact_along, mpmath.mpf(POINT), 2)
    # Sums of about thirty terms of both signs.
    assert oracle.ulp_error(got, np.array(truth, object), 4.0) <= 8
