import mpmath
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings, strategies as st

from tests.ops.edges import INF, NAN, assert_rounded, documented
from tests.support import modes, oracle
from tfsafe import ops


def _normal(dtype, seed, shape=(10, 5)):
    return tf.cast(np.random.default_rng(seed).normal(size=shape), dtype)


def _mean(x, weights):
    return ops.mean(x, axis=-1, mask=weights)


def _weighted(row, weights):
    return mpmath.fdot(row, weights) / mpmath.fsum(weights)


def test_the_mean_agrees_with_mpmath_for_weights(mode, dtype):
    x, weights = _normal(dtype, 4), tf.nn.relu(_normal(dtype, 5) + 1)
    budget = oracle.budget("mean", dtype, mode)
    got, (in_x, in_weights) = modes.value_and_gradients(_mean, [x, weights], mode)
    assert got.dtype == in_x.dtype == in_weights.dtype == dtype
    # Sums of both signs: the unit is that of their largest term.
    largest = np.abs(np.asarray(x, float)).max(-1)
    total = np.asarray(weights, float).sum(-1)
    truth = oracle.exact_rows(_weighted, x, weights)
    assert oracle.ulp_error(got, truth, largest) <= budget
    truth = oracle.exact_rows(lambda _, w: [a / mpmath.fsum(w) for a in w], x, weights)
    assert oracle.ulp_error(in_x, truth) <= budget

    def slopes(row, weights):
        mean, total = _weighted(row, weights), mpmath.fsum(weights)
        return [(v - mean) / total for v in row]

    truth = oracle.exact_rows(slopes, x, weights)
    scale = (largest / total)[:, np.newaxis]
    assert oracle.ulp_error(in_weights, truth, scale) <= budget


def test_the_second_gradients_of_the_mean_agree_with_differences(mode):
    x, weights = _normal(tf.float64, 6), tf.nn.relu(_normal(tf.float64, 7)) + 0.1

    def slopes(x, weights):
        with tf.GradientTape() as tape:
            tape.watch([x, weights])
            value = _mean(x, weights)
        in_x, in_weights = tape.gradient(value, [x, weights])
        return tf.reduce_sum(tf.sin(3 * in_x) + tf.sin(5 * in_weights))

    theory = oracle.assert_slopes_are_differences(
        modes.compile_for(mode, slopes), [x[:2, :3], weights[:2, :3]], 9e6, 7e9
    )
    assert np.abs(theory[0]).max() > 0.1


MEAN_EDGES = {
    # x, weights, value, slope in x, slope in the weights
    "weight 0": (
        [1.0, 3.0, NAN, 8.0],
        [1.0, 1.0, 0.0, 0.0],
        2.0,
        [0.5, 0.5, 0.0, 0.0],
        [-0.5, 0.5, 0.0, 3.0],
    ),
    "all weights 0": ([1.0, NAN, INF, 2.0], [0.0] * 4, 7.0, [0.0] * 4, [0.0] * 4),
    "weight < 0": ([1.0] * 4, [1.0, 1.0, 1.0, -1.0], NAN, [NAN] * 4, [NAN] * 4),
    "weight NaN": ([1.0] * 4, [1.0, 1.0, 1.0, NAN], NAN, [NAN] * 4, [NAN] * 4),
    "NaN that counts": ([NAN, 1.0, 1.0, 1.0], [1.0] * 4, NAN, [0.25] * 4, [NAN] * 4),
    "inf that counts": (
        [INF, 1.0, 1.0, 1.0],
        [1.0] * 4,
        INF,
        [0.25] * 4,
        [NAN, -INF, -INF, -INF],
    ),
}


def test_the_edges_of_the_mean_are_those_of_its_docstring(mode, dtype):
    assert [*MEAN_EDGES, "no element"] == documented(ops.mean)

    def mean(x, weights):
        return ops.mean(x, axis=-1, mask=weights, empty_value=7.0)

    x, weights, values, *slopes = (
        tf.constant(column, dtype) for column in zip(*MEAN_EDGES.values(), strict=True)
    )
    got, gradients = modes.value_and_gradients(mean, [x, weights], mode)
    assert_rounded(got, values)
    assert_rounded(gradients, slopes)
    for silent in modes.silent_gradients(mean, [x, weights], mode):
        assert_rounded(silent, 0.0)


