"""Keras' recurrent layers: NaN in the padding, and sequences without a step."""

import contextlib
from functools import partial

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe import layers

NAN = float("nan")
X = np.random.default_rng(0).normal(size=(3, 4, 2)).astype("float32")
# The first row has a gap, the third is empty.
KEEP = np.array([[True, False, True, False], [True] * 4, [False] * 4])
STACK = [keras.layers.LSTMCell, keras.layers.GRUCell]
KINDS = {
    "lstm": partial(layers.LSTM, 3),
    "gru": partial(layers.GRU, 3, reset_after=False),
    "simple": partial(layers.SimpleRNN, 3),
    "rnn": lambda **options: layers.RNN([cell(3) for cell in STACK], **options),
}
kinds = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)


def _run(layer, x, mode, **options):
    variables = [v.value for v in layer.trainable_variables]

    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            found = layer(x, mask=tf.constant(KEEP), **options)
            value = tf.reduce_sum(tf.nest.flatten(found)[0] ** 2)
        return tf.nest.flatten(found), tape.gradient(value, [x, *variables])

    return modes.compile_for(mode, run)(tf.constant(x))


# The catalogue has three of them under XLA.
@pytest.mark.parametrize("mode", ["eager", "graph"])
@kinds
def test_what_is_masked_does_not_matter(make, mode):
    layer = make(return_state=True)
    layer.build(X.shape)
    padded = np.where(KEEP[..., None], X, NAN).astype("float32")
    found, slopes = _run(layer, padded, mode)
    right, expected = _run(layer, np.nan_to_num(padded), mode)
    for got, wanted in zip([*found, *slopes], [*right, *expected], strict=True):
        assert_close(got, wanted)
    assert not np.any(slopes[0].numpy()[~KEEP])
    assert np.any(slopes[0].numpy()[0, 2])


@pytest.mark.parametrize(
    "options",
    [
        {"return_sequences": True},
        {"go_backwards": True},
        {"unroll": True},
        {"zero_output_for_mask": True, "return_sequences": True},
    ],
    ids=str,
)
def test_every_option_keeps_its_meaning(options):
    ours = layers.LSTM(3, **options)
    theirs = keras.layers.LSTM(3, **options)
    ours.build(X.shape)
    theirs.build(X.shape)
    theirs.set_weights(ours.get_weights())
    mask = tf.constant(KEEP)
    assert_close(ours(X, mask=mask), theirs(X, mask=mask))
    assert_close(ours(X), theirs(X))
    unknown = tf.TensorSpec([None, None if "unroll" not in options else 4, 2])
    traced = tf.function(ours, input_signature=[unknown], autograph=False)
    assert_close(traced(X), theirs(X))


def test_nan_that_counts_comes_out():
    layer = layers.GRU(3)
    layer.build(X.shape)
    x = X.copy()
    x[0, 0] = NAN
    (found,), _ = _run(layer, x, "graph")
    assert np.isnan(found[0]).all()
    assert np.isfinite(found[1:]).all()


@kinds
@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_no_step_leaves_the_states_and_gives_0(make, mode):
    layer = make(return_state=True)
    layer.build(X.shape)
    start = tf.nest.map_structure(tf.ones_like, layer.get_initial_state(2))
    run = modes.compile_for(mode, lambda x: layer(x, initial_state=start))
    output, *states = run(tf.zeros([2, 0, 2]))
    np.testing.assert_array_equal(output, np.zeros((2, 3)))
    for state in tf.nest.flatten(states):
        np.testing.assert_array_equal(state, np.ones((2, 3)))


@kinds
@pytest.mark.parametrize("return_sequences", [False, True])
def test_no_step_where_the_number_of_steps_is_unknown(make, return_sequences):
    layer = make(return_state=True, return_sequences=return_sequences)
    layer.build(X.shape)
    specs = [tf.TensorSpec([None, None, 2]), tf.TensorSpec([None, None], tf.bool)]
    plain = tf.function(layer, input_signature=specs[:1], autograph=False)
    masked = tf.function(
        lambda x, mask: layer(x, mask=mask), input_signature=specs, autograph=False
    )
    empty = tf.zeros([2, 0, 2])
    for found in (plain(empty), masked(empty, tf.zeros([2, 0], tf.bool))):
        output, *states = found
        assert output.shape == ((2, 0, 3) if return_sequences else (2, 3))
        assert not any(np.any(x) for x in tf.nest.flatten([output, states]))
    keep = tf.constant(KEEP)
    for got, right in ((plain(X), layer(X)), (masked(X, keep), layer(X, mask=keep))):
        for a, b in zip(tf.nest.flatten(got), tf.nest.flatten(right), strict=True):
            assert_close(a, b)


