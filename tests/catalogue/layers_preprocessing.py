"""Layers that prepare data: statistics, bins, spectrograms."""

import warnings

import keras
import numpy as np
import tensorflow as tf

from tests.catalogue.rows import FINITE, Row, formula
from tests.support import modes
from tests.support.oracle import ulp_error
from tfsafe import layers


def _raw_features():
    """A constant, a feature with one NaN, and time stamps."""
    random = np.random.default_rng(0)
    stamps = 1.7e9 + 1000 * random.random(1000)
    features = np.stack([np.full(1000, 3.3), random.normal(size=1000), stamps], 1)
    features[5, 1] = np.nan
    return features.astype("float32")


def _normalizes_raw_features(package):
    def is_right(mode):
        x = _raw_features()
        layer = package.Normalization()
        with warnings.catch_warnings():
            # Ours warns of the NaN.
            warnings.simplefilter("ignore")
            layer.adapt(x)
        exact = x.astype("float64")
        deviation = np.nanstd(exact, 0)
        deviation[0] = 1
        true = (exact - np.nanmean(exact, 0)) / deviation
        true[:, 0] = 0
        got = modes.compile_for(mode, layer)(tf.constant(x))
        return ulp_error(got, true, scale=1.0) <= 4

    return is_right


def _normalizes_large_features_in_half_precision(package):
    def is_right(mode):
        x = np.array([[1e5 - 1e3], [1e5 + 1e3]], "float32")
        layer = package.Normalization(dtype="mixed_float16")
        layer.adapt(x)
        got = modes.compile_for(mode, layer)(tf.constant(x))
        return np.array_equal(np.ravel(got), [-1, 1])

    return is_right


def _sees_that_a_number_is_missing(package):
    layer = package.Discretization(bin_boundaries=[0.0, 1.0])

    def is_right(mode):
        got = modes.compile_for(mode, layer)(tf.constant([[np.nan, 0.5]]))
        return np.array_equal(got, [[-1, 1]])

    return is_right


ROWS = [
    Row(
        "Y55",
        "`Normalization.adapt` on a constant, a NaN and time stamps",
        "layers.Normalization",
        _normalizes_raw_features(keras.layers),
        _normalizes_raw_features(layers),
    ),
    Row(
        "Y56",
        "`Normalization` of a mean of 1e5 under mixed_float16",
        "layers.Normalization",
        _normalizes_large_features_in_half_precision(keras.layers),
        _normalizes_large_features_in_half_precision(layers),
    ),
    Row(
        "Y64",
        "`Discretization` of NaN",
        "layers.Discretization",
        _sees_that_a_number_is_missing(keras.layers),
        _sees_that_a_number_is_missing(layers),
    ),
]

# Keras 3.3 does not have the layer.
if hasattr(keras.layers, "STFTSpectrogram"):

    def _angle(package):
        layer = package.STFTSpectrogram(
            mode="angle", frame_length=16, frame_step=8, fft_length=16
        )
        layer.build((1, 64, 1))
        return layer

    ROWS.append(
        formula(
            "Y42",
            "`STFTSpectrogram(mode='angle')` of silence",
            "layers.STFTSpectrogram",
            _angle(keras.layers),
            _angle(layers),
            [np.zeros([1, 64, 1])],
            0,
            [FINITE],
        )
    )
