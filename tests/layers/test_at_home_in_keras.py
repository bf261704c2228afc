"""Every layer through Keras' own life: config, file, shapes, mask, policy, fit."""

from functools import partial

import keras
import numpy as np
import pytest

from tests.support import keras_checks
from tfsafe import layers

INPUTS = np.random.default_rng(0).normal(size=(3, 5, 4)).astype("float32")
MASK = np.array([[1, 1, 1, 0, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]], bool)
case = partial(keras_checks.LayerCase, inputs=INPUTS, mask=MASK)
pair = partial(case, spread=lambda x: (x, x))
listed = partial(case, spread=lambda x: ([x, x],))
# Layers that are called again must give the same.
orthogonal = {
    "kernel_initializer": keras.initializers.GlorotUniform(seed=1),
    "recurrent_initializer": keras.initializers.Orthogonal(seed=2),
}
glorot = {"kernel_initializer": keras.initializers.GlorotUniform(seed=1)}

CASES = [
    case(layers.LogSigmoid, name="log-sigmoid"),
    case(layers.SafeMeanPooling, name="mean-over-steps"),
    case(
        partial(layers.SafeMeanPooling, axis=(1, 2), keepdims=True, empty_value=0.5),
        name="mean-over-all-keepdims",
    ),
    case(layers.Softmax, name="softmax"),
    case(layers.GlobalMaxPooling1D, name="global-max"),
    case(partial(layers.AveragePooling1D, 2, padding="same"), name="average"),
    listed(partial(layers.Attention, use_scale=True), cancels=1, name="attention"),
    pair(
        partial(layers.MultiHeadAttention, 2, 3, use_bias=False, **glorot),
        cancels=1,
        name="heads",
    ),
    case(
        partial(layers.LSTM, 3, return_sequences=True, **orthogonal),
        cancels=2,
        name="lstm",
    ),
    case(layers.LayerNormalization, cancels=1, name="layer-normalization"),
    case(layers.BatchNormalization, mask=None, cancels=1, name="batch-normalization"),
    case(
        partial(
            layers.Normalization, mean=[0.0, 1.0, 2.0, 3.0], variance=[1.0, 0, 4, 9]
        ),
        cancels=1,
        name="normalization",
    ),
]
# Those that share their code with one above, or have little of their own.
SIBLINGS = [
    case(partial(layers.LogSoftmax, axis=[1, 2]), mask=None, name="log-softmax"),
    case(partial(layers.Masking, 7.0), name="masking"),
    case(
        partial(layers.GlobalAveragePooling1D, keepdims=True, empty_value=0.5),
        name="global-average",
    ),
    case(partial(layers.MaxPooling1D, 2, 1, empty_value=0.5), name="max"),
    case(partial(layers.AlphaDropout, 0.5, seed=1), name="alpha-dropout"),
    case(partial(layers.GaussianDropout, 0.5, seed=1), name="gaussian-dropout"),
    listed(
        partial(layers.AdditiveAttention, use_scale=False),
        cancels=1,
        name="additive-attention",
    ),
    pair(
        partial(layers.GroupQueryAttention, 3, 4, 2, use_bias=False, **glorot),
        cancels=1,
        name="grouped-heads",
    ),
    case(partial(layers.GRU, 3, **orthogonal), cancels=2, name="gru"),
    case(partial(layers.SimpleRNN, 3, **orthogonal), cancels=2, name="simple-rnn"),
    case(
        lambda **kwargs: layers.RNN(keras.layers.GRUCell(3, **orthogonal), **kwargs),
        cancels=2,
        name="rnn",
    ),
    case(
        lambda **kwargs: layers.TimeDistributed(
            keras.layers.Dense(2, **glorot, **kwargs), **kwargs
        ),
        mask=None,
        cancels=1,
        name="time-distributed",
    ),
    case(partial(layers.LayerNormalization, rms_scaling=True), name="rms-scaling"),
    case(partial(layers.GroupNormalization, 2), cancels=1, name="group-normalization"),
    case(layers.UnitNormalization, name="unit-normalization"),
    listed(
        partial(layers.Dot, axes=2, normalize=True), mask=None, cancels=1, name="dot"
    ),
]
# One half precision is trained, as both give the right values.
CHECKS = [
    check
    for check in keras_checks.LAYER_CHECKS
    if not keras_checks.name(check).endswith("graph_mixed_bfloat16")
]
BRIEF = keras_checks.LAYER_CHECKS[:6]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("check", CHECKS, ids=keras_checks.name)
def test_every_layer_is_at_home_in_keras(case, check, tmp_path):
    check(case, tmp_path)


@pytest.mark.parametrize("case", SIBLINGS, ids=str)
@pytest.mark.parametrize("check", BRIEF, ids=keras_checks.name)
def test_so_is_every_sibling(case, check, tmp_path):
    check(case, tmp_path)
