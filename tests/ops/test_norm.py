import mpmath
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings, strategies as st

from tests.ops.edges import INF, NAN, assert_rounded, documented
from tests.support import modes, oracle
from tfsafe import ops
from tfsafe._limits import LIMITS


def _norm(x):
    return ops.norm(x, axis=-1)


def _normal(dtype, seed, shape=(10, 5)):
    return tf.cast(np.random.default_rng(seed).normal(size=shape), dtype)


def _wide(dtype):
    """Rows whose squares leave the range of the dtype, downwards and upwards."""
    limits = LIMITS[dtype.name]
    sizes = oracle.grid(dtype, 2.0**10 * limits.tiny, limits.max / 2.0**5, 10)
    return _normal(dtype, 0) * sizes[:, tf.newaxis]


def _euclidean(row):
    return mpmath.sqrt(mpmath.fdot(row, row))


def test_norm_agrees_with_mpmath(mode, dtype):
    x = _wide(dtype)
    budget = oracle.budget("norm", dtype, mode)
    got, (slope,) = modes.value_and_gradients(_norm, [x], mode)
    assert got.dtype == slope.dtype == dtype
    assert oracle.ulp_error(got, oracle.exact_rows(_euclidean, x)) <= budget
    truth = oracle.exact_rows(lambda row: [v / _euclidean(row) for v in row], x)
    assert oracle.ulp_error(slope, truth) <= budget


def test_the_second_gradient_of_norm_agrees_with_mpmath(mode, dtype):
    x, upstream = _normal(dtype, 1), _normal(dtype, 2)

    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = _norm(x)
        return tape.gradient(value, x)

    def truth(row, upstream):
        length, along = _euclidean(row), mpmath.fdot(row, upstream)
        return [
            (u - v * along / length**2) / length
            for u, v in zip(upstream, row, strict=True)
        ]

    _, (second,) = modes.value_and_gradients(slope, [x], mode, upstream)
    exact = oracle.exact_rows(truth, x, upstream)
    scale = np.array([[max(map(abs, row))] for row in exact], object)
    budget = oracle.budget("norm, second order", dtype, mode)
    assert oracle.ulp_error(second, exact, scale) <= budget


NORM_EDGES = {
    "all 0": ([0.0, 0.0], 0.0, [0.0, 0.0]),
    "inf": ([INF, 1.0], INF, [NAN, 0.0]),
    "NaN": ([NAN, INF], NAN, [NAN, NAN]),
}


def test_the_edges_of_norm_are_those_of_its_docstring(mode, dtype):
    assert [*NORM_EDGES, "no entry"] == documented(ops.norm)
    x, values, slopes = (
        tf.constant(column, dtype) for column in zip(*NORM_EDGES.values(), strict=True)
    )
    got, (gradient,) = modes.value_and_gradients(_norm, [x], mode)
    assert_rounded(got, values)
    assert_rounded(gradient, slopes)
    for silent in modes.silent_gradients(_norm, [x], mode):
        assert_rounded(silent, 0.0)


def test_the_second_gradient_of_norm_is_0_at_0(mode, dtype):
    x = tf.constant([[0.0, 0.0], [3.0, 4.0]], dtype)
    assert_rounded(modes.second_gradient(_norm, x, mode)[0], 0.0)


def test_the_gradient_of_a_norm_that_overflows_is_still_a_unit_vector(mode, dtype):
    x = tf.fill([1, 2], tf.constant(LIMITS[dtype.name].max * 0.9, dtype))
    got, (slope,) = modes.value_and_gradients(_norm, [x], mode)
    assert_rounded(got, INF)
    assert_rounded(slope, np.sqrt(0.5))


@pytest.mark.parametrize("axis", [0, -1, (0, 2), (), None])
def test_norm_over_every_axis_agrees_with_float64(axis, mode):
    x = _normal(tf.float32, 3, (4, 3, 5))
    got, (slope,) = modes.value_and_gradients(
        lambda x: ops.norm(x, axis=axis), [x], mode
    )
    wide = np.asarray(x, np.float64)
    length = np.sqrt(np.sum(wide**2, axis, keepdims=True))
    squeezed = length if axis == () else np.squeeze(length, axis)
    assert oracle.ulp_error(got, squeezed) <= 4
    assert oracle.ulp_error(slope, wide / length) <= 4


def test_the_norm_of_a_scalar_is_its_magnitude_and_of_nothing_0(mode):
    assert_rounded(modes.compile_for(mode, ops.norm)(tf.constant(-3.0)), 3.0)
    got, (slope,) = modes.value_and_gradients(_norm, [tf.zeros([2, 0])], mode)
    assert_rounded(got, [0.0, 0.0])
    assert slope.shape == [2, 0]


