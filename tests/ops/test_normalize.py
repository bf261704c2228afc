"""Vectors of length 1, cosines and distances."""

import mpmath
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings, strategies as st

from tests.ops.edges import INF, NAN, assert_rounded, documented
from tests.support import modes, oracle
from tests.support.oracle import assert_close
from tfsafe import ops
from tfsafe._limits import LIMITS


def _normal(dtype, seed, shape=(6, 5)):
    return tf.cast(np.random.default_rng(seed).normal(size=shape), dtype)


def _wide(dtype):
    """Rows whose squares leave the range of the dtype, downwards and upwards."""
    limits = LIMITS[dtype.name]
    sizes = oracle.grid(dtype, 2.0**10 * limits.tiny, limits.max / 2.0**5, 6)
    return _normal(dtype, 0) * sizes[:, tf.newaxis]


def _length(row):
    return mpmath.sqrt(mpmath.fdot(row, row))


def _exact(row, upstream):
    length = _length(row)
    unit = [x / length for x in row]
    along = mpmath.fdot(unit, upstream)
    slopes = [(u - e * along) / length for u, e in zip(upstream, unit, strict=True)]
    return [unit, slopes]


def test_l2_normalize_agrees_with_mpmath(mode, dtype):
    x, upstream = _wide(dtype), _normal(dtype, 1)
    got, (slope,) = modes.value_and_gradients(
        lambda x: ops.l2_normalize(x, -1), [x], mode, upstream
    )
    assert got.dtype == slope.dtype == dtype
    truth = oracle.exact_rows(_exact, x, upstream)
    budget = oracle.budget("norm", dtype, mode)
    assert oracle.ulp_error(got, truth[:, 0]) <= budget
    # Where the slopes are finite, and not below the normal numbers.
    scale = np.abs(truth[:, 1]).max(-1, keepdims=True)
    budget = oracle.budget("norm, second order", dtype, mode)
    assert oracle.ulp_error(slope, truth[:, 1], scale) <= budget


EDGES = {
    "all 0": ([0.0, 0.0], [0.0, 0.0], [0.0, 0.0]),
    "inf": ([INF, 1.0], [NAN, 0.0], [NAN, 0.0]),
    "NaN": ([NAN, 1.0], [NAN, NAN], [NAN, NAN]),
}


@pytest.mark.parametrize("epsilon", [0.0, 1e-4])
def test_the_edges_of_l2_normalize_are_those_of_its_docstring(epsilon, mode, dtype):
    assert list(EDGES) == documented(ops.l2_normalize)
    x, values, slopes = (
        tf.constant(column, dtype) for column in zip(*EDGES.values(), strict=True)
    )

    def function(x):
        return ops.l2_normalize(x, -1, epsilon)

    got, (slope,) = modes.value_and_gradients(function, [x], mode, [[0.0, 1.0]] * 3)
    assert_rounded(got, values)
    assert_rounded(slope[0], slopes[0])
    assert_rounded(slope[2], slopes[2])
    for silent in modes.silent_gradients(function, [x], mode):
        assert_rounded(silent, 0.0)


def test_below_epsilon_a_vector_is_scaled_as_in_tensorflow(mode, dtype):
    x = tf.constant([[0.0, 1e-3], [3.0, 4.0]], dtype)
    got, (slope,) = modes.value_and_gradients(
        lambda x: ops.l2_normalize(x, -1, 1e-4), [x], mode
    )
    assert_rounded(got, [[0.0, 0.1], [0.6, 0.8]])
    assert_rounded(slope[0], 100.0)
    if dtype.size == 2:
        assert_rounded(slope[1], [0.032, -0.024])
    else:
        assert_close(slope[1], [0.032, -0.024], scale=0.2)


@pytest.mark.parametrize(
    ("epsilon", "error", "message"),
    [
        (-1e-3, ValueError, r"`epsilon` must be at least 0. Received: epsilon=-0.001"),
        (NAN, ValueError, r"`epsilon` must be at least 0. Received: epsilon=nan"),
        ("0", TypeError, r"`epsilon` must be a number. Received: epsilon='0'"),
    ],
)
def test_a_wrong_epsilon_is_refused(epsilon, error, message):
    with pytest.raises(error, match=message):
        ops.l2_normalize(tf.zeros([2]), epsilon=epsilon)


@pytest.mark.parametrize("ord", ["euclidean", 1, 3, INF])
def test_normalize_divides_by_the_norm_that_it_returns(ord, mode):
    x = tf.constant([[3e38, -3e38, 1e38], [3e-37, 1e-37, 2e-37], [0.0, 0.0, 0.0]])
    value, slope = modes.compile_for(mode, _normalize)(x, ord)
    wide = np.asarray(x, float)[:2]
    order = 2 if ord == "euclidean" else ord
    length = np.linalg.norm(wide, order, -1, keepdims=True)
    assert_rounded(value[0][:2], wide / length)
    with np.errstate(over="ignore"):
        assert_rounded(value[1][:2], length.astype(np.float32))
    assert_rounded([value[0][2], slope[2]], 0.0)
    assert_rounded(value[1][2], 0.0)
    assert np.all(np.isfinite(slope))


def _normalize(x, ord):
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = ops.normalize(x, ord, -1)
        first = value[0][:, 0]
    return value, tape.gradient(first, x)


def test_the_edges_of_normalize_are_those_of_its_docstring(mode, dtype):
    assert list(EDGES) == documented(ops.normalize)
    x, values, _ = (
        tf.constant(column, dtype) for column in zip(*EDGES.values(), strict=True)
    )
    function = modes.compile_for(mode, lambda x: ops.normalize(x, axis=-1))
    value, length = function(x)
    assert_rounded(value, values)
    assert_rounded(length, [[0.0], [INF], [NAN]])


