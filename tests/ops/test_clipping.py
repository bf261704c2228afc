"""Clipping by the norm: right where TensorFlow's squares overflow."""

import mpmath
import numpy as np
import pytest
import tensorflow as tf

from tests.ops.edges import INF, NAN, assert_rounded, documented
from tests.support import modes, oracle
from tests.support.oracle import assert_close
from tfsafe import ops
from tfsafe.ops.nn import clipping


def ours(name, gradients, mode):
    clip = getattr(clipping, name)
    return modes.compile_for(mode, lambda *g: clip(g, 1.0))(*gradients)


@pytest.mark.parametrize("name", ["clip_each", "clip_together"])
@pytest.mark.parametrize("size", [1.0, 1e38])
def test_clipping_agrees_with_exact_arithmetic(name, size, mode):
    rng = np.random.default_rng(0)
    gradient = tf.constant(size * rng.uniform(-3, 3, 9).astype("float32"))
    (got,) = ours(name, [gradient], mode)
    exact = [mpmath.mpf(float(value)) for value in gradient.numpy()]
    with mpmath.workdps(oracle.DIGITS):
        norm = mpmath.sqrt(mpmath.fsum(value**2 for value in exact))
        truth = np.array([value / max(norm, 1) for value in exact], object)
    assert oracle.ulp_error(got, truth) <= 3


def test_no_gradient_is_nothing_to_clip():
    assert clipping.clip_each([], 1.0) == []
    assert clipping.clip_together([], 1.0) == []


@pytest.mark.parametrize("name", ["clip_each", "clip_together"])
@pytest.mark.parametrize("clip_norm", [1.0, 1e-30])
def test_zeros_stay_zero_however_small_the_norm_to_clip_to(name, clip_norm, mode):
    clip = getattr(clipping, name)
    step = modes.compile_for(mode, lambda *g: clip(g, clip_norm))
    for value in step(tf.zeros(3), tf.zeros((0, 2))):
        assert not np.any(value)


def _shortened(row, upstream):
    norm = mpmath.sqrt(mpmath.fdot(row, row))
    if norm <= 1:
        return [row, upstream]
    unit = [x / norm for x in row]
    along = mpmath.fdot(unit, upstream)
    slopes = [(u - e * along) / norm for u, e in zip(upstream, unit, strict=True)]
    return [unit, slopes]


def _rows(dtype):
    rng = np.random.default_rng(1)
    sizes = np.array([[0.1], [1.0], [10.0], [1000.0]])
    return [tf.cast(rng.normal(size=(4, 5)) * size, dtype) for size in (sizes, 1)]


def test_clip_by_norm_and_its_gradient_agree_with_mpmath(mode, dtype):
    x, upstream = _rows(dtype)
    got, (slope,) = modes.value_and_gradients(
        lambda x: ops.clip_by_norm(x, 1.0, -1), [x], mode, upstream
    )
    assert got.dtype == slope.dtype == dtype
    truth = oracle.exact_rows(_shortened, x, upstream)
    assert oracle.ulp_error(got, truth[:, 0]) <= oracle.budget("moments", dtype, mode)
    budget = oracle.budget("norm, second order", dtype, mode)
    scale = np.abs(truth[:, 1]).max(-1, keepdims=True)
    assert oracle.ulp_error(slope, truth[:, 1], scale) <= budget


def test_the_global_norm_and_the_gradient_agree_with_mpmath(mode):
    x, upstream = (rows[2] for rows in _rows(tf.float64))

    def function(x, y):
        (a, none, b), norm = ops.clip_by_global_norm([x, None, y], 1.0)
        assert none is None
        return tf.concat([a, b, norm[tf.newaxis]], 0)

    seed = tf.concat([upstream, tf.zeros([1], tf.float64)], 0)
    parts = [x[:2], x[2:]]
    got, slopes = modes.value_and_gradients(function, parts, mode, seed)
    truth = oracle.exact_rows(_shortened, x, upstream)
    assert_rounded(got[:-1], truth[0].astype(float))
    assert_rounded(got[-1], np.linalg.norm(x))
    assert_rounded(tf.concat(slopes, 0), truth[1].astype(float))


@pytest.mark.parametrize("size", [1e20, 1e-25])
def test_the_gradient_of_global_clipping_survives_squares_out_of_range(size, mode):
    x = tf.constant([3.0, 4.0]) * size
    limit = 0.5 * size
    _, (slope,) = modes.value_and_gradients(
        lambda x: ops.clip_by_global_norm([x], limit)[0][0], [x], mode, [1.0, 0.0]
    )
    assert_rounded(slope, [0.064, -0.048])


EDGES = {
    "within": ([3.0, 4.0], [3.0, 4.0], [1.0, 0.0]),
    "all 0": ([0.0, 0.0], [0.0, 0.0], [1.0, 0.0]),
    "inf": ([INF, 1.0], [NAN, 0.0], None),
    "NaN": ([NAN, 1.0], [NAN, NAN], None),
}


def test_the_edges_of_clip_by_norm_are_those_of_its_docstring(mode, dtype):
    assert list(EDGES) == documented(ops.clip_by_norm)
    x = tf.constant([row[0] for row in EDGES.values()], dtype)

    def function(x):
        return ops.clip_by_norm(x, 5.0, axes=[-1])

    got, (slope,) = modes.value_and_gradients(function, [x], mode, [[1.0, 0.0]] * 4)
    assert_rounded(got, [row[1] for row in EDGES.values()])
    assert_rounded(slope[:2], [[1.0, 0.0]] * 2)
    for silent in modes.silent_gradients(function, [x], mode):
        assert_rounded(silent, 0.0)


