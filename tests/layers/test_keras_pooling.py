"""Keras' pooling layers, with a mask and without a step."""

from functools import partial

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe import layers

NAN = float("nan")
X = np.random.default_rng(0).normal(size=(2, 5, 3)).astype("float32")
MASK = np.array([[True, False, True, True, False], [False] * 5])
GLOBAL = [layers.GlobalAveragePooling1D, layers.GlobalMaxPooling1D]
WINDOWS = [layers.AveragePooling1D, layers.MaxPooling1D]
REDUCE = dict(zip([*GLOBAL, *WINDOWS], [np.mean, np.max, np.mean, np.max], strict=True))


def _windows(reduce, size, strides, padding):
    """Returns what each window holds, in float64, and 7 where no step counts."""
    steps = X.shape[1]
    if padding == "same":
        count = -(-steps // strides)
        first = -(max((count - 1) * strides + size - steps, 0) // 2)
    else:
        count, first = (steps - size) // strides + 1, 0
    found = np.full((2, count, 3), 7.0)
    for row in range(2):
        for i in range(count):
            start = first + i * strides
            inside = [t for t in range(start, start + size) if 0 <= t < steps]
            kept = [t for t in inside if MASK[row, t]]
            if kept:
                found[row, i] = reduce(X[row, kept].astype("float64"), 0)
    return found


def _check_masked(layer, expected, mode):
    x = np.where(MASK[..., None], X, NAN).astype("float32")
    value, (slope,) = modes.value_and_gradients(
        lambda x: layer(x, mask=tf.constant(MASK)), [tf.constant(x)], mode
    )
    assert_close(value, expected, 7, why="means of numbers of both signs")
    assert np.isfinite(slope).all()
    assert not np.any(slope.numpy()[~MASK])
    assert np.any(slope.numpy()[0])


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("layer", GLOBAL)
def test_global_pooling_heeds_the_mask(layer, keepdims, mode):
    truth = REDUCE[layer](X[0, MASK[0]].astype("float64"), 0)
    expected = np.stack([truth, np.full(3, 7.0)])
    _check_masked(
        layer(keepdims=keepdims, empty_value=7),
        expected[:, None] if keepdims else expected,
        mode,
    )


@pytest.mark.parametrize(
    ("size", "strides", "padding"), [(2, 2, "valid"), (3, 1, "same"), (2, 3, "same")]
)
@pytest.mark.parametrize("layer", WINDOWS)
def test_windows_heed_the_mask(layer, size, strides, padding):
    made = layer(size, strides, padding, empty_value=7)
    expected = _windows(REDUCE[layer], size, strides, padding)
    _check_masked(made, expected, "graph")
    mask = made.compute_mask(X, tf.constant(MASK))
    np.testing.assert_array_equal(mask, (expected != 7).all(-1))
    assert made.compute_mask(X, None) is None


@pytest.mark.parametrize("layer", WINDOWS)
def test_windows_heed_the_mask_under_xla(layer):
    expected = _windows(REDUCE[layer], 2, 2, "valid")
    _check_masked(layer(2, empty_value=7), expected, "xla")


@pytest.mark.parametrize("layer", GLOBAL)
def test_channels_may_come_first(layer):
    last = layer()(tf.constant(X), mask=tf.constant(MASK))
    swapped = tf.constant(X.transpose(0, 2, 1))
    first = layer(data_format="channels_first", keepdims=True)
    got = first(swapped, mask=tf.constant(MASK))[..., 0]
    # A GPU sums along another axis in another order.
    assert_close(got, last)
    assert first.compute_output_shape((2, 3, 5)) == (2, 3, 1)
    assert_close(first(swapped)[..., 0], layer()(tf.constant(X)), 0.5)


@pytest.mark.parametrize("layer", [*GLOBAL, *(partial(layer, 2) for layer in WINDOWS)])
def test_without_a_mask_it_is_keras_own(layer):
    name = getattr(layer, "func", layer).__name__
    theirs = getattr(keras.layers, name)(*getattr(layer, "args", ()))
    np.testing.assert_array_equal(layer()(X), theirs(X))


@pytest.mark.parametrize("layer", GLOBAL)
def test_no_step_gives_the_empty_value(layer, mode):
    made = layer(empty_value=0.5)
    x = tf.zeros([2, 0, 3])
    value, (slope,) = modes.value_and_gradients(made, [x], mode)
    np.testing.assert_array_equal(value, np.full((2, 3), 0.5))
    assert slope.shape == (2, 0, 3)
    unknown = tf.TensorSpec([None, None, 3])
    traced = tf.function(made, input_signature=[unknown], autograph=False)
    np.testing.assert_array_equal(traced(x), np.full((2, 3), 0.5))
    assert_close(traced(X), REDUCE[layer](X, 1))


@pytest.mark.parametrize("layer", [*GLOBAL, partial(layers.AveragePooling1D, 5)])
def test_nan_that_counts_comes_out(layer, mode):
    x = np.where(np.arange(5)[:, None] == 2, NAN, X).astype("float32")
    run = modes.compile_for(mode, lambda x: layer()(x, mask=tf.constant(MASK)))
    found = run(tf.constant(x))
    assert np.isnan(found[0]).all()
    assert not np.any(found[1])


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_half_precision_is_summed_wide(half, mode):
    x = tf.fill([1, 3000, 1], tf.constant(60.0, half))
    mask = tf.ones([1, 3000], tf.bool)
    for layer in (
        layers.GlobalAveragePooling1D(dtype=half),
        layers.AveragePooling1D(3000, dtype=half),
    ):
        run = modes.compile_for(mode, lambda x, layer=layer: layer(x, mask=mask))
        assert run(x) == 60


def test_the_largest_of_ties_split_the_gradient():
    x = tf.constant([[[2.0], [2.0], [9.0]]])
    mask = tf.constant([[True, True, False]])
    layer = layers.GlobalMaxPooling1D()
    _, (slope,) = modes.value_and_gradients(lambda x: layer(x, mask=mask), [x], "eager")
    np.testing.assert_array_equal(slope[0, :, 0], [0.5, 0.5, 0])


def test_the_second_gradient_passes_an_empty_sequence(mode):
    x = tf.constant([[[3.0], [NAN]], [[NAN], [NAN]]])
    mask = tf.constant([[True, False], [False, False]])
    for layer in (layers.GlobalAveragePooling1D(), layers.GlobalMaxPooling1D()):
        got = modes.second_gradient(
            lambda x, pool=layer: pool(x, mask=mask) ** 2, x, mode
        )
        np.testing.assert_array_equal(got[..., 0], [[2, 0], [0, 0]])


def test_keras_short_names_are_ours_too():
    assert layers.GlobalAvgPool1D is layers.GlobalAveragePooling1D
    assert layers.GlobalMaxPool1D is layers.GlobalMaxPooling1D
    assert layers.AvgPool1D is layers.AveragePooling1D
    assert layers.MaxPool1D is layers.MaxPooling1D


@pytest.mark.parametrize("layer", [*GLOBAL, *(partial(w, 2) for w in WINDOWS)])
def test_an_empty_value_that_is_no_number_is_refused(layer):
    with pytest.raises(TypeError, match="`empty_value` must be a number"):
        layer(empty_value=None)
    config = layer(empty_value=0.5).get_config()
    assert config["empty_value"] == 0.5
    assert "axis" not in config


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
@pytest.mark.parametrize("masked", [True, False])
def test_the_mean_of_large_steps_does_not_overflow(data_format, masked, mode):
    x = tf.constant([[[3e38], [3e38], [1.0]]])
    if data_format == "channels_first":
        x = tf.transpose(x, [0, 2, 1])
    mask = tf.constant([[True, True, False]]) if masked else None
    layer = layers.GlobalAveragePooling1D(data_format)
    value, (slope,) = modes.value_and_gradients(
        lambda x: layer(x, mask=mask), [x], mode
    )
    assert_close(value, [[3e38 if masked else 2e38]])
    expected = [0.5, 0.5, 0.0] if masked else [1 / 3] * 3
    assert_close(np.ravel(slope), expected)
