"""Bins, encodings and hashes of numbers that may be missing."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.support import modes
from tfsafe import layers

NAN = float("nan")


def _discretization(package, output_mode="int", **options):
    return package.Discretization(
        bin_boundaries=[0.0, 1.0], output_mode=output_mode, **options
    )


@pytest.mark.parametrize(
    ("output_mode", "true"),
    [
        ("int", [[0, -1, 2], [-1, -1, 1]]),
        (
            "one_hot",
            [[[1, 0, 0], [0, 0, 0], [0, 0, 1]], [[0, 0, 0], [0, 0, 0], [0, 1, 0]]],
        ),
        ("multi_hot", [[1, 0, 1], [0, 1, 0]]),
    ],
)
def test_nan_falls_into_no_bin(output_mode, true, mode):
    layer = _discretization(layers, output_mode)
    x = tf.constant([[-9.0, NAN, 7.0], [NAN, NAN, 0.5]])
    got = modes.compile_for(mode, layer)(x)
    np.testing.assert_array_equal(got, true)


@pytest.mark.parametrize("output_mode", ["multi_hot", "count", "one_hot"])
def test_nan_is_no_category(output_mode, mode):
    layer = layers.CategoryEncoding(3, output_mode=output_mode)
    x = tf.constant([[0.0, NAN, 2.0, 2.0], [NAN, 1.0, 1.0, NAN]])
    got = modes.compile_for(mode, layer)(x)
    one_hot = tf.one_hot([[0, -1, 2, 2], [-1, 1, 1, -1]], 3)
    if output_mode != "one_hot":
        reduce = tf.reduce_sum if output_mode == "count" else tf.reduce_max
        one_hot = reduce(one_hot, 1)
    np.testing.assert_array_equal(got, one_hot)


@pytest.mark.parametrize("output_mode", ["multi_hot", "count", "one_hot"])
def test_numbers_are_encoded_as_by_keras(output_mode):
    x = np.array([[0.0, 2.0], [1.0, 1.0]], "float32")
    for inputs in (x, x[:, :1], x.astype("int32"), x[0]):
        ours, theirs = (
            package.CategoryEncoding(3, output_mode=output_mode)(inputs)
            for package in (layers, keras.layers)
        )
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("output_mode", ["int", "multi_hot", "one_hot"])
def test_numbers_fall_into_the_bins_of_keras(output_mode):
    x = np.array([[-np.inf, 0.0, 0.5], [1.0, np.inf, -0.5]], "float32")
    for inputs in (x, x[:, :1]):
        ours, theirs = (
            _discretization(package, output_mode)(inputs)
            for package in (layers, keras.layers)
        )
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype


def test_integers_need_no_suggestion():
    got = _discretization(layers)(tf.constant([[-1, 0, 1]], tf.int32))
    np.testing.assert_array_equal(got, [[0, 1, 2]])


@pytest.mark.skipif(
    not hasattr(keras.layers, "RMSNormalization"), reason="Keras 3.3 refuses them"
)
def test_sparse_categories_are_encoded_by_keras():
    x = tf.sparse.from_dense([[1, 0, 2]])
    ours, theirs = (
        package.CategoryEncoding(3)(x) for package in (layers, keras.layers)
    )
    np.testing.assert_array_equal(ours, theirs)


def test_weights_of_missing_categories_do_not_count():
    layer = layers.CategoryEncoding(2, output_mode="count")
    x = tf.constant([[0.0, NAN, 1.0]])
    got = layer(x, count_weights=tf.constant([[0.5, 7.0, 0.25]]))
    np.testing.assert_array_equal(got, [[0.5, 0.25]])


def test_sparse_results_leave_nan_out_as_well():
    layer = layers.CategoryEncoding(3, output_mode="count", sparse=True)
    x = tf.constant([[0.0, NAN, 2.0]])
    got = layer(x)
    assert isinstance(got, tf.SparseTensor)
    np.testing.assert_array_equal(tf.sparse.to_dense(got), [[1, 0, 1]])


def test_adapt_learns_no_boundary_from_nan():
    x = np.arange(100.0)
    with_gaps = np.concatenate([x, np.full(50, NAN)])
    boundaries = []
    for data in (x, with_gaps, tf.data.Dataset.from_tensor_slices(with_gaps).batch(30)):
        layer = layers.Discretization(num_bins=4)
        layer.adapt(data)
        boundaries.append(layer.bin_boundaries)
        assert np.isfinite(layer.bin_boundaries).all()
    assert boundaries[0] == boundaries[1]


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_nan_is_hashed_as_itself_or_as_masked(mode):
    x = tf.constant([[NAN, 1.0, -1.0]])
    plain, masked = layers.Hashing(50), layers.Hashing(50, mask_value=-1)
    got = modes.compile_for(mode, plain)(x)
    np.testing.assert_array_equal(got[0, 0], plain(tf.constant(["nan"]))[0])
    np.testing.assert_array_equal(got[:, 1:], keras.layers.Hashing(50)(x[:, 1:]))
    got = modes.compile_for(mode, masked)(x)
    np.testing.assert_array_equal(got[0, 0], 0)
    np.testing.assert_array_equal(
        got[:, 1:], keras.layers.Hashing(50, mask_value=-1)(x[:, 1:])
    )


def test_what_is_not_a_dense_number_is_hashed_by_keras():
    words = tf.constant([["a", "b"]])
    ours, theirs = layers.Hashing(50), keras.layers.Hashing(50)
    np.testing.assert_array_equal(ours(words), theirs(words))
    sparse = tf.sparse.from_dense([[1, 0, 2]])
    got, true = ours(sparse), theirs(sparse)
    np.testing.assert_array_equal(got.values, true.values)


@pytest.mark.parametrize(
    "layer",
    [
        _discretization(layers),
        layers.CategoryEncoding(3),
        layers.Hashing(7, mask_value=0),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_they_survive_their_config_and_a_model(layer, tmp_path):
    again = keras.layers.deserialize(keras.layers.serialize(layer))
    assert type(again) is type(layer)
    assert again.get_config() == layer.get_config()
    inputs = keras.Input((2,))
    model = keras.Model(inputs, layer(inputs))
    path = str(tmp_path / "model.keras")
    model.save(path)
    x = np.array([[NAN, 1.0]], "float32")
    np.testing.assert_array_equal(keras.saving.load_model(path)(x), model(x))
