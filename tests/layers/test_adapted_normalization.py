"""Normalisation of features as they come: statistics, gaps, constants, containers."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.support import modes, oracle
from tests.support.oracle import assert_close
from tfsafe import layers
from tfsafe.ops.kernels.statistics import running_statistics

RANDOM = np.random.default_rng(0)
STAMPS = 1.7e9 + 1000 * RANDOM.random(300)
X = np.stack([RANDOM.normal(size=300), STAMPS, np.full(300, 3.3)], 1)
WIDE = np.longdouble(X)
ROUNDED_MEANS = "the means of batches, of 1.7e9, are rounded to 2e-7"
WITH_GAPS = X.copy()
WITH_GAPS[[3, 7], 0], WITH_GAPS[5, 1] = np.nan, np.inf


def _true(x, data=None):
    data = np.asarray(x if data is None else data, np.float64)
    data = np.where(np.isfinite(data), data, np.nan)
    deviation = np.nanstd(data, 0)
    constant = np.nanmax(data, 0) == np.nanmin(data, 0)
    mean = np.where(constant, np.nanmax(data, 0), np.nanmean(data, 0))
    return (np.asarray(x, np.float64) - mean) / np.where(constant, 1, deviation)


class _Batches(keras.utils.PyDataset):
    def __len__(self):
        return 3

    def __getitem__(self, index):
        return X[100 * index : 100 * (index + 1)], None


@pytest.mark.parametrize(
    "data",
    [
        X,
        tf.constant(X),
        tf.data.Dataset.from_tensor_slices(X),
        tf.data.Dataset.from_tensor_slices(X).batch(64),
        tf.data.Dataset.from_tensor_slices((X, X[:, 0])).batch(64),
        _Batches(),
        [X[:100], X[100:]],
        (batch for batch in np.split(X, 3)),
    ],
    ids=["numpy", "tensor", "rows", "batches", "pairs", "py", "list", "generator"],
)
def test_every_container_gives_the_statistics_in_float64(data):
    layer = layers.Normalization()
    layer.adapt(data)
    assert_close(layer.adapt_mean, WIDE.mean(0), 25, why="300 numbers of both signs")
    assert_close(
        layer.adapt_variance[:2], WIDE.var(0)[:2], 1_350_000, why=ROUNDED_MEANS
    )
    assert layer.adapt_variance[2] == 0
    assert_close(layer(X), _true(X), 0.75, scale=1.0)
    assert_close(layer.mean[0], X.mean(0), 0.5)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_time_stamps_keep_the_digits_that_they_have(dtype, mode):
    x = X[:, 1:2].astype(dtype)
    layer = layers.Normalization()
    layer.adapt(x)
    got = modes.compile_for(mode, layer)(tf.constant(x))
    assert got.dtype == tf.float32
    assert_close(got, _true(x))


def test_gaps_are_skipped_feature_by_feature_with_a_warning():
    layer = layers.Normalization()
    with pytest.warns(UserWarning, match=r"3 of 900 values.*2 in feature 0, 1 in f"):
        layer.adapt(WITH_GAPS)
    got = layer(WITH_GAPS)
    assert_close(got, _true(WITH_GAPS))
    assert np.isnan(got[3, 0])
    assert np.isposinf(got[5, 1])


def test_gaps_can_be_refused():
    layer = layers.Normalization()
    with pytest.raises(ValueError, match=r"3 of 900 values.*Fill them in"):
        layer.adapt(WITH_GAPS, policy="raise")
    layer.adapt(X, policy="raise")
    with pytest.raises(ValueError, match="`policy` must be one of 'skip'"):
        layer.adapt(X, policy="drop")


def test_a_scalar_statistic_names_no_feature():
    layer = layers.Normalization(axis=None)
    with pytest.warns(UserWarning, match=r"1 of 4 values are NaN or infinite\. The"):
        layer.adapt(np.array([1.0, np.nan, 3.0, 5.0]))
    assert_close(layer.adapt_mean, 3.0)
    assert_close(layer(np.array([3.0, 5.0])), [0, 1.5**0.5])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            np.array([[1.0, np.nan], [2.0, np.nan]]),
            r"none in 1 of 2 .* at index \(1,\)",
        ),
        (np.array([[np.inf]]), "must have a finite value"),
        ([], "at least one batch.*empty iterable"),
        (np.zeros([0, 2]), "must have a finite value"),
    ],
)
def test_data_that_say_nothing_of_a_feature_are_refused(data, message):
    with pytest.raises(ValueError, match=message):
        layers.Normalization().adapt(data)


def test_other_features_than_those_built_for_are_refused():
    layer = layers.Normalization()
    layer.adapt(X)
    with pytest.raises(
        ValueError, match=r"batch of shape \(4, 2\).*built for \(None, 3\)"
    ):
        layer.adapt(np.zeros([4, 2]))
    with pytest.raises(TypeError, match=r"must be a NumPy array.*Received: int"):
        layer.adapt(3)
    with pytest.raises(TypeError, match=r"`\.shape`\. Received: a batch of type int"):
        layers.Normalization().adapt([3])
    with pytest.raises(ValueError, match="an incompatible shape"):
        layers.Normalization().adapt([np.ones([2, 4]), np.ones([2, 6])])
    with pytest.raises(ValueError, match="made with `mean` and `variance`"):
        layers.Normalization(mean=0.0, variance=1.0).adapt(X)


def test_a_constant_feature_is_centred_and_not_scaled(mode):
    layer = layers.Normalization()
    layer.adapt(X)
    got = modes.compile_for(mode, layer)(tf.constant([[0.0, 0, 3.3], [0, 0, 3.31]]))
    assert_close(got[:, 2], [0, 0.01], 1, scale=3.3)


def test_a_tiny_spread_is_a_spread(mode):
    x = np.array([[1e-12], [3e-12]], "float32")
    layer = layers.Normalization()
    layer.adapt(x)
    got = modes.compile_for(mode, layer)(tf.constant(x))
    assert_close(got, [[-1], [1]])


@pytest.mark.parametrize("policy", ["mixed_float16", "float16", "mixed_bfloat16"])
def test_half_precision_is_normalised_in_float32(policy, mode):
    x = 1e5 + np.arange(8, dtype="float32").reshape(8, 1)
    adapted = layers.Normalization(dtype=policy)
    adapted.adapt(x)
    given = layers.Normalization(mean=[1e5 + 3.5], variance=[5.25], dtype=policy)
    given.build((None, 1))
    for layer in (adapted, given):
        got = modes.compile_for(mode, layer)(tf.constant(x))
        assert got.dtype.name == layer.compute_dtype
        assert oracle.ulp_error(got, _true(x)) <= 0.51


def test_a_float64_policy_computes_in_float64(mode):
    x = X.astype("float32")
    layer = layers.Normalization(dtype="float64")
    layer.adapt(x)
    got = modes.compile_for(mode, layer)(tf.constant(x))
    assert got.dtype == tf.float64
    assert_close(got, _true(x))


def test_the_inverse_gives_back_what_went_in(mode):
    forth, back = layers.Normalization(), layers.Normalization(invert=True)
    forth.adapt(X)
    back.adapt(X)
    run = modes.compile_for(mode, lambda x: back(forth(x)))
    assert_close(run(tf.constant(X)), X.astype("float32"), 1.5)


@pytest.mark.parametrize(
    ("axis", "value"),
    [(-1, [1.0, 2.0, 3.0]), (-1, [[1.0, 2.0, 3.0]][0]), ((1, 2), 2.0)],
)
def test_given_statistics_lie_along_the_kept_axes(axis, value):
    shape = (2, 2, 3)
    options = {"mean": value, "variance": value}
    if np.ndim(value) == 0 and not hasattr(keras.layers, "RMSNormalization"):
        # Keras 3.3 does not spread a number over several features.
        options = {key: np.full([2, 3], value).tolist() for key in options}
    x = RANDOM.normal(size=shape)
    got = layers.Normalization(axis, **options)(x)
    assert_close(got, (x - value) / np.sqrt(value))


def test_several_axes_have_statistics_of_their_own():
    x = RANDOM.normal(size=(50, 2, 3))
    layer = layers.Normalization(axis=(1, 2))
    layer.adapt(x)
    assert_close(layer.adapt_mean, x.mean(0))
    assert_close(layer(x), _true(x))


def test_the_statistics_survive_a_file_a_clone_and_an_export(tmp_path):
    layer = layers.Normalization()
    layer.adapt(X)
    model = keras.Sequential([keras.Input((3,)), layer])
    path = str(tmp_path / "model.keras")
    model.save(path)
    again = keras.saving.load_model(path)
    assert type(again.layers[-1]) is layers.Normalization
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    model.export(str(tmp_path / "exported"))
    exported = tf.saved_model.load(str(tmp_path / "exported"))
    x = X.astype("float32")
    for other in (again, clone, exported.serve):
        np.testing.assert_array_equal(other(x), model(x))


def test_weights_of_keras_fit():
    theirs = keras.layers.Normalization()
    theirs.adapt(X[:, :1])
    ours = layers.Normalization()
    ours.build((None, 1))
    ours.set_weights(theirs.get_weights())
    x = X[:, :1].astype("float32")
    assert_close(ours(x), theirs(x))


def test_a_pipeline_can_map_it():
    layer = layers.Normalization()
    layer.adapt(X)
    (batch,) = tf.data.Dataset.from_tensor_slices(X).batch(300).map(layer)
    assert_close(batch, _true(X))


def test_adapting_again_reaches_a_function_that_is_traced(mode):
    layer = layers.Normalization()
    layer.adapt(X)
    run = modes.compile_for(mode, layer)
    run(tf.constant(X))
    layer.adapt(2 * X)
    assert_close(run(tf.constant(2 * X)), _true(2 * X))


def test_a_single_axis_of_features_is_one_row_of_them():
    layer = layers.Normalization()
    layer.adapt([np.array([1.0, 5.0]), np.array([3.0, 5.0])])
    np.testing.assert_array_equal(layer(np.array([3.0, 6.0])), [1, 1])


def test_an_unbuilt_layer_has_nothing_to_finish():
    layer = layers.Normalization()
    layer.finalize_state()
    assert getattr(layer, "mean", None) is None


def test_chunks_and_batches_add_up_to_the_whole(monkeypatch):
    monkeypatch.setattr(running_statistics, "_CHUNK", 100)
    whole, parts = running_statistics.Moments([1]), running_statistics.Moments([1])
    whole.update(X)
    for batch in np.split(X, [1, 1, 250]):
        parts.update(batch)
    for moments in (whole, parts):
        assert_close(moments.mean, WIDE.mean(0), 25, why="300 numbers of both signs")
        assert_close(
            moments.variance[:2], WIDE.var(0)[:2], 1_350_000, why=ROUNDED_MEANS
        )
        np.testing.assert_array_equal(moments.count, [300, 300, 300])
