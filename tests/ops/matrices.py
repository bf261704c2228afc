"""Matrices to try an op on, and derivatives by differences."""

import numpy as np
import pytest
import tensorflow as tf

from tests.support import modes
from tests.support.oracle import assert_close

# XLA takes up to ten seconds to compile a decomposition. The rows of the catalogue run
# under XLA every time.
MODES = ["eager", "graph", pytest.param("xla", marks=pytest.mark.slow)]


def example(dtype=tf.float64):
    # Positive definite, the second one with equal eigenvalues.
    matrices = [
        [[2.0, -0.5, 0.25], [-0.5, 1.0, 0.5], [0.25, 0.5, 1.5]],
        [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]],
    ]
    return tf.constant(matrices, dtype)


def assert_agree(got, truth, ulps=4, **options):
    """Compares as `assert_close`, in ulps of the largest number."""
    largest = np.abs(np.asarray(tf.cast(truth, tf.float64))).max()
    assert_close(got, truth, ulps, scale=largest, **options)


def assert_slope_is_difference(function, x, ulps):
    """Compares the gradient of the sum with central differences."""
    why = "the finite difference it is compared with"
    assert_agree(gradient(function, x), differences(function, x), ulps, why=why)


def gradient(function, x, upstream=None):
    return modes.value_and_gradients(function, [x], "eager", upstream)[1][0]


def weighted_slope(function):
    """Returns the gradient with weights on both sides, so that none cancel."""

    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = function(x)
            total = tf.reduce_sum(weights(value) * value)
        gradient = tape.gradient(total, x)
        return gradient * weights(gradient)

    return slope


def weights(x):
    weights = tf.cos(tf.cast(tf.range(tf.size(x)), x.dtype))
    return tf.reshape(weights, tf.shape(x)) + 0.1


def differences(function, x):
    """Returns the gradient of the sum by central differences."""
    numbers, step = x.numpy(), 1e-5
    result = np.zeros_like(numbers)
    for index in np.ndindex(*numbers.shape):
        sides = []
        for side in (step, -step):
            moved = numbers.copy()
            moved[index] += side
            sides.append(np.sum(function(tf.constant(moved))))
        result[index] = (sides[0] - sides[1]) / (2 * step)
    return result
