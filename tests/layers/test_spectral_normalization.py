"""Kernels of spectral norm 1, in the layers that have one."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.support import keras_checks, modes, oracle
from tests.support.oracle import assert_close
from tfsafe import layers

# Near rank 1, so that few iterations find the norm.
KERNEL = 3 + np.random.default_rng(0).normal(size=(3, 4)) / 2
X = np.random.default_rng(1).normal(size=(2, 3)).astype("float32")


def _wrapped(kernel, iterations=4, **options):
    dense = keras.layers.Dense(np.shape(kernel)[-1], use_bias=False, **options)
    layer = layers.SpectralNormalization(dense, iterations, dtype=options.get("dtype"))
    layer.build((None, len(kernel)))
    dense.kernel.assign(kernel)
    return layer


@pytest.mark.parametrize("factor", [1.0, 1e-30, 1e30])
def test_the_kernel_in_use_has_norm_1_and_the_variable_stays(factor, mode):
    layer = _wrapped(factor * KERNEL)
    before = layer.layer.kernel.numpy()
    call = modes.compile_for(mode, lambda x: (layer(x, training=True), layer(x)))
    true = X @ (KERNEL / np.linalg.norm(KERNEL, 2))
    for value in call(tf.constant(X)):
        assert_close(value, true, scale=0.25)
    np.testing.assert_array_equal(layer.layer.kernel.numpy(), before)


def test_training_alone_keeps_what_the_iteration_found(mode):
    layer = _wrapped(KERNEL, 1)
    start = layer.vector_u.numpy()
    layer(X)
    np.testing.assert_array_equal(layer.vector_u.numpy(), start)
    train = modes.compile_for(mode, lambda x: layer(x, training=True))
    for _ in range(5):
        train(tf.constant(X))
    _, _, right = np.linalg.svd(KERNEL)
    found = layer.vector_u.numpy()[0]
    assert_close(np.abs(found @ right[0]), 1, dtype="float32")


def test_a_kernel_of_zeros_can_leave_zero(mode):
    layer = _wrapped(np.zeros([3, 4]))
    start = layer.vector_u.numpy()

    def run(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(x, training=True))
        return tape.gradient(loss, layer.layer.kernel.value)

    slope = modes.compile_for(mode, run)(tf.constant(X))
    assert_close(slope, np.tile(X.sum(0)[:, None], 4))
    np.testing.assert_array_equal(layer.vector_u.numpy(), start)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_nonfinite_kernel_is_not_hidden_and_leaves_the_vector(bad, mode):
    layer = _wrapped(np.where(KERNEL[0, 0] == KERNEL, bad, KERNEL))
    start = layer.vector_u.numpy()
    value = modes.compile_for(mode, lambda x: layer(x, training=True))(tf.constant(X))
    assert np.isnan(value).any()
    np.testing.assert_array_equal(layer.vector_u.numpy(), start)


@pytest.mark.parametrize("dtype", ["float16", "mixed_bfloat16", "float64"])
def test_every_dtype_policy_is_kept(dtype, mode):
    layer = _wrapped(KERNEL, dtype=dtype)
    x = tf.cast(X, layer.compute_dtype)
    value = modes.compile_for(mode, layer)(x)
    assert value.dtype == x.dtype
    true = X @ (KERNEL / np.linalg.norm(KERNEL, 2))
    assert oracle.ulp_error(value, true, np.abs(true).max()) <= 8


@pytest.mark.parametrize(
    ("inner", "shape"),
    [
        (keras.layers.Conv2D(2, 2), (1, 4, 4, 3)),
        (keras.layers.Embedding(5, 3), (2, 3)),
        (keras.layers.Dense(3, trainable=False), (2, 3)),
    ],
    ids=["conv", "embedding", "frozen"],
)
def test_other_layers_with_a_kernel_are_wrapped_too(inner, shape):
    layer = layers.SpectralNormalization(inner, power_iterations=300)
    x = tf.ones(shape, tf.int32 if "Embed" in type(inner).__name__ else tf.float32)
    assert layer(x, training=True).dtype == tf.float32
    kernel, _ = layer.normalized_weights()
    matrix = np.reshape(kernel, [-1, kernel.shape[-1]])
    assert_close(np.linalg.norm(matrix, 2), 1)


def test_the_output_has_the_dtype_of_the_wrapper_not_of_the_wrapped_layer():
    dense = keras.layers.Dense(3, dtype="float32")
    layer = layers.SpectralNormalization(dense, dtype="mixed_float16")
    assert layer(X).dtype == layer.compute_dtype == tf.float16


class _Counting(keras.layers.Dense):
    """A dense layer that counts its calls and adds a loss."""

    def build(self, input_shape):
        super().build(input_shape)
        self.calls = self.add_weight(shape=(), trainable=False, initializer="zeros")

    def call(self, inputs, training=None):
        self.calls.assign_add(1)
        self.add_loss(keras.ops.sum(inputs))
        return super().call(inputs)


def test_what_the_wrapped_layer_counts_and_adds_is_kept(mode):
    # One step of the power iteration is near its end for these weights.
    keras.utils.set_random_seed(0)
    inner = _Counting(2, kernel_regularizer="l2", activity_regularizer="l2")
    layer = layers.SpectralNormalization(inner, power_iterations=8)
    layer.build((2, 3))
    start = inner.calls.numpy()

    def run(x):
        layer(x, training=True)
        return tf.add_n(layer.losses)

    total = modes.compile_for(mode, run)(tf.constant(X))
    assert inner.calls.numpy() == start + 1
    plain = _Counting(2, activity_regularizer="l2")
    plain.build((2, 3))
    plain.kernel.assign(layer.normalized_weights()[0])
    plain(X)
    decay = 0.01 * np.square(inner.kernel.numpy()).sum()
    assert_close(total, sum(plain.losses) + decay)


def test_a_layer_without_kernel_is_refused_by_keras():
    with pytest.raises(ValueError, match="has no attribute 'kernel'"):
        layers.SpectralNormalization(keras.layers.ReLU()).build((2, 3))


@pytest.mark.parametrize(
    "check",
    [c for c in keras_checks.LAYER_CHECKS if c is not keras_checks.passes_masks_on],
    ids=keras_checks.name,
)
def test_it_is_at_home_in_keras(check, tmp_path):
    def make(**options):
        # Of rank 1: the first power iteration finds the norm.
        dense = keras.layers.Dense(4, kernel_initializer="ones", **options)
        return layers.SpectralNormalization(dense, **options)

    check(keras_checks.LayerCase(make, X + 3), tmp_path)
