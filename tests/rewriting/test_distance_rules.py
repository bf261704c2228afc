"""Squared distances that are expanded into products keep their digits."""

import numpy as np
import pytest
import tensorflow as tf

from tests.ops.edges import assert_rounded
from tests.rewriting.emitting import fired, in_modes, rewritten
from tests.rewriting.tables import RULES
from tests.support import modes


def _gram(a, b):
    rows = tf.reduce_sum(a * a, 1)[:, None]
    columns = tf.reduce_sum(b * b, 1)[None, :]
    return rows + columns - 2 * tf.matmul(a, b, transpose_b=True)


def _keepdims(a, b):
    rows = tf.reduce_sum(tf.square(a), axis=1, keepdims=True)
    columns = tf.transpose(tf.reduce_sum(tf.square(b), axis=1, keepdims=True))
    return rows - 2.0 * tf.matmul(a, tf.transpose(b)) + columns


def _codebook(a, b):
    # VQ-VAE: the codes are columns.
    codes = tf.transpose(b)
    return (
        tf.reduce_sum(a**2, axis=1, keepdims=True)
        + tf.reduce_sum(codes**2, axis=0)
        - 2 * tf.matmul(a, codes)
    )


def _transposed(a, b):
    columns = tf.reduce_sum(b * b, -1)
    return (
        tf.reshape(tf.reduce_sum(a * a, -1), [-1, 1])
        + tf.reshape(columns, [1, -1])
        - 2 * a @ tf.transpose(b)
    )


def _batch(a, b):
    a, b = a[None], b[None]
    rows = tf.reduce_sum(a * a, -1)[..., :, None]
    columns = tf.reduce_sum(b * b, -1)[..., None, :]
    return (rows + columns - 2 * tf.matmul(a, b, transpose_b=True))[0]


def _scaled(a, b):
    rows = tf.reduce_sum(a * a, 1)[:, None]
    return (
        rows + tf.reduce_sum(b * b, 1) - tf.matmul(4.0 * a, 0.5 * b, transpose_b=True)
    )


PAIRS = {
    "rows and columns": _gram,
    "factors on both sides": _scaled,
    "axes that are kept": _keepdims,
    "a codebook": _codebook,
    "reshaped": _transposed,
    "a batch": _batch,
}


def _vectors():
    rng = np.random.default_rng(0)
    a = rng.normal(size=(5, 3)).astype(np.float32) + 50
    b = rng.normal(size=(4, 3)).astype(np.float32) + 50
    b[1] = a[2] + np.float32(2e-3)
    b[2] = a[0]
    return a, b


def _truth(a, b):
    difference = np.float64(a)[:, None] - np.float64(b)[None]
    return np.sum(difference**2, -1)


@pytest.mark.parametrize(("name", "mode"), in_modes(*PAIRS))
def test_the_squared_distances_of_all_pairs_keep_their_digits(name, mode):
    a, b = _vectors()
    function = PAIRS[name]
    assert "squared-distances" in fired(RULES, function, tf.constant(a), tf.constant(b))
    value, (in_a, in_b) = modes.value_and_gradients(
        rewritten(RULES, function), [tf.constant(a), tf.constant(b)], mode
    )
    assert_rounded(value, _truth(a, b))
    assert_rounded(in_a, 2 * (4 * np.float64(a) - b.sum(0, dtype=float)))
    assert_rounded(in_b, 2 * (5 * np.float64(b) - a.sum(0, dtype=float)))


def test_unknown_sizes_are_recognised_too():
    a, b = _vectors()
    specs = [tf.TensorSpec([None, 3], tf.float32)] * 2
    for function in (_gram, _keepdims, _codebook):
        assert "squared-distances" in fired(RULES, function, *specs)
        value = rewritten(RULES, function, *specs)(tf.constant(a), tf.constant(b))
        assert_rounded(value, _truth(a, b))


def test_the_distance_from_itself_is_0_with_gradient_0(mode):
    x = tf.constant(_vectors()[0])

    def function(x):
        squared = _gram(x, x)
        return tf.sqrt(tf.maximum(squared, 0.0))

    value, (gradient,) = modes.value_and_gradients(
        rewritten(RULES, function), [x], mode
    )
    assert_rounded(tf.linalg.diag_part(value), 0.0)
    assert np.isfinite(gradient).all()
    assert_rounded(value, np.sqrt(_truth(x, x)))


