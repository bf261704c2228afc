"""Functions that keep TensorFlow's values, the infinite ones included."""

import numpy as np
import pytest
import tensorflow as tf

from tests.ops.edges import INF, NAN, assert_rounded
from tests.ops.elementwise import edges
from tests.support import modes
from tfsafe.ops.formulas import unchanged_values

# The arguments, the value and the slopes.
ROWS = {
    "divide": (
        unchanged_values.divide,
        2,
        [(1, 4, 0.25, 0.25, -0.0625), (1, 0, INF, 0, 0), (0, 0, NAN, 0, 0)],
    ),
    "divide_no_nan": (
        unchanged_values.divide_no_nan,
        2,
        [(1, 4, 0.25, 0.25, -0.0625), (1, 0, 0, 0, 0), (NAN, 0, 0, 0, 0)],
    ),
    "reciprocal": (unchanged_values.reciprocal, 1, [(4, 0.25, -0.0625), (0, INF, 0)]),
    "rsqrt": (
        unchanged_values.rsqrt,
        1,
        [(4, 0.5, -0.0625), (0, INF, 0), (-1, NAN, NAN)],
    ),
    "pow": (
        unchanged_values.pow,
        2,
        [(4, 0.5, 2, 0.25, 4 * np.log(2)), (0, 0.5, 0, 0, 0), (0, 0, 1, 0, 0)],
    ),
    "xlogy": (
        unchanged_values.xlogy,
        2,
        [(2, 1, 0, 0, 2), (0, 0, 0, 0, 0), (0, -1, 0, 0, 0)],
    ),
    "xlog1py": (
        unchanged_values.xlog1py,
        2,
        [(2, 0, 0, 0, 2), (0, -1, 0, 0, 0), (0, -2, 0, 0, 0)],
    ),
    "xdivy": (unchanged_values.xdivy, 2, [(2, 4, 0.5, 0.25, -0.125), (0, 0, 0, 0, 0)]),
    "multiply": (
        unchanged_values.multiply,
        2,
        [(2, 3, 6, 3, 2), (0, INF, NAN, INF, 0)],
    ),
    "squared_difference": (
        unchanged_values.squared_difference,
        2,
        [(3, 1, 4, 4, -4), (INF, 1, INF, INF, -INF)],
    ),
    "elementwise tanh": (
        unchanged_values.elementwise(tf.tanh),
        1,
        [(0, 0, 1), (INF, 1, 0), (NAN, NAN, NAN)],
    ),
    "elementwise square": (
        unchanged_values.elementwise(tf.square),
        1,
        [(3, 9, 6), (INF, INF, INF)],
    ),
    "held": (unchanged_values.held, 1, [(3, 3, 1), (0, 0, 1), (NAN, NAN, 1)]),
}


@pytest.mark.parametrize("name", ROWS)
def test_values_are_tensorflows_and_gradients_are_finite(name, mode):
    function, arguments, rows = ROWS[name]
    got, wanted, silent = edges(function, rows, tf.float32, mode, arguments)
    for result, column in zip(got, wanted, strict=True):
        assert_rounded(result, column)
    for zero in silent:
        assert_rounded(zero, 0.0)


@pytest.mark.parametrize(
    "function",
    [
        unchanged_values.divide,
        unchanged_values.pow,
        unchanged_values.xlogy,
        unchanged_values.xdivy,
        unchanged_values.multiply,
    ],
)
def test_half_precision_and_broadcasting_are_kept(function):
    x = tf.constant([[0.5], [2.0]], tf.float16)
    y = tf.constant([1.0, 0.0, 3.0], tf.float16)
    value, gradients = modes.value_and_gradients(function, [x, y], "graph")
    assert value.dtype == tf.float16
    assert value.shape == (2, 3)
    assert [each.shape for each in gradients] == [x.shape, y.shape]


@pytest.mark.parametrize(
    ("function", "naive", "x", "y"),
    [
        (unchanged_values.pow, tf.pow, NAN, 0.0),
        (unchanged_values.pow, tf.pow, 1.0, NAN),
        (unchanged_values.xlogy, tf.math.xlogy, 0.0, NAN),
        (unchanged_values.xlog1py, tf.math.xlog1py, 0.0, NAN),
        (unchanged_values.xdivy, tf.math.xdivy, 0.0, NAN),
    ],
)
def test_a_nan_that_tensorflow_passes_over_changes_nothing(function, naive, x, y):
    x, y = tf.constant(x), tf.constant(y)
    assert np.isfinite(naive(x, y))
    assert function(x, y) == naive(x, y)


def test_a_mask_of_nothing_known_lets_a_nan_out(mode):
    x = tf.constant([NAN, NAN, 2.0, INF])
    mask = tf.constant([0.0, 0.0, 1.0, 0.0])
    unknown = tf.constant([False, True, False, True])
    value, (gradient, in_mask) = modes.value_and_gradients(
        lambda x, mask: unchanged_values.masked(x, mask, unknown), [x, mask], mode
    )
    assert_rounded(value, [0.0, NAN, 2.0, 0.0])
    assert_rounded(gradient, mask)
    assert_rounded(in_mask, x)
    (silent, _) = modes.value_and_gradients(
        lambda x, mask: unchanged_values.masked(x, mask, unknown),
        [x, mask],
        mode,
        [0.0] * 4,
    )[1]
    assert_rounded(silent, 0.0)


@pytest.mark.parametrize("mode", ["graph", "xla"])
def test_no_compiler_merges_what_is_held(mode):
    x = tf.constant([1.0, 0.5])

    def naive(x):
        return (1 - x) + 1e-7

    def held(x):
        return unchanged_values.held(1 - x) + 1e-7

    assert modes.compile_for(mode, naive)(x)[0] > 1.1e-7
    assert modes.compile_for(mode, held)(x)[0] == np.float32(1e-7)


def test_the_second_gradient_of_an_elementwise_function_is_tensorflows(mode):
    x = tf.constant([0.3, -1.2])
    got = modes.second_gradient(unchanged_values.elementwise(tf.sin), x, mode)
    assert_rounded(got, -np.sin(x.numpy()))