@pytest.mark.parametrize("steps", [0, None])
def test_a_stateful_layer_keeps_its_states_over_no_step(steps):
    layer = layers.LSTM(3, stateful=True)
    layer(X)
    before = [state.numpy() for state in layer.states]
    spec = tf.TensorSpec([3, steps, 2])
    tf.function(layer, input_signature=[spec], autograph=False)(tf.zeros([3, 0, 2]))
    for state, old in zip(layer.states, before, strict=True):
        np.testing.assert_array_equal(state, old)
    assert np.any(before)


def test_no_step_has_no_gradient(mode):
    layer = layers.LSTM(3)
    layer.build(X.shape)
    weights = [v.value for v in layer.trainable_variables]

    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = layer(x)
        return tape.gradient(value, [x, *weights], unconnected_gradients="zero")

    slopes = modes.compile_for(mode, run)(tf.zeros([2, 0, 2]))
    assert not any(np.any(slope) for slope in slopes)


@pytest.mark.parametrize(
    "layer", [layers.ConvLSTM1D, layers.ConvLSTM2D, layers.ConvLSTM3D]
)
def test_convolutions_pass_padding_and_no_step(layer):
    axes = int(layer.__name__[-2])
    made = layer(2, 2, return_state=True)
    x = np.full((1, 2, *[3] * axes, 1), NAN, "float32")
    x[:, 0] = 1
    with tf.GradientTape() as tape:
        output, *states = made(tf.constant(x), mask=tf.constant([[True, False]]))
    slopes = tape.gradient(output, [v.value for v in made.trainable_variables])
    assert all(np.isfinite(y).all() for y in (output, *states, *slopes))
    found = made(tf.zeros([1, 0, *[3] * axes, 1]))
    assert [y.shape for y in found] == [y.shape for y in (output, *states)]
    assert not any(np.any(y) for y in found)


@pytest.mark.parametrize("steps", [0, None])
def test_layers_around_layers_take_no_step(steps):
    empty = tf.zeros([2, 0, 2])
    spec = tf.TensorSpec([None, steps, 2])
    around = layers.Bidirectional(layers.LSTM(3, return_sequences=True))
    each = layers.TimeDistributed(keras.layers.Dense(3))
    for layer, width in ((around, 6), (each, 3)):
        layer.build((None, steps, 2))
        traced = tf.function(layer, input_signature=[spec], autograph=False)
        assert traced(empty).shape == (2, 0, width)


def test_each_step_is_that_of_keras_where_their_number_is_known():
    ours, theirs = (
        package.TimeDistributed(keras.layers.Dense(3, kernel_initializer="ones"))
        for package in (layers, keras.layers)
    )
    np.testing.assert_array_equal(ours(X), theirs(X))
    traced = [
        tf.function(
            layer, input_signature=[tf.TensorSpec([None, None, 2])], autograph=False
        )
        for layer in (ours, theirs)
    ]
    found = traced[0](X)
    assert_close(found, theirs(X))
    # Keras 3.15 takes as many steps as there are rows; 3.3 raises an error.
    with contextlib.suppress(Exception):
        assert traced[1](X).shape == (3, 3, 3), "mended in Keras"


@pytest.mark.parametrize("steps", [4, None])
def test_each_step_receives_its_mask(steps):
    layer = layers.TimeDistributed(layers.GlobalAveragePooling1D())
    x, keep = np.stack([X, -X], 2), np.stack([KEEP, ~KEEP], 2)
    traced = tf.function(
        lambda x, mask: layer(x, mask=mask),
        input_signature=[
            tf.TensorSpec([None, steps, 2, 2]),
            tf.TensorSpec([None, steps, 2], tf.bool),
        ],
        autograph=False,
    )
    expected = np.where(KEEP[..., None], X, -X)
    assert_close(traced(x, keep), expected)


def test_a_keras_file_holds_the_layers_within(tmp_path):
    inputs = keras.Input((None, 2))
    x = layers.Bidirectional(layers.GRU(3, return_sequences=True))(inputs)
    x = layers.RNN([cell(3) for cell in STACK])(x)
    model = keras.Model(inputs, x)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert_close(again(X), model(X))
    assert type(again.layers[1].forward_layer) is layers.GRU
    assert np.isfinite(again(np.zeros((2, 0, 2)))).all()