def test_a_limit_may_be_a_tensor_with_a_gradient(mode):
    x, limit = tf.constant([3.0, 4.0]), tf.constant(2.0)
    for function in (
        ops.clip_by_norm,
        lambda x, limit: ops.clip_by_global_norm([x], limit)[0][0],
    ):
        got, slopes = modes.value_and_gradients(function, [x, limit], mode)
        assert_rounded(got, [1.2, 1.6])
        assert_rounded(slopes[1], 1.4)


def test_a_norm_that_is_known_is_used(mode):
    clipped, norm = modes.compile_for(
        mode, lambda x: ops.clip_by_global_norm([x], 1.0, use_norm=10.0)
    )(tf.constant([3.0, 4.0]))
    assert_rounded(clipped[0], [0.3, 0.4])
    assert norm == 10


def test_rows_of_slices_that_come_twice_count_as_their_sum(mode):
    def function(values):
        x = tf.IndexedSlices(values, tf.constant([1, 1]), tf.constant([3, 2]))
        (clipped,), norm = ops.clip_by_global_norm([x], 1.0)
        return ops.clip_by_norm(x, 1.0).values, clipped.values, norm

    values = tf.constant([[1.0, 4.0], [2.0, 0.0]])
    for value in modes.compile_for(mode, function)(values)[:2]:
        assert_rounded(value, values / 5.0)
    assert_rounded(function(values)[2], 5.0)


def test_slices_of_a_table_too_large_for_memory_are_clipped(mode):
    rows = tf.constant([7, 2**40 - 1, 7, 0], tf.int64)

    def function(values):
        shape = tf.constant([2**40, 1], tf.int64)
        x = tf.IndexedSlices(values, rows, shape)
        (clipped,), norm = ops.clip_by_global_norm([x], 1.0)
        return clipped.values, norm

    values = tf.constant([[2.0], [2.0], [4.0], [3.0]])
    clipped, norm = modes.compile_for(mode, function)(values)
    assert_rounded(norm, 7.0)
    assert_rounded(clipped, values / 7.0)


@pytest.mark.parametrize("compiled", [False, True])
def test_no_slices_have_no_norm(compiled):
    def function(values):
        rows = tf.zeros([0], tf.int32)
        x = tf.IndexedSlices(values, rows, tf.constant([3, 2]))
        return ops.clip_by_global_norm([x], 1.0)[1]

    function = tf.function(function, autograph=False, jit_compile=compiled)
    assert function(tf.zeros([0, 2])) == 0


def test_of_nothing_the_global_norm_is_0():
    clipped, norm = ops.clip_by_global_norm([None], 1.0)
    assert clipped == [None]
    assert norm == 0


SLICES = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0]), tf.constant([2, 2]))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.clip_by_norm([1.0], 0), ValueError, "`clip_norm` must be above 0"),
        (lambda: ops.clip_by_norm([1.0], NAN), ValueError, "`clip_norm` must be above"),
        (lambda: ops.clip_by_norm([1.0], "1"), TypeError, "`clip_norm` must be a numb"),
        (lambda: ops.clip_by_norm([1.0], 1, 1), ValueError, "`axes` is out of range"),
        (lambda: ops.clip_by_norm(SLICES, 1, 0), ValueError, "`axes` must be None for"),
        (
            lambda: ops.clip_by_norm(
                tf.IndexedSlices(SLICES.values, SLICES.indices), 1
            ),
            ValueError,
            "`IndexedSlices` must have a `dense_shape`",
        ),
        (
            lambda: ops.clip_by_global_norm(tf.ones([2]), 1),
            TypeError,
            "`t_list` must be a list or a tuple of tensors. Received: ",
        ),
        (
            lambda: ops.clip_by_global_norm([tf.constant([1])], 1),
            TypeError,
            "`t_list` must have a floating dtype",
        ),
    ],
)
def test_what_cannot_be_clipped_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("shape", [(), (0, 3), (5000,), (80, 64), (3, 3, 16, 32)])
def test_half_of_the_squares_agrees_with_float64(shape, mode, dtype):
    x = tf.cast(np.random.default_rng(0).normal(size=shape), dtype)
    got = modes.compile_for(mode, clipping.half_of_squares)(x)
    assert got.dtype == (tf.float64 if dtype == tf.float64 else tf.float32)
    truth = np.square(x.numpy().astype("float64")).sum() / 2
    assert_close(got, truth)


@pytest.mark.parametrize("value", [INF, -INF, NAN, 3e38])
def test_half_of_the_squares_is_not_finite_if_one_is_not(value, mode):
    x = tf.tensor_scatter_nd_update(tf.ones([80, 64]), [[70, 3]], [value])
    got = modes.compile_for(mode, clipping.half_of_squares)(x)
    assert not np.isfinite(got)


def test_xla_adds_many_squares_by_a_matrix_product():
    # One after the other, they take ten times as long.
    half = tf.function(clipping.half_of_squares, jit_compile=True)
    concrete = half.get_concrete_function(tf.TensorSpec([80, 64], tf.float32))
    types = {op.type for op in concrete.graph.get_operations()}
    assert ("MatMul" in types) == (not modes.HAS_GPU)
