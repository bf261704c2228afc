"""Normalisation of a sample by its own values, in the shapes that Keras knows."""

import inspect
import warnings
from functools import partial

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.support import keras_checks, modes, oracle
from tests.support.oracle import assert_close
from tfsafe import layers

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(2.0, 3.0, (3, 5, 6, 4)).astype("float32")
HAS_RMS = hasattr(keras.layers, "RMSNormalization")
needs_rms = pytest.mark.skipif(not HAS_RMS, reason="Keras has no such layer")

SAME = [
    ("LayerNormalization", {}),
    ("LayerNormalization", {"axis": [1, 3], "center": False}),
    ("LayerNormalization", {"axis": 2, "scale": False}),
    ("GroupNormalization", {"groups": 2}),
    ("GroupNormalization", {"groups": 3, "axis": 2, "center": False}),
    ("GroupNormalization", {"groups": -1, "axis": 1, "scale": False}),
    ("UnitNormalization", {"axis": [1, 2]}),
    pytest.param("RMSNormalization", {}, marks=needs_rms),
]


@pytest.mark.parametrize(("name", "options"), SAME)
def test_ordinary_values_and_gradients_are_those_of_keras(name, options, mode):
    results = []
    for package, dtype in ((layers, "float32"), (keras.layers, "float64")):
        layer = getattr(package, name)(dtype=dtype, **options)
        layer.build(X.shape)
        weights = np.random.default_rng(1)
        layer.set_weights([
            weights.normal(size=w.shape).astype("float32") for w in layer.get_weights()
        ])

        def run(x, layer=layer):
            with tf.GradientTape() as tape:
                tape.watch(x)
                value = layer(x)
            sources = [x, *(weight.value for weight in layer.trainable_variables)]
            upstream = tf.constant(np.sin(3 * X), x.dtype)
            return value, tape.gradient(value, sources, upstream)

        value, gradients = modes.compile_for(mode, run)(tf.constant(X, dtype))
        results.append([value, *gradients])
    for ours, theirs in zip(*results, strict=True):
        assert_close(
            ours, theirs, 8, why="sums of 90 terms", scale=np.abs(theirs).max()
        )


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("LayerNormalization", {}),
        ("GroupNormalization", {"groups": 1}),
        pytest.param("RMSNormalization", {}, marks=needs_rms),
        ("UnitNormalization", {}),
    ],
)
def test_a_row_that_nothing_asks_for_costs_no_weight_its_gradient(name, options, mode):
    layer = getattr(layers, name)(**options)
    layer.build((2, 4))
    x = tf.constant([[1.0, 2.0, 4.0, 8.0], [1.0, np.nan, 4.0, np.inf]])

    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(tf.square(layer(x)[0, :2]))
        weights = [weight.value for weight in layer.trainable_variables]
        return tape.gradient(loss, [x, *weights])

    in_x, *in_weights = modes.compile_for(mode, run)(x)
    np.testing.assert_array_equal(in_x[1], np.zeros(4))
    assert np.abs(in_x[0]).max() > 0
    for gradient in in_weights:
        assert np.isfinite(gradient).all()


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16", "float16"])
@pytest.mark.parametrize("name", ["LayerNormalization", "GroupNormalization"])
def test_half_precision_is_normalised_in_float32(name, policy, mode):
    options = {"groups": 1} if name == "GroupNormalization" else {}
    layer = getattr(layers, name)(dtype=policy, **options)
    layer.build((1, 2))
    x = tf.constant([[6e4, -6e4]], layer.compute_dtype)
    value = modes.compile_for(mode, layer)(x)
    assert value.dtype.name == layer.compute_dtype
    np.testing.assert_array_equal(tf.cast(value, tf.float32), [[1, -1]])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rms_scaling_divides_by_the_root_mean_square(dtype, mode):
    layer = layers.LayerNormalization(rms_scaling=True, dtype=dtype)
    layer.build((2, 3))
    assert [weight.path.split("/")[-1] for weight in layer.weights] == ["gamma"]
    x = tf.constant([[1.0, -2.0, 2.0], [1e20, 1e20, 1e20]], dtype)
    value = modes.compile_for(mode, layer)(x)
    root = (3 + layer.epsilon) ** 0.5
    truth = [[1 / root, -2 / root, 2 / root], [1.0, 1.0, 1.0]]
    assert oracle.ulp_error(value, truth) <= 4


