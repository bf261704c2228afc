"""Cosine similarity between the inputs of a layer."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.support import modes, oracle
from tfsafe import layers

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize(
    ("axes", "shapes"),
    [
        (1, [(2, 5), (2, 5)]),
        (-1, [(2, 3, 4), (2, 5, 4)]),
        ((2, 1), [(2, 3, 4), (2, 4)]),
    ],
)
def test_ordinary_values_are_those_of_keras(axes, shapes, normalize, mode):
    inputs = [tf.constant(RANDOM.normal(size=s), tf.float32) for s in shapes]
    ours, theirs = (
        modes.compile_for(mode, package.Dot(axes, normalize=normalize))(inputs)
        for package in (layers, keras.layers)
    )
    oracle.assert_close(ours, theirs, scale=1.0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_a_vector_of_zeros_has_similarity_and_gradient_0(dtype, mode):
    layer = layers.Dot(1, normalize=True, dtype=dtype)
    x = tf.constant([[0.0, 0.0], [3e4, 4e4]], dtype)
    y = tf.constant([[1.0, 0.0], [1.0, 0.0]], dtype)
    value, (in_x, in_y) = modes.value_and_gradients(
        lambda x, y: layer([x, y]), [x, y], mode
    )
    assert value.dtype == x.dtype
    assert oracle.ulp_error(value, [[0.0], [0.6]]) <= 1
    np.testing.assert_array_equal(tf.cast(in_x[0], tf.float64), [0, 0])
    assert np.isfinite(tf.cast(in_y, tf.float64)).all()


def test_three_inputs_are_refused():
    with pytest.raises(ValueError, match="2 inputs"):
        layers.Dot(1, normalize=True)([tf.ones([1, 2])] * 3)
