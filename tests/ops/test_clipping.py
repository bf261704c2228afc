"""Clipping by the norm: right where TensorFlow's squares overflow."""

import mpmath
import numpy as np
import pytest
import tensorflow as tf

from tests.support import modes, oracle
from tfsafe.ops import _clipping


def ours(name, gradients, mode):
    clip = getattr(_clipping, name)
    return modes.compile_for(mode, lambda *g: clip(g, 1.0))(*gradients)


@pytest.mark.parametrize("name", ["clip_by_norm", "clip_by_global_norm"])
@pytest.mark.parametrize("size", [1.0, 1e38])
def test_clipping_agrees_with_exact_arithmetic(name, size, mode):
    rng = np.random.default_rng(0)
    gradient = tf.constant(size * rng.uniform(-3, 3, 9).astype("float32"))
    (got,) = ours(name, [gradient], mode)
    exact = [mpmath.mpf(float(value)) for value in gradient.numpy()]
    with mpmath.workdps(oracle.DIGITS):
        norm = mpmath.sqrt(mpmath.fsum(value**2 for value in exact))
        truth = np.array([value / max(norm, 1) for value in exact], object)
    assert oracle.ulp_error(got, truth) <= 3


def test_o109_a_vector_whose_square_overflows_keeps_its_direction(mode):
    x = tf.constant([1e20, 1e20])
    assert not np.any(tf.clip_by_norm(x, 1.0))
    np.testing.assert_allclose(
        ours("clip_by_norm", [x], mode)[0], [0.5**0.5] * 2, rtol=1e-6
    )


def test_o110_vectors_whose_squares_overflow_keep_their_direction(mode):
    x = tf.constant([1e20, 1e20])
    assert np.all(np.isnan(tf.clip_by_global_norm([x], 1.0)[0][0]))
    np.testing.assert_allclose(
        ours("clip_by_global_norm", [x], mode)[0], [0.5**0.5] * 2, rtol=1e-6
    )


def test_no_gradient_is_nothing_to_clip():
    assert _clipping.clip_by_norm([], 1.0) == []
    assert _clipping.clip_by_global_norm([], 1.0) == []


@pytest.mark.parametrize("name", ["clip_by_norm", "clip_by_global_norm"])
@pytest.mark.parametrize("clip_norm", [1.0, 1e-30])
def test_zeros_stay_zero_however_small_the_norm_to_clip_to(name, clip_norm, mode):
    clip = getattr(_clipping, name)
    step = modes.compile_for(mode, lambda *g: clip(g, clip_norm))
    for value in step(tf.zeros(3), tf.zeros((0, 2))):
        assert not np.any(value)
