"""The focal and the generalised cross entropies against mpmath, and their edges."""

import mpmath
import numpy as np
import pytest
import tensorflow as tf

from tests.support import modes, oracle
from tests.support.oracle import assert_close
from tfsafe import ops

INF, NAN = float("inf"), float("nan")
binary = ops.binary_focal_crossentropy
rows = ops.categorical_focal_crossentropy
generalized = ops.categorical_generalized_cross_entropy


def budget(dtype, mode):
    if dtype.size == 2:
        # Computed in float32 and rounded once.
        return 0.51
    # XLA:CPU's float64 log1p is up to 127 ulp off. Otherwise up to 4.2 were measured: a
    # logarithm, a power and their product, each rounded.
    return 300 if (dtype, mode) == (tf.float64, "xla") else 6


def truth_of_binary(gamma, target):
    def loss(z):
        p = 1 / (1 + mpmath.exp(-z))
        missed = target * (1 - p) + (1 - target) * p
        surprise = target * mpmath.log1p(mpmath.exp(-z))
        surprise += (1 - target) * mpmath.log1p(mpmath.exp(z))
        return missed**gamma * surprise

    return loss


@pytest.mark.parametrize(
    ("gamma", "target"), [(0.0, 1.0), (0.5, 0.0), (2.0, 0.25), (2.0, 1.0)]
)
def test_binary_targets_from_logits_agree_with_mpmath(gamma, target, mode, dtype):
    z = oracle.grid(dtype, 0.01, 30.0, 5)
    z = tf.concat([-z, z], 0)
    value, (slope,) = modes.value_and_gradients(
        lambda z: binary(tf.fill(z.shape, tf.constant(target, z.dtype)), z, gamma=gamma,
                         from_logits=True),
        [z],
        mode,
    )  # fmt: skip
    loss = truth_of_binary(gamma, target)
    assert oracle.ulp_error(value, oracle.exact(loss, z)) <= budget(dtype, mode)
    if target != 0.25:  # Else the slope crosses 0.
        truth = oracle.exact(lambda v: mpmath.diff(loss, v), z)
        assert oracle.ulp_error(slope, truth) <= budget(dtype, mode)


def truth_of_row(gamma):
    def loss(labels, z):
        total = mpmath.fsum(map(mpmath.exp, z))
        return mpmath.fsum(
            0.25 * y * (1 - mpmath.exp(v) / total) ** gamma * (mpmath.log(total) - v)
            for y, v in zip(labels, z, strict=True)
        )

    return loss


@pytest.mark.parametrize("gamma", [0.5, 2.0])
def test_rows_agree_with_mpmath(gamma, mode, dtype):
    labels = tf.constant([[0, 1, 0], [0.5, 0.25, 0.25], [1, 0, 0]], dtype)
    z = tf.constant([[1, -20, 3], [0, 2, -1], [9, 0, 1]], dtype)
    value = modes.compile_for(
        mode, lambda z: rows(labels, z, gamma=gamma, from_logits=True)
    )(z)
    truth = oracle.exact_rows(truth_of_row(gamma), labels, z)
    assert oracle.ulp_error(value, truth) <= budget(dtype, mode)


@pytest.mark.parametrize(
    ("loss", "activation"), [(binary, tf.sigmoid), (rows, tf.nn.softmax)]
)
def test_probabilities_and_logits_agree(loss, activation, mode):
    z = tf.constant([[1.0, -2.0, 3.0], [0.0, 2.0, -1.0]])
    y = tf.constant([[0.0, 1.0, 0.0], [0.5, 0.25, 0.25]])
    got = modes.value_and_gradients(
        lambda z: loss(y, activation(z), alpha=0.75), [z], mode
    )
    expected = modes.value_and_gradients(
        lambda z: loss(y, z, alpha=0.75, from_logits=True), [z], "eager"
    )
    assert_close(got[0], expected[0])
    assert_close(got[1][0], expected[1][0])


