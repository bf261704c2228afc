"""Running products and sums, and the largest of each segment."""

import mpmath
import numpy as np
import pytest
import tensorflow as tf

from tests.ops.edges import INF, NAN, assert_rounded, documented
from tests.support import modes, oracle
from tests.support.oracle import assert_close
from tfsafe import ops


def _products(row, upstream):
    """Returns the running products, and the gradient of their weighted sum."""
    products = [mpmath.fprod(row[: i + 1]) for i in range(len(row))]
    slopes = [
        mpmath.fsum(
            upstream[k] * mpmath.fprod(row[:i] + row[i + 1 : k + 1])
            for k in range(i, len(row))
        )
        for i in range(len(row))
    ]
    return [products, slopes]


def test_cumprod_agrees_with_mpmath_where_factors_are_0(mode, dtype):
    x = np.random.default_rng(0).normal(size=(4, 9))
    x[1, 4] = x[2, 0] = x[3, 2] = x[3, 5] = 0
    x = tf.cast(x, dtype)
    upstream = tf.cast(np.random.default_rng(1).normal(size=x.shape), dtype)
    got, (slope,) = modes.value_and_gradients(
        lambda x: ops.cumprod(x, -1), [x], mode, upstream
    )
    assert got.dtype == slope.dtype == dtype
    truth = oracle.exact_rows(_products, x, upstream)
    # Half an ulp for each factor and each term.
    budget = 0.51 if dtype.size == 2 else 9
    assert oracle.ulp_error(got, truth[:, 0]) <= budget
    scale = np.abs(truth[:, 1]).max(-1, keepdims=True)
    assert oracle.ulp_error(slope, truth[:, 1], scale) <= budget


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_the_options_are_those_of_tensorflow(axis, exclusive, reverse):
    x = tf.constant(np.random.default_rng(2).normal(size=(3, 2, 4)))
    for ours, theirs in ((ops.cumprod, tf.math.cumprod), (ops.cumsum, tf.math.cumsum)):
        got, (slope,) = modes.value_and_gradients(
            lambda x, f=ours: f(x, axis, exclusive, reverse), [x], "graph"
        )
        right, (true,) = modes.value_and_gradients(
            lambda x, f=theirs: f(x, axis, exclusive, reverse), [x], "graph"
        )
        assert_rounded(got, right)
        assert_close(slope, true, 8, why="both are sums of products")


def test_the_second_gradient_of_cumprod_agrees_with_differences(mode):
    x = tf.constant([0.5, -1.5, 0.0, 2.0], tf.float64)

    def slopes(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = tf.sin(ops.cumprod(x) + x)
        return tf.reduce_sum(tf.sin(3 * tape.gradient(value, x)))

    theory = oracle.assert_slopes_are_differences(
        modes.compile_for(mode, slopes), [x], 9e6
    )
    assert np.abs(theory[0]).max() > 0.1


def test_an_axis_of_unknown_size_is_multiplied():
    @tf.function(input_signature=[tf.TensorSpec([None, 2])], autograph=False)
    def unknown(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = ops.cumprod(x)
        return value, tape.gradient(value, x)

    x = tf.constant([[2.0, 1.0], [0.0, 3.0], [3.0, 5.0]])
    value, slope = unknown(x)
    assert_rounded(value, tf.math.cumprod(x))
    assert_rounded(slope, [[1.0, 19.0], [8.0, 6.0], [0.0, 3.0]])
    assert [each.shape for each in unknown(x[:0])] == [[0, 2]] * 2


def test_the_edges_of_cumprod_are_those_of_its_docstring(mode, dtype):
    assert documented(ops.cumprod) == ["0", "inf", "NaN"]
    x = tf.constant([[2.0, 0.0, 3.0], [INF, 2.0, 0.0], [1.0, NAN, 2.0]], dtype)

    def function(x):
        return ops.cumprod(x, -1)

    got, (slope,) = modes.value_and_gradients(
        function, [x], mode, [[1.0, 1.0, 1.0], [1.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    )
    assert_rounded(got, [[2.0, 0.0, 0.0], [INF, INF, NAN], [1.0, NAN, NAN]])
    # Behind the last incoming gradient there is none.
    assert_rounded(slope, [[1.0, 8.0, 0.0], [3.0, INF, 0.0], [1.0, 0.0, 0.0]])
    for silent in modes.silent_gradients(function, [x], mode):
        assert_rounded(silent, 0.0)


def test_cumsum_does_not_stick_in_half_precision(mode):
    assert documented(ops.cumsum) == ["inf", "NaN"]
    x = tf.ones([1000], tf.bfloat16)
    got, (slope,) = modes.value_and_gradients(ops.cumsum, [x], mode)
    # Rounded once, so that every second number above 256 is one off.
    assert np.all(np.abs(np.asarray(got, float) - np.arange(1, 1001)) <= 2)
    assert got[-1] == 1000
    assert_rounded(slope, np.arange(1000, 0, -1))


def test_cumsum_keeps_infinities_and_nans(mode, dtype):
    x = tf.constant([[1.0, INF, 2.0], [1.0, NAN, 2.0]], dtype)
    got, (slope,) = modes.value_and_gradients(lambda x: ops.cumsum(x, 1), [x], mode)
    assert_rounded(got, [[1.0, INF, INF], [1.0, NAN, NAN]])
    assert_rounded(slope, [[3.0, 2.0, 1.0]] * 2)


@pytest.mark.parametrize("op", [ops.cumprod, ops.cumsum])
@pytest.mark.parametrize(
    ("shape", "axis", "error", "message"),
    [
        ([2], 0.5, TypeError, r"`axis` must be an integer. Received: axis=0.5"),
        ([2], None, TypeError, r"`axis` must be an integer. Received: axis=None"),
        ([2], 1, ValueError, r"`axis` is out of range. Received: axis=1"),
        ([], 0, ValueError, r"`x` must have at least one axis. Received: a scalar"),
    ],
)
def test_a_wrong_axis_is_refused(op, shape, axis, error, message):
    with pytest.raises(error, match=message):
        op(tf.zeros(shape), axis)


def test_an_empty_segment_has_the_empty_value(mode, dtype):
    assert documented(ops.unsorted_segment_max) == ["no entry", "ties", "NaN"]
    data = tf.constant([[1.0, 5.0], [4.0, 5.0], [7.0, 7.0], [NAN, 0.0]], dtype)
    ids = tf.constant([0, 0, -1, 3])

    def function(x):
        return ops.unsorted_segment_max(x, ids, 4, empty_value=-2)

    got, (slope,) = modes.value_and_gradients(function, [data], mode)
    assert_rounded(got, [[4.0, 5.0], [-2.0, -2.0], [-2.0, -2.0], [NAN, 0.0]])
    assert_rounded(slope[:3], [[0.0, 0.5], [1.0, 0.5], [0.0, 0.0]])
    for silent in modes.silent_gradients(function, [data], mode):
        assert_rounded(silent, 0.0)


def test_segments_over_two_axes_are_reduced(mode):
    data = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    ids = tf.constant([[0, 1], [1, 3]])
    function = modes.compile_for(mode, lambda x: ops.unsorted_segment_max(x, ids, 4))
    assert_rounded(function(data), [1.0, 3.0, 0.0, 4.0])


def test_segments_that_are_not_integers_are_refused():
    with pytest.raises(TypeError, match=r"`segment_ids` must have an integer dtype"):
        ops.unsorted_segment_max(tf.zeros([2]), tf.zeros([2]), 2)
