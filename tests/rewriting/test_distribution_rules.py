"""Divergences of two softmaxes, of nearly equal logits and of far ones."""

import numpy as np
import pytest
import tensorflow as tf

from tests.support import modes, oracle
from tests.support.oracle import assert_close
from tfsafe.rewriting import stabilize

log, softmax = tf.math.log, tf.nn.softmax


def total(x):
    return tf.reduce_sum(x, -1)


def entropy(p):
    return -total(p * log(p))


def kl(p, q):
    return total(p * (log(p) - log(q)))


def jensen_shannon(a, b):
    p, q = softmax(a), softmax(b)
    middle = 0.5 * (p + q)
    return 0.5 * total(p * log(p / middle)) + 0.5 * total(q * log(q / middle))


def by_entropies(a, b):
    p, q = softmax(a), softmax(b)
    return entropy((p + q) / 2) - (entropy(p) + entropy(q)) / 2


def by_log_softmax(a, b):
    log_p, log_q = tf.nn.log_softmax(a), tf.nn.log_softmax(b)
    return total(tf.exp(log_p) * (log_p - log_q))


def by_logsumexp(a, b):
    log_p = a - tf.reduce_logsumexp(a, -1, keepdims=True)
    log_q = b - tf.reduce_logsumexp(b, -1, keepdims=True)
    return total(softmax(a) * (log_p - log_q))


def by_cross_entropy(a, b):
    p = softmax(a)
    return total(p * log(p)) - total(p * tf.nn.log_softmax(b))


def affinity(a, b, power=0.5):
    return total(softmax(a) ** power * softmax(b) ** (1 - power))


FORMULAS = {
    "Kullback-Leibler": lambda a, b: kl(softmax(a), softmax(b)),
    "mean of it": lambda a, b: tf.reduce_mean(kl(softmax(a), softmax(b))),
    "of a ratio": lambda a, b: total(softmax(a) * log(softmax(a) / softmax(b))),
    "by log_softmax": by_log_softmax,
    "by logsumexp": by_logsumexp,
    "by the cross-entropy": by_cross_entropy,
    "Jensen-Shannon": jensen_shannon,
    "by entropies": by_entropies,
    "Hellinger": lambda a, b: tf.sqrt(1 - total(tf.sqrt(softmax(a) * softmax(b)))),
    "squared Hellinger": lambda a, b: (
        2.0 - 2.0 * total(tf.sqrt(softmax(a)) * tf.sqrt(softmax(b)))
    ),
    "Bhattacharyya": lambda a, b: -log(total(tf.sqrt(softmax(a) * softmax(b)))),
    "alpha": lambda a, b: (1 - affinity(a, b, 0.3)) / 0.21,
    "Renyi": lambda a, b: log(affinity(a, b)) / (0.5 - 1),
}
# The root and the exponents 0.3 and 0.7 are rounded outside of the rule.
ROUNDED_ONCE = sorted(FORMULAS.keys() - {"Hellinger", "alpha"})
LOGITS = np.random.default_rng(7).normal(size=(3, 6)).astype("float32")
NOISE = np.random.default_rng(8).normal(size=(3, 6)).astype("float32")


def outcome(function, a, b, mode="graph"):
    value, slopes = modes.value_and_gradients(function, [a, b], mode)
    return [np.asarray(each, np.float64) for each in (value, *slopes)]


def error(found, exact):
    return max(
        np.abs(x - y).max() / np.abs(y).max() for x, y in zip(found, exact, strict=True)
    )


@pytest.mark.parametrize("mode", ["graph", "xla"])
@pytest.mark.parametrize("formula", FORMULAS.values(), ids=list(FORMULAS))
def test_a_divergence_of_nearly_equal_logits_has_all_digits(formula, mode):
    a, b = LOGITS, LOGITS + np.float32(1e-4) * NOISE
    exact = outcome(formula, *(tf.constant(x, tf.float64) for x in (a, b)))
    narrow = [tf.constant(x) for x in (a, b)]
    assert not error(outcome(formula, *narrow), exact) < 1e-2
    assert error(outcome(stabilize(formula), *narrow, mode), exact) < 5e-7


@pytest.mark.parametrize("mode", modes.MODES)
@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
@pytest.mark.parametrize("name", ROUNDED_ONCE)
def test_a_divergence_in_half_precision_is_rounded_once(name, dtype, mode):
    formula = FORMULAS[name]
    narrow = [tf.cast(x, dtype) for x in (LOGITS, LOGITS + np.float32(0.1) * NOISE)]
    exact = outcome(formula, *(tf.cast(x, tf.float64) for x in narrow))
    value, slopes = modes.value_and_gradients(stabilize(formula), narrow, mode)
    errors = map(oracle.ulp_error, (value, *slopes), exact)
    assert max(errors) <= 0.51


@pytest.mark.parametrize("distance", [1.0, 20.0])
@pytest.mark.parametrize("formula", FORMULAS.values(), ids=list(FORMULAS))
def test_a_divergence_of_other_logits_stays_right(formula, distance):
    a, b = LOGITS, LOGITS + np.float32(distance) * NOISE
    exact = outcome(formula, *(tf.constant(x, tf.float64) for x in (a, b)))
    narrow = [tf.constant(x) for x in (a, b)]
    assert error(outcome(stabilize(formula), *narrow), exact) < 5e-7


def test_the_affinity_of_logits_beyond_float64_has_a_logarithm():
    def formula(a, b):
        return -log(total(tf.sqrt(softmax(a) * softmax(b))))

    a, b = tf.constant([[0.0, 4000.0]]), tf.constant([[4000.0, 0.0]])
    value, slopes = modes.value_and_gradients(stabilize(formula), [a, b], "graph")
    assert_close(value, [2000.0 - np.log(2.0)])
    assert_close(slopes[0], [[-0.25, 0.25]])


@pytest.mark.parametrize(
    "formula",
    [
        lambda a, b: tf.reduce_sum(a * a) + total(softmax(b) * log(softmax(b))),
        lambda a, b: total(softmax(a) * (a * log(softmax(a)) - a * log(softmax(b)))),
    ],
    ids=["two losses", "weighted logarithms"],
)
def test_other_formulas_stay_in_their_dtype(formula):
    report = stabilize.report(formula, tf.constant(LOGITS), tf.constant(NOISE))
    assert "divergence-of-softmax" not in str(report)