@pytest.mark.parametrize(
    "mask",
    [
        tf.constant([[True, False, True]]),
        tf.constant([[1, 0, 1]]),
        tf.constant([2.0, 0.0, 2.0]),
        np.array([[True, False, True]]),
        [1.0, 0.0, 1.0],
        [True, False, True],
    ],
)
def test_a_mask_may_be_boolean_integer_or_a_weight_and_broadcasts(mask, mode):
    x = tf.constant([[1.0, NAN, 3.0], [5.0, INF, 7.0]])
    got, (slope,) = modes.value_and_gradients(lambda x: _mean(x, mask), [x], mode)
    assert_rounded(got, [2.0, 6.0])
    assert_rounded(slope, [[0.5, 0.0, 0.5]] * 2)


def test_counts_beyond_the_range_of_half_precision_are_weights(mode):
    x, counts = tf.constant([1, 2], tf.bfloat16), tf.constant([257, 259 * 257])
    mean = modes.compile_for(mode, lambda x: ops.mean(x, mask=counts))
    assert_rounded(mean(x), 1 + 259 / 260)
    x = tf.constant([1, 2], tf.float16)
    assert_rounded(mean(x), 1 + 259 / 260)


def test_a_mask_over_time_broadcasts_over_features(mode):
    x = tf.constant([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [NAN, NAN]]])
    mask = tf.constant([[True, True], [True, False]])
    mean = modes.compile_for(
        mode, lambda x: ops.mean(x, axis=1, keepdims=True, mask=mask[..., tf.newaxis])
    )
    assert_rounded(mean(x), [[[2.0, 3.0]], [[5.0, 6.0]]])


@pytest.mark.parametrize("axis", [0, -1, (0, 2), (), None])
def test_the_mean_over_every_axis_agrees_with_float64(axis, mode):
    x = _normal(tf.float32, 8, (4, 3, 5))
    weights = tf.square(_normal(tf.float32, 9, (4, 3, 1)))
    got = modes.compile_for(
        mode, lambda x, w: ops.mean(x, axis, keepdims=True, mask=w)
    )(x, weights)
    wide = np.asarray(x, np.float64)
    spread = np.broadcast_to(np.asarray(weights, np.float64), x.shape)
    total = np.sum(spread, axis, keepdims=True)
    truth = np.sum(wide * spread, axis, keepdims=True) / total
    assert oracle.ulp_error(got, truth, scale=3.0) <= 4


@pytest.mark.parametrize("shape", [[0], [2, 0], [0, 2]])
def test_the_mean_of_no_element_is_the_empty_value(shape, mode, dtype):
    got, (slope,) = modes.value_and_gradients(
        lambda x: ops.mean(x, axis=0 if shape[0] == 0 else 1, empty_value=-1),
        [tf.zeros(shape, dtype)],
        mode,
    )
    assert_rounded(got, -1.0)
    assert slope.shape == shape


@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
def test_neither_large_values_nor_large_or_small_weights_leave_the_range(size, mode):
    x = tf.constant([[3e38, 1e38], [3e-37, 1e-37]])
    weights = tf.fill([2, 2], size)
    got, (in_x, _) = modes.value_and_gradients(_mean, [x, weights], mode)
    assert_rounded(got, [2e38, 2e-37])
    assert_rounded(in_x, 0.5)


rows = st.lists(
    st.floats(-(2.0**60), 2.0**60, width=32, allow_subnormal=False),
    min_size=1,
    max_size=6,
)


@settings(deadline=None, derandomize=True, print_blob=True, max_examples=50)
@given(row=rows, data=st.data())
def test_a_mean_lies_between_the_smallest_and_the_largest_kept(row, data):
    mask = data.draw(st.lists(st.booleans(), min_size=len(row), max_size=len(row)))
    mean = float(ops.mean(tf.constant(row), mask=mask))
    kept = [v for v, m in zip(row, mask, strict=True) if m] or [0.0]
    slack = 1e-6 * max(map(abs, kept))
    assert min(kept) - slack <= mean <= max(kept) + slack
