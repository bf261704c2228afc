"""Attention and softmax: rows with nothing to attend to, padding, half precision."""

import functools

import keras
import numpy as np
import tensorflow as tf

from tests.catalogue.rows import FINITE, Row, formula
from tests.support import modes
from tfsafe import layers

NAN = float("nan")
TOKENS = [[[1.0, 0.0], [0.0, 1.0]]]
NOTHING = [[False, False]]
FIRST_HAS_NO_KEY = [[[False, False], [True, True]]]


def built(make, *shapes):
    """Returns a function that makes a layer at its first call, outside of any graph."""

    @functools.cache
    def once():
        layer = make()
        layer.build(*shapes)
        return layer

    def layer():
        with tf.init_scope():
            return once()

    return layer


def _heads(package, dtype="float32"):
    shape = (1, 2, 2)
    return built(lambda: package.MultiHeadAttention(1, 2, dtype=dtype), shape, shape)


def _first_query(package, dtype="float32", scores=False):
    """Returns what attention gives for a query to which every key is masked."""
    heads = _heads(package, dtype)

    def function(x):
        mask = tf.constant(FIRST_HAS_NO_KEY)
        found = heads()(x, x, attention_mask=mask, return_attention_scores=scores)
        return (found[0] if scores else found)[:, 0]

    return function


def _of_padding(package):
    """Returns what attention gives where the second token is NaN, and masked."""
    heads = _heads(package)

    def function(x):
        value = tf.constant([[[1.0, 0.0], [NAN, NAN]]])
        mask = tf.constant([[[True, False], [True, False]]])
        return heads()(x, value, attention_mask=mask)

    return function


def _is_mean_of_all(package):
    """Returns a check whether a row without a key is the mean over the padding."""
    heads = _heads(package)

    def is_right(mode):
        def run(x):
            layer = heads()
            found = layer(x, x, attention_mask=tf.constant(FIRST_HAS_NO_KEY))
            mean = tf.reduce_mean(layer.value_dense(x), 1, keepdims=True)
            return found[:, 0] - layer.output_dense(mean)[:, 0]

        apart = modes.compile_for(mode, run)(tf.constant(TOKENS))
        return np.abs(apart).max() > 1e-3

    return is_right


def _no_key(make, dtype):
    layer = built(lambda: make(dtype=dtype), [(1, 1, 2), (1, 2, 2)])

    def function(query):
        value = 10 * tf.constant(TOKENS, query.dtype)
        return layer()(
            [query, value], mask=[tf.constant([[True]]), tf.constant(NOTHING)]
        )

    return function


def _no_key_additive(package):
    def make():
        return package.AdditiveAttention(dtype="float16")

    layer = built(make, [(1, 1, 2), (1, 2, 2)])

    def function(query):
        with tf.init_scope():
            layer().scale.assign([40.0, 40.0])
        value = tf.constant([[[-50.0, 0.0], [0.0, -50.0]]], query.dtype)
        return layer()(
            [query, value], mask=[tf.constant([[True]]), tf.constant(NOTHING)]
        )

    return function


def _large_logits(package):
    shape = (1, 2, 4)
    layer = built(lambda: package.Attention(dtype="float16"), [shape, shape])
    return lambda query: layer()([query, query])


ROWS = [
    formula(
        "Y10",
        "layers.MultiHeadAttention where a query has no key",
        "layers.MultiHeadAttention",
        _first_query(keras.layers),
        _first_query(layers),
        [TOKENS],
        [[0.0, 0.0]],
        [0.0],
    ),
    Row(
        "Y10b",
        "layers.MultiHeadAttention averages the padding where a query has no key",
        "layers.MultiHeadAttention",
        _is_mean_of_all(keras.layers),
        _is_mean_of_all(layers),
    ),
    formula(
        "Y12",
        "layers.MultiHeadAttention in float16 where a query has no key",
        "layers.MultiHeadAttention",
        _first_query(keras.layers, "float16"),
        _first_query(layers, "float16"),
        [TOKENS],
        [[0.0, 0.0]],
        [0.0],
        dtype="float16",
    ),
    formula(
        "Y13",
        "layers.MultiHeadAttention with NaN in a masked key and value",
        "layers.MultiHeadAttention",
        _of_padding(keras.layers),
        _of_padding(layers),
        [TOKENS],
        FINITE,
        [FINITE],
    ),
    formula(
        "Y14",
        "layers.Attention in float16 where a query has no key",
        "layers.Attention",
        _no_key(keras.layers.Attention, "float16"),
        _no_key(layers.Attention, "float16"),
        [[[[-10.0, -10.0]]]],
        0.0,
        [0.0],
        dtype="float16",
    ),
    formula(
        "Y15",
        "layers.Attention where a query has no key",
        "layers.Attention",
        _no_key(keras.layers.Attention, "float32"),
        _no_key(layers.Attention, "float32"),
        [[[[-10.0, -10.0]]]],
        0.0,
        [0.0],
    ),
    formula(
        "Y16",
        "layers.AdditiveAttention in float16 where a query has no key",
        "layers.AdditiveAttention",
        _no_key_additive(keras.layers),
        _no_key_additive(layers),
        [[[[-10.0, -10.0]]]],
        0.0,
        [0.0],
        dtype="float16",
    ),
    formula(
        "Y17",
        "layers.Attention in float16, q @ k = 65536",
        "layers.Attention",
        _large_logits(keras.layers),
        _large_logits(layers),
        [[[[128.0] * 4] * 2]],
        128.0,
        [FINITE],
        dtype="float16",
    ),
]