SIDE_BY_SIDE = {
    "sums": lambda a, b: (
        tf.reduce_sum(a * a, -1)
        + tf.reduce_sum(b * b, -1)
        - 2 * tf.reduce_sum(a * b, -1)
    ),
    "elements": lambda a, b: tf.reduce_sum(a * a - 2 * a * b + b * b, -1),
}


@pytest.mark.parametrize("name", SIDE_BY_SIDE)
def test_vectors_side_by_side_are_subtracted_first(name, mode):
    a = tf.constant(_vectors()[0])
    b = a * (1 + tf.constant([1e-4, 0.0, -1e-3, 1e-2, 1.0])[:, None])
    function = SIDE_BY_SIDE[name]
    assert "squared-distances" in fired(RULES, function, a, b)
    value, (in_a, in_b) = modes.value_and_gradients(
        rewritten(RULES, function), [a, b], mode
    )
    difference = np.float64(a) - np.float64(b)
    assert_rounded(value, np.sum(difference**2, -1))
    assert_rounded(in_a, 2 * difference)
    assert_rounded(in_b, -2 * difference)


def _sum_of(a, b, factor=2.0, first=None, columns=None):
    first = a if first is None else first
    rows = tf.reduce_sum(first * first, 1)[:, None]
    columns = tf.reduce_sum(b * b, 1)[None, :] if columns is None else columns
    return rows + columns - factor * tf.matmul(a, b, transpose_b=True)


NEAR_MISSES = {
    "2.001 times the product": lambda a, b: _sum_of(a, b, 2.001),
    "another vector": lambda a, b: _sum_of(a, b, first=tf.sin(a)),
    "rows where columns should be": lambda a, b: _sum_of(
        a, b, columns=tf.reduce_sum(b * b, 1)[:, None]
    ),
    "a sum over the other axis": lambda a, b: _sum_of(
        a, b, columns=tf.reduce_sum(b * b, 0)[None, :]
    ),
    "a sum of products": lambda a, b: (
        tf.reduce_sum(a * a, 1)[:, None]
        + tf.reduce_sum(b * b, 1)[None, :]
        + 2 * tf.matmul(a, b, transpose_b=True)
    ),
    "a product of the columns": lambda a, b: (
        tf.reduce_sum(a * a, 1)[:, None]
        + tf.reduce_sum(b * b, 1)[None, :]
        - 2 * tf.matmul(a, b)
    ),
    "other axes side by side": lambda a, b: (
        tf.reduce_sum(a * a, 0) + tf.reduce_sum(b * b, 0) - 2 * tf.reduce_sum(a * b, 1)
    ),
    "another product": lambda a, b: a * a + b * b - 2 * a * tf.sin(b),
    "sums that spread": lambda a, b: (
        tf.reduce_sum(a * a, 1, keepdims=True)
        + tf.reduce_sum(b * b, 1)
        - 2 * tf.reduce_sum(a * b, 1)
    ),
    "a batch of other shape": lambda a, b: (
        tf.reduce_sum(a * a, 1)[:, None]
        + tf.reduce_sum(b * b, 1)[None, :]
        - 2 * tf.matmul(a[None], b[None], transpose_b=True)
    ),
    "distances among the squares": lambda a, b: (
        tf.reduce_sum(tf.math.squared_difference(a, b), 1)
        + tf.reduce_sum(b * b, 1)
        - 2 * tf.reduce_sum(a * b, 1)
    ),
    "a vector without gradient": lambda a, b: _sum_of(tf.stop_gradient(a), b, first=a),
}


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_a_near_miss_is_left_alone(name):
    # Square, so that all of the near misses have shapes that go together.
    args = [tf.ones([3, 3]), 2 * tf.ones([3, 3])]
    assert "squared-distances" not in fired(RULES, NEAR_MISSES[name], *args)


def test_float64_of_unknown_sizes_is_left_alone():
    # There is no wider type, and the differences may take too much memory.
    specs = [tf.TensorSpec([None, 3], tf.float64)] * 2
    assert "squared-distances" not in fired(RULES, _gram, *specs)
