import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.support import modes
from tfsafe import layers

NAN = float("nan")
X = np.array([[[1.0, 2.0], [NAN, NAN], [NAN, 3.0], [0.0, 0.0]]], "float32")


def test_steps_of_nan_are_masked(mode, dtype):
    layer = layers.Masking(NAN, dtype=dtype.name)
    value, (slope,) = modes.value_and_gradients(layer, [tf.cast(X, dtype)], mode)
    expected, ones = X.copy(), np.ones_like(X)
    expected[0, 1] = ones[0, 1] = 0
    np.testing.assert_array_equal(tf.cast(value, tf.float32), expected)
    np.testing.assert_array_equal(tf.cast(slope, tf.float32), ones)
    np.testing.assert_array_equal(layer.compute_mask(X), [[True, False, True, True]])


def test_the_layers_behind_get_the_mask():
    x = tf.constant(X[:, :2])
    pooled = layers.GlobalAveragePooling1D()(layers.Masking(NAN)(x))
    np.testing.assert_array_equal(pooled, [[1, 2]])


def test_integers_have_no_nan():
    x = np.array([[[1], [0]]])
    layer = layers.Masking(NAN, dtype="int32")
    np.testing.assert_array_equal(layer(x), x)
    np.testing.assert_array_equal(layer.compute_mask(x), [[True, True]])


@pytest.mark.parametrize("value", [0.0, 0, 7.5])
def test_any_other_value_is_keras_own(value):
    x = np.full((1, 2, 2), value, "float32")
    x[0, 0] = 1
    ours, theirs = layers.Masking(value), keras.layers.Masking(value)
    np.testing.assert_array_equal(ours(x), theirs(x))
    np.testing.assert_array_equal(ours.compute_mask(x), theirs.compute_mask(x))


def test_a_model_that_masks_nan_trains_and_is_saved(tmp_path):
    inputs = keras.Input((None, 2))
    x = layers.LSTM(3)(layers.Masking(NAN)(inputs))
    model = keras.Model(inputs, keras.layers.Dense(1)(x))
    model.compile("sgd", "mse")
    texts = np.concatenate([X[:, :2], np.full((1, 2, 2), NAN, "float32")])
    model.fit(texts, np.ones(2), verbose=0)
    assert all(np.isfinite(weight.numpy()).all() for weight in model.weights)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again(texts), model(texts))
    assert np.isnan(again.layers[1].mask_value)
