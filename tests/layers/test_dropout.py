import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.support import modes
from tfsafe import layers

NAMES = ["AlphaDropout", "Dropout", "GaussianDropout", "SpatialDropout1D"]


@pytest.mark.parametrize("name", NAMES)
def test_a_rate_of_1_leaves_nothing(name, mode, dtype):
    layer = getattr(layers, name)(1.0, dtype=dtype.name)
    x = tf.constant([[[1.0, -2.0]]], dtype)
    value, (slope,) = modes.value_and_gradients(
        lambda x: layer(x, training=True) + 0 * x, [x], mode
    )
    assert value.dtype == dtype
    assert not np.any(value)
    assert not np.any(slope)
    np.testing.assert_array_equal(layer(x), x)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rate", [0.0, 0.5, 0.999])
def test_any_other_rate_is_keras_own(name, rate):
    ours, theirs = (
        getattr(package, name)(rate, seed=3) for package in (layers, keras.layers)
    )
    x = np.arange(6.0, dtype="float32").reshape(1, 3, 2)
    np.testing.assert_array_equal(ours(x, training=True), theirs(x, training=True))
    np.testing.assert_array_equal(ours(x), x)


@pytest.mark.parametrize("axes", [2, 3])
def test_whole_channels_may_be_dropped(axes):
    layer = getattr(layers, f"SpatialDropout{axes}D")
    x = np.ones((1, *[2] * axes, 3), "float32")
    assert not np.any(layer(1.0)(x, training=True))
    found = layer(0.5, seed=1)(x, training=True).numpy().reshape(-1, 3)
    np.testing.assert_array_equal(found, found[:1].repeat(len(found), 0))


def test_the_limit_of_alpha_dropout_is_0():
    # At a rate of 1 - 2**-20, all but one in a million elements are dropped.
    layer = layers.AlphaDropout(1 - 2.0**-20, seed=1)
    found = layer(tf.ones([1000]), training=True)
    assert 0 < np.abs(np.median(found)) < 2e-3


@pytest.mark.parametrize("rate", [-0.1, 1.5])
def test_a_rate_out_of_range_is_refused(rate):
    with pytest.raises(ValueError, match=f"`rate`.*Received: rate={rate}"):
        layers.GaussianDropout(rate)