def _cosine(a, b):
    dots = mpmath.fdot(a, b)
    return dots / (_length(a) * _length(b))


def test_cosine_similarity_agrees_with_mpmath(mode, dtype):
    a, b = _wide(dtype), _wide(dtype)[::-1]
    got, slopes = modes.value_and_gradients(ops.cosine_similarity, [a, b], mode)
    budget = oracle.budget("moments", dtype, mode)
    assert oracle.ulp_error(got, oracle.exact_rows(_cosine, a, b), 1.0) <= budget
    for x, y, slope in ((a, b, slopes[0]), (b, a, slopes[1])):
        truth = oracle.exact_rows(
            lambda x, y: _exact(x, [v / _length(y) for v in y])[1], x, y
        )
        scale = oracle.exact_rows(lambda row: [1 / _length(row)], x)
        assert oracle.ulp_error(slope, truth, scale) <= 2 * budget


def test_a_nan_next_to_the_zero_vector_is_not_lost(mode):
    a = tf.constant([[0.0, 0.0], [NAN, 1.0], [0.0, 0.0]])
    b = tf.constant([[NAN, 1.0], [0.0, 0.0], [3.0, 4.0]])
    got, _ = modes.value_and_gradients(ops.cosine_similarity, [a, b], mode)
    assert_rounded(got, [NAN, NAN, 0.0])


def test_the_edges_of_cosine_similarity_are_those_of_its_docstring(mode, dtype):
    assert list(EDGES) == documented(ops.cosine_similarity)
    a = tf.constant([row[0] for row in EDGES.values()], dtype)
    b = tf.constant([1.0, 1.0], dtype)
    got, slopes = modes.value_and_gradients(ops.cosine_similarity, [a, b], mode)
    assert_rounded(got, [0.0, NAN, NAN])
    assert_rounded(slopes[0][::2], [[0.0, 0.0], [NAN, NAN]])
    for silent in modes.silent_gradients(ops.cosine_similarity, [a, b], mode):
        assert_rounded(silent, 0.0)


@settings(deadline=None, derandomize=True, print_blob=True, max_examples=50)
@given(
    row=st.lists(
        st.floats(-(2.0**60), 2.0**60, width=32, allow_subnormal=False),
        min_size=1,
        max_size=6,
    )
)
def test_the_cosine_of_a_vector_and_itself_is_never_above_1(row):
    x = tf.constant(row)
    cosine = float(ops.cosine_similarity(x, x))
    assert cosine <= 1
    assert cosine == 0 if not any(row) else abs(cosine - 1) <= 1e-6


def test_the_cosine_of_a_vector_and_its_opposite_is_never_below_minus_1():
    x = tf.random.stateless_normal([200, 5], [1, 2])
    cosine = ops.cosine_similarity(x, -x, axis=-1)
    assert np.all(cosine >= -1)
    assert np.all(cosine <= -1 + 1e-6)


DISTANCES = {
    "a = b": ([1.0, 2.0], [1.0, 2.0], 0.0, [0.0, 0.0]),
    "inf": ([INF, 2.0], [1.0, 3.0], INF, [NAN, 0.0]),
    "NaN": ([NAN, 2.0], [1.0, 3.0], NAN, [NAN, NAN]),
}


def test_the_edges_of_distance_are_those_of_its_docstring(mode, dtype):
    names = documented(ops.distance)
    assert list(DISTANCES) == names
    assert documented(ops.cdist) == ["equal", *names[1:]]
    a, b, values, slopes = (
        tf.constant(column, dtype) for column in zip(*DISTANCES.values(), strict=True)
    )
    got, gradients = modes.value_and_gradients(ops.distance, [a, b], mode)
    assert_rounded(got, values)
    assert_rounded(gradients[0], slopes)
    assert_rounded(gradients[1], -np.asarray(slopes, float))
    for silent in modes.silent_gradients(ops.distance, [a, b], mode):
        assert_rounded(silent, 0.0)


@pytest.mark.parametrize("ord", ["euclidean", 1, INF])
def test_distances_of_every_order_agree_with_numpy(ord, mode):
    a, b = _normal(tf.float32, 2, (2, 3, 4)), _normal(tf.float32, 3, (3, 4))
    got = modes.compile_for(mode, lambda a, b: ops.distance(a, b, ord, keepdims=True))
    order = 2 if ord == "euclidean" else ord
    truth = np.linalg.norm(np.asarray(a - b, float), order, -1, keepdims=True)
    assert_rounded(got(a, b), truth)


def test_cdist_holds_all_distances(mode, dtype):
    a, b = _normal(dtype, 4, (2, 3, 4)), _normal(dtype, 5, (5, 4))
    got, slopes = modes.value_and_gradients(ops.cdist, [a, b], mode)
    wide = np.asarray(a, float)[:, :, np.newaxis] - np.asarray(b, float)
    assert_rounded(got, np.linalg.norm(wide, axis=-1))
    assert slopes[0].shape == a.shape
    assert slopes[1].shape == b.shape


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([3], [2, 3], r"`a` must have at least two axes.* Received: shape=\(3,\)"),
        ([2, 3], [3], r"`b` must have at least two axes.* Received: shape=\(3,\)"),
        ([2, 3], [2, 1], r"`a` and `b` must have vectors of one size.*\(2, 1\)"),
        ([2, 4, 3], [3, 4, 3], r"`a` and `b` must have shapes that broadcast"),
    ],
)
def test_cdist_refuses_shapes_that_do_not_belong_together(a, b, message):
    with pytest.raises(ValueError, match=message):
        ops.cdist(tf.zeros(a), tf.zeros(b))