rows = st.lists(
    st.floats(-(2.0**60), 2.0**60, width=32, allow_subnormal=False),
    min_size=1,
    max_size=6,
)


@settings(deadline=None, derandomize=True, print_blob=True, max_examples=50)
@given(row=rows, exponent=st.integers(-30, 60))
def test_norm_lies_between_its_bounds_and_scales_exactly(row, exponent):
    x = tf.constant(row)
    length = ops.norm(x)
    assert length >= tf.reduce_max(tf.abs(x))
    assert length <= tf.reduce_sum(tf.abs(x)) * (1 + 1e-6)
    if tf.reduce_all((x == 0) | (tf.abs(x) > 2.0**-90)):
        assert ops.norm(x * 2.0**exponent) == length * 2.0**exponent


def _p_norm(row, p):
    if p == INF:
        return max(map(abs, row))
    return mpmath.fsum(abs(v) ** p for v in row) ** (1 / mpmath.mpf(p))


def _p_slopes(row, p):
    if p == INF:
        return [mpmath.sign(v) * (abs(v) == _p_norm(row, p)) for v in row]
    norm = _p_norm(row, p)
    return [mpmath.sign(v) * (abs(v) / norm) ** (p - 1) for v in row]


@pytest.mark.parametrize("p", [0.5, 1, 1.5, 3, INF])
def test_other_norms_agree_with_mpmath(p, mode):
    # The last row has entries of very different sizes.
    x = tf.concat([_wide(tf.float32) / 8, [[1e-15, 3.0, -1e20, 2e20, 1.0]]], 0)
    got, (slope,) = modes.value_and_gradients(
        lambda x: ops.norm(x, p, axis=-1), [x], mode
    )
    assert oracle.ulp_error(got, oracle.exact_rows(lambda r: _p_norm(r, p), x)) <= 8
    truth = oracle.exact_rows(lambda r: _p_slopes(r, p), x)
    scale = np.abs(truth).max(-1, keepdims=True)
    assert oracle.ulp_error(slope, truth, scale) <= 8


@pytest.mark.parametrize("p", [0.5, 1, 2, 3, INF])
def test_the_edges_of_other_norms(p, mode):
    x = tf.constant([[0.0, 0.0], [NAN, 1.0], [INF, 1.0]])

    def function(x):
        return ops.norm(x, p, axis=-1)

    got, (slope,) = modes.value_and_gradients(function, [x], mode)
    assert_rounded(got, [0.0, NAN, INF])
    assert_rounded(slope[0], 0.0)
    for silent in modes.silent_gradients(function, [x], mode):
        assert_rounded(silent, 0.0)
    assert_rounded(modes.compile_for(mode, function)(tf.zeros([2, 0])), [0.0, 0.0])


def test_the_largest_entries_split_the_slope_of_the_maximum_norm(mode):
    x = tf.constant([[3.0, -3.0, 1.0, 3.0]])
    _, (slope,) = modes.value_and_gradients(
        lambda x: ops.norm(x, INF, axis=-1), [x], mode
    )
    assert_rounded(slope, [[1 / 3, -1 / 3, 0.0, 1 / 3]])


@pytest.mark.parametrize("p", [1.5, 2.0, 3])
def test_the_second_gradient_of_p_norms_agrees_with_differences(p, mode):
    x = tf.constant([0.5, -1.5, 2.0], tf.float64)

    def slopes(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = ops.norm(x, p)
        return tf.reduce_sum(tf.sin(3 * tape.gradient(value, x)))

    theory = oracle.assert_slopes_are_differences(
        modes.compile_for(mode, slopes), [x], 6e5
    )
    assert np.abs(theory[0]).max() > 0.1


def test_the_frobenius_norm_is_over_all_entries_of_the_axes():
    x = _normal(tf.float32, 3, (2, 3, 4))
    got = ops.norm(x, "fro", (1, 2), True)
    assert got.shape == [2, 1, 1]
    assert_rounded(got, tf.norm(x, "fro", (1, 2), True))


@pytest.mark.parametrize(
    ("ord", "axis", "message"),
    [
        ("nuc", None, r"`ord` must be one of 'euclidean', 'fro'. Received: ord='nuc'"),
        (0, None, r"`ord` must be 'euclidean', 'fro', or a number above 0.*ord=0"),
        (NAN, None, r"`ord` must be .* above 0, infinity included. Received: ord=nan"),
        (None, None, r"`ord` must be .* Received: ord=None"),
        (1, (0, 1), r"`ord` must be 'euclidean' or 'fro' for several axes.*matrix"),
    ],
)
def test_a_wrong_order_is_refused(ord, axis, message):
    with pytest.raises(ValueError, match=message):
        ops.norm(tf.zeros([2, 2]), ord, axis)