def test_each_class_may_have_a_weight_along_any_axis(mode):
    z = tf.constant([[1.0, -2.0, 3.0], [0.0, 2.0, -1.0]])
    y = tf.constant([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    plain = rows(y, z, alpha=1.0, from_logits=True)
    weighted = modes.compile_for(
        mode,
        lambda z: rows(
            tf.transpose(y), z, alpha=[1.0, 2.0, 3.0], from_logits=True, axis=0
        ),
    )(tf.transpose(z))
    assert_close(weighted, plain * [2.0, 3.0])


@pytest.mark.parametrize(
    ("target", "logit", "value", "slope"),
    [(0, -INF, 0, 0), (1, INF, 0, 0), (1, -INF, INF, -1), (0, INF, INF, 1),
     (1, -1e30, 1e30, -1), (1, NAN, NAN, NAN)],
)  # fmt: skip
def test_binary_logits_at_the_edges(target, logit, value, slope, mode):
    got, (gradient,) = modes.value_and_gradients(
        lambda z: binary([float(target)], z, from_logits=True),
        [tf.constant([logit], tf.float32)],
        mode,
    )
    assert_close(got, [value])
    assert_close(gradient, [slope])


@pytest.mark.parametrize(
    ("labels", "logits", "value", "slope"),
    [([1, 0], [-100, 100], 50, [-0.25, 0.25]), ([0, 0], [NAN, 1], 0, [0, 0]),
     ([0, 1], [-INF, 0], 0, [0, 0]), ([1, 0], [NAN, 1], NAN, [NAN, NAN])],
)  # fmt: skip
def test_rows_at_the_edges(labels, logits, value, slope, mode):
    got, (gradient,) = modes.value_and_gradients(
        lambda z: rows(tf.constant([labels], z.dtype), z, from_logits=True),
        [tf.constant([logits], tf.float32)],
        mode,
    )
    assert_close(got, [value])
    assert_close(gradient, [slope])


def test_generalized_from_logits_agrees_with_mpmath(mode, dtype):
    z = tf.constant([[1, -2, 3], [0, 12, -1], [-60, 1, 2]], dtype)
    value = modes.compile_for(
        mode, lambda z: generalized([2, 1, 0], z, from_logits=True)
    )(z)

    def truth(labels, row):
        total = mpmath.fsum(map(mpmath.exp, row))
        own = mpmath.fsum(y * mpmath.exp(v) for y, v in zip(labels, row, strict=True))
        return 2 * (1 - mpmath.sqrt(own / total))

    labels = tf.constant(np.eye(3)[[2, 1, 0]], dtype)
    wanted = oracle.exact_rows(truth, labels, z)
    # To the rounding of 1, as the cross entropy of indices.
    assert oracle.ulp_error(value, wanted, 1.0) <= budget(dtype, mode)


@pytest.mark.parametrize(
    ("label", "probs", "bounded", "value", "slope"),
    [(0, [0, 1], False, 2, [0, 0]), (1, [0, 0.25], False, 1, [0, -2]),
     (0, [-0.5, 0.5], False, NAN, [NAN, 0]), (2, [0.5, 0.5], True, NAN, [0, 0]),
     (0, [-0.5, 0.5], True, 2, None)],
)  # fmt: skip
def test_generalized_at_the_edges(label, probs, bounded, value, slope, mode):
    got, (gradient,) = modes.value_and_gradients(
        lambda p: generalized([label], p, bounded=bounded),
        [tf.constant([probs], tf.float32)],
        mode,
    )
    assert_close(got, [value])
    if slope is None:
        assert np.isfinite(gradient).all()
    else:
        assert_close(gradient, [slope])


@pytest.mark.parametrize("from_logits", [True, False], ids=["logits", "probabilities"])
@pytest.mark.parametrize("loss", [binary, rows], ids=["binary", "rows"])
def test_zero_upstream_gives_zero_gradients(loss, from_logits, mode):
    x = tf.constant([[NAN, 0.0, 1.0], [INF, -INF, 0.5], [0.0, 0.0, 0.0]])
    y = tf.constant([[0.0, 1.0, NAN], [NAN, NAN, NAN], [1.0, 0.0, 0.0]])
    _, gradients = modes.value_and_gradients(
        lambda y, x: loss(y, x, from_logits=from_logits, alpha=0.25),
        [y, x],
        mode,
        upstream=np.zeros([3] if loss is rows else [3, 3]),
    )
    for gradient in gradients:
        assert_close(gradient, np.zeros([3, 3]))


def test_the_second_gradient_agrees_with_mpmath(mode):
    z = tf.constant([-20.0, -1.0, 0.0, 3.0])
    got = modes.second_gradient(
        lambda z: binary(tf.ones_like(z), z, from_logits=True), z, mode
    )
    loss = truth_of_binary(2, 1)
    truth = oracle.exact(lambda v: mpmath.diff(loss, v, 2), z)
    # Terms of both signs, which cancel by a factor of up to 4 here.
    assert oracle.ulp_error(got, truth) <= 16


X = tf.constant([[0.5, 0.5]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: binary(X, X, gamma=-1), "`gamma` must be a number of at least 0.*=-1"),
        (lambda: rows(X, X, gamma="2"), "`gamma` must be a number of at least 0.*='2'"),
        (lambda: rows(X, X, gamma=INF), "`gamma` must be a number of at least 0.*=inf"),
        (lambda: binary(X, X, alpha=2), "`alpha` must be .* from 0 to 1.*alpha=2"),
        (lambda: rows(X, X, alpha=[1.0] * 3),
         r"`alpha` must be .* one .* each of the 2 classes.*alpha.shape=\(3,\)"),
        (lambda: generalized([0], X, q=1.0), "`q` must be between 0 and 1, both excl"),
        (lambda: generalized([0], X, q=True), "`q` must be a number from 0 to 1"),
    ],
)  # fmt: skip
def test_wrong_options_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
