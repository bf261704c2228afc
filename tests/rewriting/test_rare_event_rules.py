"""Logarithms of rare chances and of differences are right, whatever their sign."""

import mpmath
import numpy as np
import pytest
import tensorflow as tf

from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe import stabilize

mp = mpmath.mp.clone()
mp.dps = 300
LOG_SOFTMAX = tf.nn.log_softmax


def _value_and_slopes(function, arrays, mode):
    args = [tf.constant(each) for each in arrays]
    return modes.value_and_gradients(stabilize(function), args, mode)


def _check(function, exact, arrays, mode):
    """Compares an elementwise function of rows with the exact one, and its slopes."""
    value, slopes = _value_and_slopes(function, arrays, mode)
    rows = list(zip(*np.asarray(arrays, np.float32).tolist(), strict=True))
    wanted = [float(exact(*map(mp.mpf, row))) for row in rows]
    assert_close(value, wanted, 10, why="the logarithm of a product near 1")
    for i, slope in enumerate(slopes):
        partial = tuple(int(i == k) for k in range(len(arrays)))
        steep = [
            float(mp.diff(exact, tuple(map(mp.mpf, row)), partial)) for row in rows
        ]
        assert_close(slope, steep)


SIGNS = {
    "a cube times what an exponential leaves": (
        lambda a, b: tf.math.log(a**3 * (1 - tf.exp(b))),
        lambda a, b: mp.log(a**3 * (1 - mp.exp(b))),
        [[1.0, -2.0, -1e-15, 1e-15], [-3.0, 1.0, 2.0, -2.0]],
    ),
    "two factors and a difference": (
        lambda a, b: tf.math.log(a * b * (tf.exp(b) - tf.exp(a))),
        lambda a, b: mp.log(a * b * (mp.exp(b) - mp.exp(a))),
        [[1.0, -2.0, -150.0], [2.0, -1.0, -120.0]],
    ),
    "a quotient of differences": (
        lambda a, b: tf.math.log((tf.exp(a) - tf.exp(-a)) / (1 - tf.exp(b))),
        lambda a, b: mp.log((mp.exp(a) - mp.exp(-a)) / (1 - mp.exp(b))),
        [[1.0, -2.0, -1e-5], [-3.0, 1.0, 200.0]],
    ),
}


@pytest.mark.parametrize("name", SIGNS)
def test_two_factors_below_0_have_the_logarithm_of_their_product(name, mode):
    _check(*SIGNS[name], mode)


def test_a_product_below_0_has_none(mode):
    value, _ = _value_and_slopes(
        SIGNS["a cube times what an exponential leaves"][0],
        [[-1.0, 2.0, -1e-15], [-3.0, 1.0, -2.0]],
        mode,
    )
    assert np.isnan(value.numpy()).all()


ROOTS = {
    "fourth root": (
        lambda x: ((tf.exp(x) - 1) / x) ** 0.25,
        lambda x: mp.power(mp.expm1(x) / x, 0.25) if x else mp.mpf(1),
        [[1.0, 200.0, -1e-9, 1e-20]],
    ),
    "root over a product": (
        lambda a, b: tf.sqrt(a * (tf.exp(b) - 1) / b),
        lambda a, b: mp.sqrt(a * mp.expm1(b) / b),
        [[1.0, 1e-30, 3.0], [1.0, 0.5, -1e-9]],
    ),
}


@pytest.mark.parametrize("name", ROOTS)
def test_a_root_is_that_of_the_limit_and_in_range(name, mode):
    _check(*ROOTS[name], mode)


@pytest.mark.parametrize("power", [2.0, 3.0, 2.5])
def test_no_slope_overflows_with_the_square_of_a_tiny_scale(power, mode):
    _check(
        lambda x, s: tf.math.log1p((x / tf.nn.softplus(s)) ** power),
        lambda x, s: mp.log1p((x / mp.log1p(mp.exp(s))) ** power),
        [[1.0, 1.0, 2.0], [-60.0, 1.0, -50.0]],
        mode,
    )


def _log_probs(logits):
    return LOG_SOFTMAX(logits)[:, 0]


# Nothing that is not linear in log p, or has a number in it, is taken for its mean.
NEAR_MISSES = {
    "a square": lambda x: -tf.reduce_mean(_log_probs(x) ** 2),
    "a number": lambda x: tf.reduce_mean(_log_probs(x) - 0.1),
    "two of them": lambda x: tf.reduce_mean(_log_probs(x) + _log_probs(-x)),
    "a product": lambda x: -tf.reduce_sum(_log_probs(x) * _log_probs(-x)),
    "a negative weight": lambda x: -tf.reduce_mean(-2.0 * _log_probs(x)),
}


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_other_exponents_of_log_probabilities_stay_as_they_are(name, mode):
    x = np.array([[1.0, 0.2, -1.0], [0.5, 1.5, 0.0]])

    def function(x):
        return tf.math.log(1 - tf.exp(NEAR_MISSES[name](x)))

    value, (slope,) = _value_and_slopes(function, [x.astype(np.float32)], mode)
    with tf.GradientTape() as tape:
        wide = tf.constant(x)
        tape.watch(wide)
        exact = function(wide)
    assert_close(value, exact)
    why = "a sum of slopes of both signs"
    assert_close(slope, tape.gradient(exact, wide), 13, why=why)


def test_a_tensor_of_any_sign_stays_within_its_sum(mode):
    value, (_, slope) = _value_and_slopes(
        lambda a, b: tf.math.log(b + 1 - tf.sigmoid(a)),
        [[50.0, 1.0], [60.0, -0.1]],
        mode,
    )
    left = 1 / (1 + np.exp(1.0)) - np.float32(0.1)
    assert_close(value, [np.log(60.0), np.log(left)])
    assert_close(slope, [1 / 60, 1 / left])
