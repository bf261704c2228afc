"""The angle of a spectrogram, with sound and without."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.support import keras_checks, modes
from tests.support.oracle import assert_close
from tfsafe import layers

pytestmark = pytest.mark.skipif(
    not hasattr(keras.layers, "STFTSpectrogram"), reason="Keras has no such layer"
)
SOUND = np.random.default_rng(0).normal(size=(2, 40, 2)).astype("float32")
OPTIONS = {"frame_length": 16, "frame_step": 8}


@pytest.mark.parametrize("name", ["angle", "magnitude"])
@pytest.mark.parametrize("expand_dims", [True, False])
def test_ordinary_values_are_those_of_keras(name, expand_dims, mode):
    options = {**OPTIONS, "expand_dims": expand_dims}
    ours, theirs = (
        package.STFTSpectrogram(name, **options) for package in (layers, keras.layers)
    )
    for layer in (ours, theirs):
        layer.build(SOUND.shape)
    got = modes.compile_for(mode, ours)(tf.constant(SOUND))
    assert_close(got, theirs(SOUND), scale=1.0)


def test_silence_has_angle_and_gradient_0(mode):
    layer = layers.STFTSpectrogram("angle", **OPTIONS)
    layer.build(SOUND.shape)
    silence = tf.zeros(SOUND.shape)
    value, (slope,) = modes.value_and_gradients(layer, [silence], mode)
    np.testing.assert_array_equal(value, tf.zeros_like(value))
    np.testing.assert_array_equal(slope, silence)


@pytest.mark.parametrize(
    "check",
    [
        keras_checks.round_trips_through_its_config,
        keras_checks.survives_a_keras_file,
        keras_checks.can_be_cloned_and_exported,
        keras_checks.knows_its_shape_before_it_runs,
    ],
    ids=keras_checks.name,
)
def test_it_is_at_home_in_keras(check, tmp_path):
    def make(**options):
        return layers.STFTSpectrogram("angle", **OPTIONS, **options)

    check(keras_checks.LayerCase(make, SOUND), tmp_path)