def test_rms_scaling_neither_warns_nor_gets_lost():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer = layers.LayerNormalization(-1, 1e-6, rms_scaling=True)
    assert layer.epsilon == 1e-6
    assert layer.get_config()["rms_scaling"] is True
    assert layers.LayerNormalization.from_config(layer.get_config()).rms_scaling


@pytest.mark.parametrize("name", ["LayerNormalization", "GroupNormalization"])
def test_a_large_mean_costs_nothing_in_any_mode(name, mode):
    x = np.float32(1e6) + np.arange(8, dtype="float32").reshape(1, 8) / 8
    options = {"groups": 1} if name == "GroupNormalization" else {}
    layer = getattr(layers, name)(epsilon=1e-12, **options)
    layer.build(x.shape)
    value = modes.compile_for(mode, layer)(tf.constant(x))
    centred = x.astype("float64") - x.astype("float64").mean()
    assert_close(value, centred / centred.std())


def test_unknown_sizes_stay_unknown():
    for shape, axis in (((None, None, 4), -1), ((None, 4, None), 1)):
        inputs = keras.Input(shape)
        outputs = layers.GroupNormalization(2, axis=axis if axis == -1 else 2)(inputs)
        assert outputs.shape == (None, *shape)
        model = keras.Model(inputs, outputs)
        sizes = [2, *(3 if size is None else size for size in shape)]
        value = model(tf.ones(sizes))
        assert_close(value, np.zeros(sizes), 0.5)


def test_integers_are_divided_by_their_norm():
    value = layers.UnitNormalization()(tf.constant([[3, 4], [0, 0]]))
    assert_close(value, [[0.6, 0.8], [0, 0]])


@needs_rms
def test_rms_normalization_knows_other_axes_than_the_last():
    layer = layers.RMSNormalization(axis=1)
    value = layer(tf.constant([[[3.0], [4.0]], [[0.0], [0.0]]]))
    assert layer.scale.shape == (2,)
    root = np.sqrt(12.5)
    assert_close(value, [[[3 / root], [4 / root]], [[0], [0]]])


@needs_rms
@pytest.mark.parametrize(
    "check",
    [c for c in keras_checks.LAYER_CHECKS[:7] if c is not keras_checks.passes_masks_on],
    ids=keras_checks.name,
)
def test_rms_normalization_is_at_home_in_keras(check, tmp_path):
    case = keras_checks.LayerCase(layers.RMSNormalization, X[0])
    check(case, tmp_path)


@pytest.mark.skipif(HAS_RMS, reason="Keras has the layer")
def test_a_layer_that_keras_lacks_says_so():
    with pytest.raises(ImportError, match="`RMSNormalization` needs a later Keras"):
        layers.RMSNormalization()


def test_the_signatures_are_those_of_keras():
    for name in ("GroupNormalization", "UnitNormalization", "BatchNormalization"):
        ours, theirs = getattr(layers, name), getattr(keras.layers, name)
        made, true = (inspect.signature(c.__init__) for c in (ours, theirs))
        assert made == true
    positional = layers.LayerNormalization([1, 2], 0.1, False)
    assert (positional.axis, positional.epsilon, positional.center) == (
        [1, 2],
        0.1,
        False,
    )


def test_options_reach_keras():
    make = partial(layers.LayerNormalization, gamma_initializer="zeros")
    np.testing.assert_array_equal(make()(X), np.zeros_like(X))
